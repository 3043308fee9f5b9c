"""What single fields of a recipe change in a fine-tuning's batches and loss, against the loss by its definition."""

import numpy as np
import pytest
import torch

from encore.errors import EncoreError
from encore.finetuning.contrastive import Contrastive, Pairwise, PairwiseInBatch
from tests.support.small_finetuning import (
    NEGATIVES,
    RECIPES,
    Lookup,
    batch_of,
    loss_and_slope,
    loss_by_definition,
    made,
    queries_of,
    step,
    vectors,
)
from tests.support.whole_loss import whole_loss


@pytest.mark.parametrize("name", RECIPES)
def test_loss_of_every_recipe_is_the_one_by_definition(store, collection, name):
    task = made(store, collection, **RECIPES[name])
    torch.manual_seed(1)
    encoder = Lookup()
    for indices in ([0, 1, 2, 3], [4, 2], [7, 6, 5, 4, 3, 2, 1, 0]):
        examples, batch = batch_of(task, indices)
        loss = whole_loss(task, encoder, torch.nn.ModuleDict(), batch)["loss"].item()
        assert loss == pytest.approx(loss_by_definition(task, encoder, examples), abs=1e-6)


@pytest.mark.parametrize("name", ["pool", "log-q"])
def test_the_definition_notices_a_recipe_that_is_not_followed(store, collection, name):
    task = made(store, collection, **RECIPES[name])
    torch.manual_seed(1)
    encoder = Lookup()
    plain = made(store, collection, **{key: value for key, value in RECIPES[name].items() if key == "negatives"})
    examples, batch = batch_of(plain, [0, 1, 2, 3])
    loss = whole_loss(plain, encoder, torch.nn.ModuleDict(), batch)["loss"].item()
    assert abs(loss - loss_by_definition(task, encoder, examples)) > 1e-3


def test_pools_share_nothing(store, collection):
    """The mean over two pools is the mean of what each is alone; a pool as large as the batch changes nothing."""
    torch.manual_seed(3)
    encoder, none = Lookup(), torch.nn.ModuleDict()
    halves, whole = made(store, collection, in_batch_group=2), made(store, collection, in_batch_group=4)
    both = whole_loss(halves, encoder, none, batch_of(halves, [0, 1, 2, 3])[1])["loss"].item()
    alone = [whole_loss(whole, encoder, none, batch_of(whole, part)[1])["loss"].item() for part in ([0, 1], [2, 3])]
    assert both == pytest.approx(np.mean(alone), abs=1e-12)
    free = made(store, collection)
    full = [whole_loss(task, encoder, none, batch_of(task, [0, 1, 2, 3])[1])["loss"].item() for task in (whole, free)]
    assert full[0] == full[1] > both


def test_sampling_probabilities_sum_to_one(store, collection):
    task = made(store, collection, negatives="none", logq_correction=True)
    assert np.exp(task.log_q).sum() == pytest.approx(1, abs=1e-6)
    assert task.log_q[20] == pytest.approx(np.log(1 / 2 / 8)), "q1 has two answers"


def test_without_negatives_a_query_brings_its_answer_alone(store, collection):
    task = made(store, collection, negatives="none", per_query=7)
    brought = [len(task.example(index, np.random.default_rng(0)).passages) for index in range(len(task))]
    assert brought == [1] * 8


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
    queries = queries_of(wanted, collection, store, {f"q{i}": {f"d{i:02d}": 1} for i in range(8)})
    task = Contrastive(wanted, queries, store)
    examples, batch = batch_of(task, [3])
    assert examples[0].passages == [3, 3]
    loss = whole_loss(task, Lookup(), torch.nn.ModuleDict(), batch)["loss"].item()
    assert loss == pytest.approx(np.log(2)), "two equal passages, one of them right"


def test_queries_with_few_negatives_are_left_out(store, collection):
    every = {
        query: dict(list(drawn.items())[: 3 - number % 2]) for number, (query, drawn) in enumerate(NEGATIVES.items())
    }
    few = queries_of(step(least_negatives=3), collection, store, every)
    assert [query.row for query in few] == [0, 2, 4, 6]
    with pytest.raises(EncoreError, match="as many as 4 negatives"):
        queries_of(step(least_negatives=4), collection, store, every)


def test_a_passage_that_answers_is_a_positive_and_never_a_random_negative(store, collection):
    queries = queries_of(step(), collection, store, {}, {"q7": {"d09": 3, "d25": 40}})
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
    loss = whole_loss(task, encoder, torch.nn.ModuleDict(), batch)["loss"].item()
    assert loss == pytest.approx(pairs_by_definition(task, encoder, examples), abs=1e-12)
    alone = [whole_loss(task, encoder, torch.nn.ModuleDict(), batch_of(task, [i])[1])["loss"].item() for i in range(4)]
    assert loss == pytest.approx(np.mean(alone), abs=1e-12), "no passage of another query takes part"
    assert abs(loss - loss_by_definition(task, encoder, examples)) > 1e-3


def test_pairs_are_those_of_the_released_code(store, collection):
    """microsoft/ANCE at c8439df, ``NLL`` of model/models.py, on the same vectors; run once in float64."""
    task = made(store, collection, loss="pairwise", per_query=1, temperature=1.0)
    _, batch = batch_of(task, [0, 1, 2, 3, 6])
    assert loss_and_slope(task, batch) == pytest.approx([1.1630651468296915, 0.8127251405805646], rel=1e-12)


def pairs_of_batch_by_definition(task, encoder, examples):
    """Mean of -log sigmoid over each query's positive and every passage of its pool that is no answer to it."""
    pool, terms = task.step.in_batch_group or len(examples), []
    for number, example in enumerate(examples):
        (query,) = vectors(task, encoder, [example.query.row], task.store.queries, task.step.query_length)
        first = number - number % pool
        for other, neighbour in enumerate(examples[first : first + pool], first):
            wrong = neighbour.passages[1:] if other == number else neighbour.passages
            wrong = [passage for passage in wrong if other == number or passage not in example.query.relevant]
            own = vectors(task, encoder, [example.passages[0], *wrong], task.store.passages, task.step.length)
            right, *scores = own @ query / task.step.temperature
            terms += [np.log1p(np.exp(score - right)) for score in scores]
    return np.mean(terms)


@pytest.mark.parametrize("group", [None, 2])
def test_pairs_with_the_whole_batch_are_those_by_definition(store, collection, group):
    """STAR: the hard negatives and the positives of all queries count alike, but for passages that are relevant."""
    task = made(store, collection, loss="pairwise-in-batch", in_batch_group=group)
    assert isinstance(task, PairwiseInBatch)
    torch.manual_seed(1)
    encoder = Lookup()
    for indices in ([0, 1, 2, 3], [7, 6, 5, 4, 3, 2, 1, 0]):
        examples, batch = batch_of(task, indices)
        loss = whole_loss(task, encoder, torch.nn.ModuleDict(), batch)["loss"].item()
        assert loss == pytest.approx(pairs_of_batch_by_definition(task, encoder, examples), abs=1e-12)


def test_pairs_with_the_whole_batch_are_those_of_the_released_code(store, collection):
    """jingtaozhan/DRhard at 15e2235, `inbatch_train` of model.py, on the same vectors; run once in float64."""
    task = made(store, collection, loss="pairwise-in-batch", temperature=1.0)
    _, batch = batch_of(task, [0, 1, 2, 3])
    assert loss_and_slope(task, batch) == pytest.approx([0.7096148757418128, 0.04357301340739983], rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"in_batch_group": 3}, "does not divide the batch of 4"),
        ({"in_batch_group": 2, "loss": "pairwise"}, "leave `in_batch_group` out"),
        ({"loss": "pairwise", "negatives": "none"}, "needs its own negatives"),
        ({"logq_correction": True}, "needs `negatives: none`"),
        ({"mined_by": "bert-base+marco-bm25"}, "leave `mined_by` out"),
        ({"first_rank": 201}, "below the depth of 200"),
        ({"negatives": "mined", "triples": "x"}, "triples replace BM25's negatives"),
        ({"systems_file": "x"}, "not for `negatives: bm25`"),
        ({"negatives": "none", "positives": "answers"}, "are retrieved"),
        ({"negatives": "index", "positives": "answers", "loss": "lambda"}, "are retrieved"),
        ({"negatives": "index"}, "goes with loss pairwise or lambda"),
        ({"loss": "lambda"}, "loss lambda with such negatives"),
        ({"negatives": "index", "loss": "pairwise", "scorer": "late-interaction"}, "of vectors"),
        ({"negatives": "index", "loss": "pairwise", "pooling": "mean"}, "`pooling` would change the passages' vectors"),
        ({"negatives": "index", "loss": "pairwise", "start": "pretrained"}, "`start` would change"),
        ({"negatives": "index", "loss": "lambda", "in_batch_group": 2}, "leave `in_batch_group` out"),
    ],
)
def test_fields_that_would_be_idle_or_impossible_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        step(**changes)
