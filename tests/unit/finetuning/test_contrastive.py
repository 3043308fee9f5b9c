"""The fine-tuning task, on a small store and an encoder whose vectors are looked up."""

from itertools import islice

import numpy as np
import pytest
import torch

from encore.data.collection import Collection, Judgment, write_collection
from encore.data.judgments import highest_graded
from encore.errors import EncoreError
from encore.finetuning.contrastive import Contrastive
from encore.models.inputs import PARTS
from encore.models.memory import PartSize
from encore.training.batches import BatchMaker
from tests.support.small_finetuning import NEGATIVES, PASSAGES, Lookup, batch_of, loss_by_definition, queries_of, step
from tests.support.whole_loss import whole_loss


@pytest.fixture
def task(store, collection):
    return Contrastive(step(), queries_of(step(), collection, store, NEGATIVES), store)


def test_highest_grade_is_the_answer():
    assert highest_graded({"a": 1, "b": 3, "c": 3}) == {"b", "c"}
    assert highest_graded({"a": 0}) == highest_graded({}) == set()


def test_an_example_is_a_positive_and_unjudged_negatives(task):
    assert sum(len(query.negatives) for query in task.queries) > 0
    for index, query in enumerate(task.queries):
        for seed in range(30):
            first, *rest = task.example(index, np.random.default_rng(seed)).passages
            assert first in query.positives
            assert len(rest) == 2
            assert not set(rest) & query.judged
            if query.negatives:
                assert set(rest) <= set(query.negatives)
                assert len(set(rest)) == 2


def test_a_part_is_bounded_by_the_tokens_of_queries_and_passages(task):
    """Once memory has run out; batches are of any lengths all the same."""
    maker = BatchMaker(task, 6, 0)
    (draw,) = islice(maker.draws(), 1)
    assert not draw.sizes.any()
    whole = maker.make(draw, PartSize(6))
    alone = maker.make(draw, PartSize(1))
    assert whole.sizes.tolist() == [tokens_of(part) for part in alone.parts]
    assert len(set(whole.sizes.tolist())) > 1
    found = []
    for most in range(max(whole.sizes), sum(whole.sizes)):
        parts = maker.make(draw, PartSize(6, most)).parts
        found.append([part.examples for part in parts])
        assert sum(found[-1]) == 6
        assert max(map(tokens_of, parts)) <= most
    assert [1, 2, 1, 2] in found, "an example of long texts takes the room of two others"


def tokens_of(part):
    return sum(int(array.sum()) for name, array in part.arrays.items() if "mask" in name)


def test_every_answer_and_every_negative_gets_its_turn(task):
    drawn = [task.example(1, np.random.default_rng(seed)).passages for seed in range(60)]
    assert {passages[0] for passages in drawn} == {1, 20}
    assert {passage for passages in drawn for passage in passages[1:]} == {11, 13, 15}


def test_queries_without_negatives_get_any_unjudged_passages(task):
    assert task.queries[7].negatives == ()
    drawn = {passage for seed in range(200) for passage in task.example(7, np.random.default_rng(seed)).passages[1:]}
    assert drawn == set(range(PASSAGES)) - {7}


def test_a_sample_of_queries_is_taken_when_the_step_says_so(store, collection):
    few = queries_of(step(queries=3), collection, store, NEGATIVES)
    other = queries_of(step(queries=3, sample=1), collection, store, NEGATIVES)
    assert len(few) == len(other) == 3
    assert few != other


def test_a_sample_is_drawn_of_the_queries_that_have_negatives(store, collection):
    listed = {store.queries.names.find([name])[name] for name in NEGATIVES}
    for sample in range(20):
        some = queries_of(step(queries=5, sample=sample, least_negatives=1), collection, store, NEGATIVES)
        assert len(some) == 5
        assert {query.row for query in some} <= listed
    every = queries_of(step(least_negatives=1), collection, store, NEGATIVES)
    assert {query.row for query in every} == listed, "q7, which no file lists, brings no random passages"
    with pytest.raises(EncoreError, match="as many as 4 negatives; lower `least_negatives`"):
        queries_of(step(least_negatives=4), collection, store, NEGATIVES)


def test_batches_alone_need_no_negatives(store, collection):
    alone = step(negatives="none", least_negatives=1)
    assert len(queries_of(alone, collection, store, {})) == 8


def test_each_seed_learns_from_a_sample_of_its_own(store, collection):
    def rows(seed, **changes):
        return {query.row for query in queries_of(step(**changes), collection, store, NEGATIVES, seed=seed)}

    drawn = [frozenset(rows(seed, queries=3)) for seed in range(12)]
    assert {len(each) for each in drawn} == {3}
    assert len(set(drawn)) > 6
    assert drawn[0] == rows(0, queries=3, sample=0)
    assert rows(0) == rows(5), "all queries are all queries"
    numbers = {step(queries=3, sample=sample).sample_of(seed) for sample in range(3) for seed in range(10)}
    assert len(numbers) == 30, "no seed's first sample is another's second"


def test_targets_and_ignored_passages(task):
    examples, batch = batch_of(task, [0, 1, 2, 3])
    passages = sorted((p for e in examples for p in e.passages), key=lambda p: task.store.passages.lengths_of(p))
    lengths = task.store.passages.lengths_of(passages).tolist()
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


@pytest.mark.parametrize(("temperature", "exclude_relevant"), [(0.05, True), (1.0, True), (0.05, False)])
def test_loss_is_the_one_by_definition(store, collection, temperature, exclude_relevant):
    wanted = step(temperature=temperature, exclude_relevant=exclude_relevant)
    task = Contrastive(wanted, queries_of(wanted, collection, store, NEGATIVES), store)
    torch.manual_seed(1)
    encoder = Lookup()
    for indices in ([0, 1, 2, 3], [0, 2], [4], [7, 6, 5, 4, 3, 2, 1, 0]):
        examples, batch = batch_of(task, indices)
        loss = whole_loss(task, encoder, torch.nn.ModuleDict(), batch)["loss"].item()
        assert loss == pytest.approx(loss_by_definition(task, encoder, examples), abs=1e-12)


def test_the_definition_notices_an_unmasked_answer(task):
    """The check above can fail: with nothing ignored, q0 sees d01 and d02 as negatives."""
    encoder = Lookup()
    examples, batch = batch_of(task, [0, 1, 2, 3])
    batch["relevant"][:] = -1
    loss = whole_loss(task, encoder, torch.nn.ModuleDict(), batch)["loss"].item()
    assert abs(loss - loss_by_definition(task, encoder, examples)) > 1e-3


def test_scores_are_precise_though_the_encoder_is_not(task):
    torch.manual_seed(2)
    rows = {**batch_of(task, [0, 1])[1], "queries": torch.randn(2, 16), "vectors": torch.randn(2, 3, 16)}
    exact = task.batch_loss(rows | {name: rows[name].double() for name in ("queries", "vectors")})
    with torch.autocast("cpu", torch.bfloat16):
        precise = task.batch_loss(rows)["contrast"]
        coarse = task.batch_loss(rows | {"vectors": rows["vectors"].bfloat16()})["contrast"]
    assert precise.item() == pytest.approx(exact["contrast"].item(), rel=1e-6)
    assert abs(coarse.item() - precise.item()) > 1e-5, "the check sees bf16's rounding"


def test_two_queries_of_one_passage_do_not_fight(store, tmp_path):
    rows = [("q0", "d05", 1), ("q1", "d05", 1)]
    write_collection(
        tmp_path,
        [{"_id": name, "title": "", "text": "a passage"} for name in store.passages.names],
        [{"_id": name, "text": "a query"} for name in store.queries.names],
        {"train": [Judgment(*row) for row in rows]},
    )
    queries = queries_of(step(), Collection(tmp_path), store, {"q0": {"d06": 1}, "q1": {"d06": 1}})
    task = Contrastive(step(per_query=1), queries, store)
    _, batch = batch_of(task, [0, 1])
    encoder = Lookup()
    loss = whole_loss(task, encoder, torch.nn.ModuleDict(), batch)["loss"].item()
    assert loss == pytest.approx(loss_by_definition(task, encoder, batch_of(task, [0, 1])[0]), abs=1e-12)
    batch["relevant"][:] = -1
    assert loss < whole_loss(task, encoder, torch.nn.ModuleDict(), batch)["loss"].item(), "the copy was no negative"


def test_what_is_missing_in_the_store_is_named(store, collection):
    with pytest.raises(EncoreError, match=r"'dXX'.*not in the token store"):
        queries_of(step(), collection, store, {"q0": {"dXX": 1}})
