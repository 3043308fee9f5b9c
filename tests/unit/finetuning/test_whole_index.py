"""Queries that are searched in the whole index at every step, by definition; and that they alone are trained."""

import numpy as np
import pytest
import torch

from encore.finetuning.whole_index import ranked
from encore.models.towers import query_tower_alone
from tests.support import small_models
from tests.support.small_finetuning import Lookup, batch_of, index_task, loss_and_slope, step, vectors
from tests.support.whole_loss import whole_loss

pytestmark = pytest.mark.usefixtures("double")


def ranking_by_definition(task, encoder, examples, weighted):
    """Each query's list by sorting, a double loop over its pairs, and the mean over queries; in float64."""
    losses, depth = [], task.step.depth
    for example in examples:
        query = example.query
        (vector,) = vectors(task, encoder, [query.row], task.store.queries, task.step.query_length)
        scores = task.passages @ vector
        listed = sorted(range(len(scores)), key=lambda passage: -scores[passage])[:depth]
        if not set(listed) & set(query.positives):
            listed += sorted(query.positives)
        pairs = [
            (rank, other)
            for rank, passage in enumerate(listed, 1)
            for other, negative in enumerate(listed, 1)
            if passage in query.positives and negative not in query.judged
        ]
        terms = []
        for rank, other in pairs:
            margin = (scores[listed[rank - 1]] - scores[listed[other - 1]]) / task.step.temperature
            gains = [1 / place if place <= depth else 0.0 for place in (rank, other)]
            terms.append((abs(gains[0] - gains[1]) if weighted else 1.0) * np.log1p(np.exp(-margin)))
        losses.append(np.mean(terms))
    return np.mean(losses)


@pytest.mark.parametrize("loss", ["lambda", "pairwise"])
@pytest.mark.parametrize("depth", [3, 12, 40])
def test_loss_is_the_one_by_definition(store, collection, loss, depth):
    task = index_task(store, collection, loss=loss, depth=depth)
    torch.manual_seed(1)
    encoder = Lookup()
    examples, batch = batch_of(task, [0, 1, 2, 3, 4, 5, 6, 7])
    found = whole_loss(task, encoder, torch.nn.ModuleDict(), batch)["loss"].item()
    assert found == pytest.approx(ranking_by_definition(task, encoder, examples, loss == "lambda"), abs=1e-12)
    if depth < 40:  # where the other weights are other numbers
        assert abs(found - ranking_by_definition(task, encoder, examples, loss != "lambda")) > 1e-3


@pytest.mark.parametrize(
    ("depth", "released"),
    [(3, [1.2376452458467195, 0.8513321821290409]), (12, [0.4306987030568498, 0.26083562558159057])],
)
def test_the_loss_is_that_of_the_released_code(store, collection, depth, released):
    """jingtaozhan/DRhard at 15e2235, the step of adore/train.py with `--metric_cut` at the depth; run once in float64.

    With binary judgments: there is no grade in its files.
    """
    task = index_task(store, collection, loss="lambda", depth=depth, temperature=1.0)
    _, batch = batch_of(task, [1, 2, 3, 5, 6, 7])
    assert loss_and_slope(task, batch) == pytest.approx(released, rel=1e-12)


def test_positives_follow_at_the_end_only_where_none_is_found():
    scores = torch.tensor([[5.0, 4, 3, 2, 1], [5, 4, 3, 2, 1], [5, 4, 3, 2, 1]])
    positives = torch.tensor([[1, 4], [3, 4], [2, -1]])
    judged = torch.tensor([[1, 4, 0], [3, 4, -1], [2, -1, -1]])
    rows, right, wrong = ranked(scores, 3, positives, judged)
    assert rows[:, :3].tolist() == [[0, 1, 2]] * 3
    assert [row[right[place]].tolist() for place, row in enumerate(rows)] == [[1], [3, 4], [2]]
    assert [row[wrong[place]].tolist() for place, row in enumerate(rows)] == [[2], [0, 1, 2], [0, 1]]


def test_a_right_first_passage_far_above_the_others_has_nothing_to_learn(store, collection):
    task = index_task(store, collection, depth=30)
    task.passages = np.zeros_like(task.passages)
    torch.manual_seed(1)
    encoder = Lookup()
    (example,), batch = batch_of(task, [3])
    (vector,) = vectors(task, encoder, [example.query.row], store.queries, task.step.query_length)
    task.passages[3] = 100 * vector / (vector @ vector)
    assert whole_loss(task, encoder, torch.nn.ModuleDict(), batch)["loss"].item() == pytest.approx(0, abs=1e-12)


def test_the_search_follows_the_query(store, collection):
    """Another query vector meets other negatives: the list is that of the moment."""
    task, lists = index_task(store, collection, depth=4), []
    for seed in (1, 2):
        torch.manual_seed(seed)
        encoder = Lookup()
        query = encoder.embed(*(batch_of(task, [2])[1][name] for name in ("query_ids", "query_mask")))
        lists.append(set((query @ torch.from_numpy(task.passages).T).topk(4).indices[0].tolist()))
    assert lists[0] != lists[1]


def test_an_encoder_for_both_gets_a_second_tower_and_only_that_one_learns():
    shared = small_models.random_encoder()
    apart = query_tower_alone(shared)
    assert apart.query_tower is not apart
    learning = {name for name, value in apart.named_parameters() if value.requires_grad}
    assert learning == {name for name in apart.state_dict() if name.startswith("query_encoder.")}
    for name, value in shared.state_dict().items():
        assert torch.equal(value, apart.state_dict()[name])
        assert torch.equal(value, apart.state_dict()[f"query_encoder.{name}"])
    assert query_tower_alone(apart) is apart


def test_fields_that_say_nothing_beside_an_index_are_idle():
    assert {"per_query", "first_rank", "least_negatives", "length"} <= step(negatives="index", loss="lambda").idle
    assert "depth" not in step(negatives="index", loss="lambda").idle
