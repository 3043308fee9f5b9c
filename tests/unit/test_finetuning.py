"""The fine-tuning task and its validation, on a small store and an encoder whose vectors are looked up."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from encore.collections.common import Collection, Judgment, write_collection
from encore.errors import EncoreError
from encore.finetuning.contrastive import Contrastive
from encore.finetuning.judged import PARTS
from encore.finetuning.pairwise import Pairwise
from encore.finetuning.positives import highest
from encore.finetuning.queries import training_queries
from encore.finetuning.step import TASKS
from encore.finetuning.validation import (
    Validation,
    mean_recall,
    mean_reciprocal_rank,
    validation_pool,
    write_record,
)
from encore.names import Names
from encore.recipe import FinetuneStep
from encore.training import gradients
from encore.training.gradients import Models
from encore.training.ranks import Ranks

VOCABULARY, PASSAGES, QUERIES = 50, 30, 12


class Texts(list):
    """What a task needs of the token store's sequences."""

    def __init__(self, texts, names):
        super().__init__(np.array(text, dtype=np.uint16) for text in texts)
        self.names = Names.of(names)
        self.lengths = np.array([len(text) for text in texts])


class Lookup(torch.nn.Module):
    """An encoder by definition simple: the mean of a table's rows over a text's tokens."""

    def __init__(self, dimension=8):
        super().__init__()
        self.table = torch.nn.Embedding(VOCABULARY, dimension, dtype=torch.float64)
        self.shape = SimpleNamespace(pad=0, cls=1, sep=2, hidden=dimension, head=None)
        self.dimension = dimension

    query_tower = property(lambda self: self)

    def embed(self, ids, mask):
        weights = mask.double()[..., None]
        return (self.table(ids) * weights).sum(1) / weights.sum(1)


def step(**changes):
    values = {
        "kind": "finetune", "collection": "c", "steps": 1, "batch": 4, "learning_rate": 1e-3, "length": 12,
        "query_length": 6, "negatives": "bm25", "per_query": 2, "temperature": 0.5, "source": "test",
    }  # fmt: skip
    return FinetuneStep.model_validate(values | changes)


@pytest.fixture(scope="module")
def store():
    rng = np.random.default_rng(3)
    passages = [rng.integers(5, VOCABULARY, rng.integers(1, 20)) for _ in range(PASSAGES)]
    queries = [rng.integers(5, VOCABULARY, rng.integers(1, 9)) for _ in range(QUERIES)]
    return SimpleNamespace(
        passages=Texts(passages, [f"d{i:02d}" for i in range(PASSAGES)]),
        queries=Texts(queries, [f"q{i}" for i in range(QUERIES)]),
        special=SimpleNamespace(pad=0, cls=1, sep=2),
    )


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """Query i has passage i (grade 3); q0 also d01 and d02 (grade 1), q1 another of grade 3, q4 one of grade 0."""
    folder = tmp_path_factory.mktemp("collection")
    graded = [(f"q{i}", f"d{i:02d}", 3) for i in range(8)]
    graded += [("q0", "d01", 1), ("q0", "d02", 1), ("q1", "d20", 3), ("q4", "d21", 0)]
    valid = [(f"q{i}", f"d{i:02d}", 2) for i in range(8, 12)] + [("q8", "d25", 1)]
    write_collection(
        folder,
        [{"_id": f"d{i:02d}", "title": "", "text": "a passage"} for i in range(PASSAGES)],
        [{"_id": f"q{i}", "text": "a query"} for i in range(QUERIES)],
        {"train": [Judgment(*row) for row in graded], "valid": [Judgment(*row) for row in valid]},
    )
    return Collection(folder)


NEGATIVES = {f"q{i}": {f"d{i + 10:02d}": 1, f"d{i + 12:02d}": 4, f"d{i + 14:02d}": 9} for i in range(7)}


@pytest.fixture
def task(store, collection):
    return Contrastive(step(), training_queries(step(), collection, store, NEGATIVES), store)


def batch_of(task, indices, seed=0):
    examples = [task.example(index, np.random.default_rng([seed, index])) for index in indices]
    return examples, {name: torch.from_numpy(array) for name, array in task.collate(examples).items()}


def vectors(task, encoder, rows, texts, length):
    """Float64 vectors of texts one by one, so without any padding."""
    table = encoder.table.weight.detach().numpy()
    return np.stack([table[[1, *texts[row][: length - 2].tolist(), 2]].mean(axis=0) for row in rows])


def loss_by_definition(task, encoder, examples):
    """Mean of -log softmax over the pool's passages without other queries' answers of this one, in float64."""
    passages = [passage for example in examples for passage in example.passages]
    place = np.cumsum([0, *(len(example.passages) for example in examples)])
    found = vectors(task, encoder, passages, task.store.passages, task.step.length)
    queries = vectors(
        task, encoder, [example.query.row for example in examples], task.store.queries, task.step.query_length
    )
    terms = []
    for number, example in enumerate(examples):
        scores = found @ queries[number] / task.step.temperature - correction(task, passages)
        own, after = place[number], place[number + 1]
        kept = [
            i
            for i, passage in enumerate(passages)
            if own <= i < after or passage not in example.query.relevant
            if task.step.pool is None or np.searchsorted(place, i, "right") - 1 in neighbours(number, task.step.pool)
        ]
        terms.append(np.log(np.exp(scores[kept]).sum()) - scores[own])
    return np.mean(terms)


def neighbours(query, pool):
    return range(query - query % pool, query - query % pool + pool)


def correction(task, passages):
    """log Q by counting: how often each passage would be brought if every query drew once, over all of its answers."""
    if task.step.correction == "none":
        return np.zeros(len(passages))
    counted = [sum((passage in q.positives) / len(q.positives) for q in task.queries) for passage in passages]
    return np.log(np.array(counted) / len(task.queries))


def test_highest_grade_is_the_answer():
    assert highest({"a": 1, "b": 3, "c": 3}) == {"b", "c"}
    assert highest({"a": 0}) == highest({}) == set()


def test_an_example_is_a_positive_and_unjudged_negatives(task):
    for index, query in enumerate(task.queries):
        for seed in range(30):
            first, *rest = task.example(index, np.random.default_rng(seed)).passages
            assert first in query.positives
            assert len(rest) == 2
            assert not set(rest) & query.judged
            if query.negatives:
                assert set(rest) <= set(query.negatives)
                assert len(set(rest)) == 2


def test_every_answer_and_every_negative_gets_its_turn(task):
    drawn = [task.example(1, np.random.default_rng(seed)).passages for seed in range(60)]
    assert {passages[0] for passages in drawn} == {1, 20}
    assert {passage for passages in drawn for passage in passages[1:]} == {11, 13, 15}


def test_queries_without_negatives_get_any_unjudged_passages(task):
    assert task.queries[7].negatives == ()
    drawn = {passage for seed in range(200) for passage in task.example(7, np.random.default_rng(seed)).passages[1:]}
    assert drawn == set(range(PASSAGES)) - {7}


def test_a_sample_of_queries_is_taken_when_the_step_says_so(store, collection):
    few = training_queries(step(queries=3), collection, store, NEGATIVES)
    other = training_queries(step(queries=3, sample=1), collection, store, NEGATIVES)
    assert len(few) == len(other) == 3
    assert few != other


def test_targets_and_ignored_passages(task):
    examples, batch = batch_of(task, [0, 1, 2, 3])
    passages = sorted((p for e in examples for p in e.passages), key=lambda p: task.store.passages.lengths[p])
    lengths = task.store.passages.lengths[passages].tolist()
    assert lengths == sorted(lengths)
    rows = np.array(rows_of(task, batch))
    assert rows[batch["places"]].tolist() == [example.passages for example in examples]
    for line, example in zip(batch["relevant"].tolist(), examples, strict=True):
        assert {row for row in line if row >= 0} == example.query.relevant
    assert set(examples[0].query.relevant) == {0, 1, 2}


def rows_of(task, batch):
    """The passages of a batch, read back from its tokens."""
    known = {tuple(text[: task.step.length - 2].tolist()): row for row, text in enumerate(task.store.passages)}
    rows = []
    for part in range(PARTS):
        ids, mask = batch[f"passage_ids_{part}"], batch[f"passage_mask_{part}"]
        rows += [known[tuple(line[kept][1:-1].tolist())] for line, kept in zip(ids, mask, strict=True)]
    return rows


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_loss_is_the_one_by_definition(store, collection, temperature):
    wanted = step(temperature=temperature)
    task = Contrastive(wanted, training_queries(wanted, collection, store, NEGATIVES), store)
    torch.manual_seed(1)
    encoder = Lookup()
    for indices in ([0, 1, 2, 3], [0, 2], [4], [7, 6, 5, 4, 3, 2, 1, 0]):
        examples, batch = batch_of(task, indices)
        loss = task.loss(encoder, torch.nn.ModuleDict(), batch)["loss"].item()
        assert loss == pytest.approx(loss_by_definition(task, encoder, examples), abs=1e-12)


CHANGES = {
    "pool": {"pool": 2},
    "pool of one": {"pool": 1},
    "none": {"negatives": "none"},
    "log-q": {"negatives": "none", "correction": "log-q"},
    "replacement": {"replacement": True},
}


def made(store, collection, **changes):
    wanted = step(**changes)
    return TASKS[wanted.loss](wanted, training_queries(wanted, collection, store, NEGATIVES), store)


@pytest.mark.parametrize("name", CHANGES)
def test_loss_of_every_recipe_is_the_one_by_definition(store, collection, name):
    task = made(store, collection, **CHANGES[name])
    torch.manual_seed(1)
    encoder = Lookup()
    for indices in ([0, 1, 2, 3], [4, 2], [7, 6, 5, 4, 3, 2, 1, 0]):
        examples, batch = batch_of(task, indices)
        loss = task.loss(encoder, torch.nn.ModuleDict(), batch)["loss"].item()
        assert loss == pytest.approx(loss_by_definition(task, encoder, examples), abs=1e-6)


@pytest.mark.parametrize("micro_batch", [4, 3, 1])
@pytest.mark.parametrize("name", [*CHANGES, "pairwise"])
def test_a_batch_in_parts_has_the_loss_and_the_gradient_of_the_whole(store, collection, name, micro_batch):
    """A pool that lies across two parts is still one pool, and sampling probabilities go with their passages."""
    task = made(store, collection, **CHANGES.get(name, {"loss": "pairwise"}))
    torch.manual_seed(1)
    encoder = Lookup()
    examples, batch = batch_of(task, [0, 1, 2, 3])
    whole = task.loss(encoder, torch.nn.ModuleDict(), batch)["loss"]
    (expected,) = torch.autograd.grad(whole, [encoder.table.weight])
    models = Models(task, encoder, torch.nn.ModuleDict(), torch.device("cpu"), {"precision": "fp32", "threads": 1})
    parts = gradients.parts(task, examples, micro_batch, Ranks(), 0)
    terms = gradients.backward(models, parts, task.weights(0.0), Ranks())
    assert terms["loss"].item() == pytest.approx(whole.item(), abs=1e-12)
    torch.testing.assert_close(encoder.table.weight.grad, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["pool", "log-q"])
def test_the_definition_notices_a_recipe_that_is_not_followed(store, collection, name):
    task = made(store, collection, **CHANGES[name])
    torch.manual_seed(1)
    encoder = Lookup()
    plain = made(store, collection, **{key: value for key, value in CHANGES[name].items() if key == "negatives"})
    examples, batch = batch_of(plain, [0, 1, 2, 3])
    loss = plain.loss(encoder, torch.nn.ModuleDict(), batch)["loss"].item()
    assert abs(loss - loss_by_definition(task, encoder, examples)) > 1e-3


def test_pools_share_nothing(store, collection):
    """The mean over two pools is the mean of what each is alone; a pool as large as the batch changes nothing."""
    torch.manual_seed(3)
    encoder, none = Lookup(), torch.nn.ModuleDict()
    halves, whole = made(store, collection, pool=2), made(store, collection, pool=4)
    both = halves.loss(encoder, none, batch_of(halves, [0, 1, 2, 3])[1])["loss"].item()
    alone = [whole.loss(encoder, none, batch_of(whole, part)[1])["loss"].item() for part in ([0, 1], [2, 3])]
    assert both == pytest.approx(np.mean(alone), abs=1e-12)
    free = made(store, collection)
    full = [task.loss(encoder, none, batch_of(task, [0, 1, 2, 3])[1])["loss"].item() for task in (whole, free)]
    assert full[0] == full[1] > both


def test_sampling_probabilities_sum_to_one(store, collection):
    task = made(store, collection, negatives="none", correction="log-q")
    assert np.exp(task.log_q).sum() == pytest.approx(1, abs=1e-6)
    assert task.log_q[20] == pytest.approx(np.log(1 / 2 / 8)), "q1 has two answers"


def test_without_negatives_a_query_brings_its_answer_alone(store, collection):
    task = made(store, collection, negatives="none", per_query=7)
    assert all(len(task.example(index, np.random.default_rng(0)).passages) == 1 for index in range(len(task)))


def test_with_replacement_a_negative_comes_twice_and_no_stranger_comes(store, collection):
    task = made(store, collection, replacement=True, per_query=5)
    drawn = [task.example(1, np.random.default_rng(seed)).passages[1:] for seed in range(50)]
    assert {passage for passages in drawn for passage in passages} == {11, 13, 15}
    assert all(len(passages) == 5 for passages in drawn)
    unlike = made(store, collection, per_query=5)
    assert all(len(set(unlike.example(1, np.random.default_rng(seed)).passages[1:])) >= 3 for seed in range(50))


def test_a_judged_negative_that_a_recipe_keeps_is_one(store, collection):
    """TCT-ColBERT's code leaves the answer among the negatives: the query then sees a copy of it as wrong."""
    wanted = step(exclude_judged=False, per_query=1)
    queries = training_queries(wanted, collection, store, {f"q{i}": {f"d{i:02d}": 1} for i in range(8)})
    task = Contrastive(wanted, queries, store)
    examples, batch = batch_of(task, [3])
    assert examples[0].passages == [3, 3]
    loss = task.loss(Lookup(), torch.nn.ModuleDict(), batch)["loss"].item()
    assert loss == pytest.approx(np.log(2)), "two equal passages, one of them right"


def test_queries_with_few_negatives_are_left_out(store, collection):
    every = {
        query: dict(list(drawn.items())[: 3 - number % 2]) for number, (query, drawn) in enumerate(NEGATIVES.items())
    }
    few = training_queries(step(least_negatives=3), collection, store, every)
    assert [query.row for query in few] == [0, 2, 4, 6]
    with pytest.raises(EncoreError, match="as many as 4 negatives"):
        training_queries(step(least_negatives=4), collection, store, every)


def test_a_passage_that_answers_is_a_positive_and_never_a_random_negative(store, collection):
    queries = training_queries(step(), collection, store, {}, {"q7": {"d09": 3, "d25": 40}})
    task = Contrastive(step(), queries, store)
    assert (task.queries[7].positives, task.queries[7].relevant) == ((7, 9, 25), {7, 9, 25})
    drawn = [task.example(7, np.random.default_rng(seed)).passages for seed in range(100)]
    assert {passages[0] for passages in drawn} == {7, 9, 25}
    assert not {passage for passages in drawn for passage in passages[1:]} & {7, 9, 25}


def pairs_by_definition(task, encoder, examples):
    """Mean of -log sigmoid over each query's own pairs, in float64."""
    terms = []
    for example in examples:
        own = vectors(task, encoder, example.passages, task.store.passages, task.step.length)
        (query,) = vectors(task, encoder, [example.query.row], task.store.queries, task.step.query_length)
        right, *wrong = own @ query / task.step.temperature
        terms += [np.log1p(np.exp(other - right)) for other in wrong]
    return np.mean(terms)


def test_pairs_are_those_by_definition_in_any_company(store, collection):
    task = made(store, collection, loss="pairwise")
    assert isinstance(task, Pairwise)
    torch.manual_seed(1)
    encoder = Lookup()
    examples, batch = batch_of(task, [0, 1, 2, 3])
    loss = task.loss(encoder, torch.nn.ModuleDict(), batch)["loss"].item()
    assert loss == pytest.approx(pairs_by_definition(task, encoder, examples), abs=1e-12)
    alone = [task.loss(encoder, torch.nn.ModuleDict(), batch_of(task, [i])[1])["loss"].item() for i in range(4)]
    assert loss == pytest.approx(np.mean(alone), abs=1e-12), "no passage of another query takes part"
    assert abs(loss - loss_by_definition(task, encoder, examples)) > 1e-3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pool": 3}, "does not divide the batch of 4"),
        ({"pool": 2, "loss": "pairwise"}, "leave `pool` out"),
        ({"loss": "pairwise", "negatives": "none"}, "needs negatives of its own"),
        ({"correction": "log-q"}, "needs `negatives: none`"),
        ({"mined_by": "bert-base+marco-bm25"}, "leave `mined_by` out"),
        ({"first_rank": 201}, "below the depth of 200"),
        ({"negatives": "mined", "triples": "x"}, "triples stand for BM25's negatives"),
        ({"systems_file": "x"}, "not for `negatives: bm25`"),
        ({"negatives": "none", "positives": "answers"}, "are retrieved"),
    ],
)
def test_fields_that_would_be_idle_or_impossible_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        step(**changes)


def test_the_definition_notices_an_unmasked_answer(task):
    """The check above can fail: with nothing ignored, q0 sees d01 and d02 as negatives."""
    encoder = Lookup()
    examples, batch = batch_of(task, [0, 1, 2, 3])
    batch["relevant"][:] = -1
    loss = task.loss(encoder, torch.nn.ModuleDict(), batch)["loss"].item()
    assert abs(loss - loss_by_definition(task, encoder, examples)) > 1e-3


def test_scores_are_precise_though_the_encoder_is_not(task):
    torch.manual_seed(2)
    rows = {**batch_of(task, [0, 1])[1], "queries": torch.randn(2, 16), "vectors": torch.randn(2, 3, 16)}
    exact = task.contrast(rows | {name: rows[name].double() for name in ("queries", "vectors")})
    with torch.autocast("cpu", torch.bfloat16):
        precise = task.contrast(rows)["contrast"]
        coarse = task.contrast(rows | {"vectors": rows["vectors"].bfloat16()})["contrast"]
    assert precise.item() == pytest.approx(exact["contrast"].item(), rel=1e-6)
    assert abs(coarse.item() - precise.item()) > 1e-5, "the check sees bf16's rounding"


def test_gradients_are_the_numeric_ones(task):
    encoder = Lookup()
    examples, batch = batch_of(task, [0, 2])
    task.loss(encoder, torch.nn.ModuleDict(), batch)["loss"].backward()
    delta, analytic = 1e-6, encoder.table.weight.grad.clone()
    for token in (1, int(task.store.passages[examples[0].passages[0]][0]), int(task.store.queries[0][0])):
        numeric = []
        for sign in (1, -1):
            with torch.no_grad():
                encoder.table.weight[token, 0] += sign * delta
                numeric.append(task.loss(encoder, torch.nn.ModuleDict(), batch)["loss"].item())
                encoder.table.weight[token, 0] -= sign * delta
        assert (numeric[0] - numeric[1]) / (2 * delta) == pytest.approx(analytic[token, 0].item(), abs=1e-7)


def test_the_order_of_a_batch_does_not_matter(task):
    encoder = Lookup()
    losses = [
        task.loss(encoder, torch.nn.ModuleDict(), batch_of(task, order)[1])["loss"].item()
        for order in ([0, 1, 2, 5], [5, 2, 0, 1])
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-12)


def test_two_queries_of_one_passage_do_not_fight(store, tmp_path):
    rows = [("q0", "d05", 1), ("q1", "d05", 1)]
    write_collection(
        tmp_path,
        [{"_id": name, "title": "", "text": "a passage"} for name in store.passages.names],
        [{"_id": name, "text": "a query"} for name in store.queries.names],
        {"train": [Judgment(*row) for row in rows]},
    )
    queries = training_queries(step(), Collection(tmp_path), store, {"q0": {"d06": 1}, "q1": {"d06": 1}})
    task = Contrastive(step(per_query=1), queries, store)
    _, batch = batch_of(task, [0, 1])
    encoder = Lookup()
    loss = task.loss(encoder, torch.nn.ModuleDict(), batch)["loss"].item()
    assert loss == pytest.approx(loss_by_definition(task, encoder, batch_of(task, [0, 1])[0]), abs=1e-12)
    batch["relevant"][:] = -1
    assert loss < task.loss(encoder, torch.nn.ModuleDict(), batch)["loss"].item(), "the copy was no negative"


def test_what_is_missing_in_the_store_is_named(store, collection):
    with pytest.raises(EncoreError, match=r"'dXX'.*not in the token store"):
        training_queries(step(), collection, store, {"q0": {"dXX": 1}})


def test_reciprocal_rank_by_hand():
    scores = np.array([[0.1, 0.9, 0.5], [0.3, 0.3, 0.3], [0.5, 0.5, 0.9]])
    positive = np.array([[0, 0, 1], [1, 0, 0], [1, 0, 0]], dtype=bool)
    assert mean_reciprocal_rank(scores, positive) == pytest.approx((1 / 2 + 1 / 3 + 1 / 3) / 3), (
        "ties go to later columns"
    )
    eleven = np.arange(11.0)[None, ::-1]
    assert mean_reciprocal_rank(eleven, np.eye(11, dtype=bool)[[9]]) == pytest.approx(1 / 10)
    assert mean_reciprocal_rank(eleven, np.eye(11, dtype=bool)[[10]]) == 0
    two = np.array([[False, True, False, True]])
    assert mean_reciprocal_rank(np.array([[4.0, 1.0, 3.0, 2.0]]), two) == pytest.approx(1 / 3), (
        "the first positive counts"
    )


def test_recall_by_hand():
    scores = np.array([np.arange(12.0), np.arange(12.0), np.zeros(12)])
    positive = np.zeros((3, 12), dtype=bool)
    positive[0, [1, 2]] = True  # ranks 11 and 10
    positive[1, [0]] = True  # rank 12
    positive[2, [2, 11]] = True  # of equal scores later columns are higher: ranks 10 and 1
    assert mean_recall(scores, positive) == pytest.approx((1 / 2 + 0 + 1) / 3)
    assert mean_reciprocal_rank(scores, positive) == pytest.approx((1 / 10 + 0 + 1) / 3)


def test_a_step_learns_from_and_validates_on_its_own_splits(store, tmp_path):
    """Two draws of one collection: each step sees the queries of its own."""
    draws = {"train-1": [0, 1], "valid-1": [2], "test-1": [3], "train-80": [2, 3], "valid-80": [0], "test-80": [1]}
    write_collection(
        tmp_path,
        [{"_id": name, "title": "", "text": "t"} for name in store.passages.names],
        [{"_id": name, "text": "t"} for name in store.queries.names],
        {split: [Judgment(f"q{row}", f"d{row:02d}", 1) for row in rows] for split, rows in draws.items()},
    )
    own = Collection(tmp_path)
    for share, learned, looked_at in (("1", [0, 1], [2]), ("80", [2, 3], [0])):
        wanted = step(negatives="none", train_split=f"train-{share}", valid_split=f"valid-{share}")
        assert [query.row for query in training_queries(wanted, own, store, {})] == learned
        assert validation_pool(wanted, own, store).queries.tolist() == looked_at


def test_the_measure_of_a_validation_is_the_steps(store, collection):
    pool, encoder = validation_pool(step(), collection, store), Lookup().float().requires_grad_(False)
    first, second = (Validation(step(validation_measure=name), pool, store)(encoder, 10) for name in ("RR@10", "R@10"))
    assert 0 < first < second


def test_pool_holds_the_answers_and_a_stable_sample(store, collection):
    wanted = step(validation_pool=5)
    pool = validation_pool(wanted, collection, store)
    assert pool.queries.tolist() == [8, 9, 10, 11]
    assert len(pool.passages) == 9
    assert {8, 9, 10, 11} <= set(pool.passages.tolist())
    assert pool.passages.tolist() == sorted(pool.passages.tolist())
    assert pool.positive.sum(1).tolist() == [1, 1, 1, 1], "the passage of the lower grade is no answer"
    assert pool.passages[pool.positive.argmax(1)].tolist() == [8, 9, 10, 11]
    larger = validation_pool(step(validation_pool=8), collection, store)
    assert set(pool.passages.tolist()) <= set(larger.passages.tolist())
    assert len(validation_pool(step(validation_queries=2), collection, store).queries) == 2


def test_validation_ranks_the_pool(store, collection):
    """Against a ranking by definition; trained on nothing, so the value is low but not 0 by construction."""
    pool = validation_pool(step(), collection, store)
    encoder = Lookup().float().requires_grad_(False)
    wanted = step()
    value = Validation(wanted, pool, store)(encoder, 10)
    task = SimpleNamespace(store=store)
    queries = vectors(task, encoder, pool.queries, store.queries, wanted.query_length)
    passages = vectors(task, encoder, pool.passages, store.passages, wanted.length)
    expected = []
    for scores, positive in zip(queries @ passages.T, pool.positive, strict=True):
        rank = 1 + (scores > scores[positive].max()).sum()
        expected.append(1 / rank if rank <= 10 else 0)
    assert value == pytest.approx(np.mean(expected))


def test_validations_are_recorded_in_order(tmp_path):
    write_record(tmp_path / "validation.tsv", [(10, 0.25), (20, 1 / 3)])
    assert (tmp_path / "validation.tsv").read_text() == "step\trr@10\n10\t0.250000\n20\t0.333333\n"
    write_record(tmp_path / "validation.tsv", [(10, 0.25)], "R@10")
    assert (tmp_path / "validation.tsv").read_text() == "step\tr@10\n10\t0.250000\n"
