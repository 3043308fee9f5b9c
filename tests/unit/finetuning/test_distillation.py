"""Distillation as a task: what a batch brings of its teachers, against scores by definition, whole and in parts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from encore.data.rankings import rank
from encore.data.runs import describe, write_run
from encore.errors import EncoreError
from encore.finetuning.distillation import (
    BatchDistillation,
    PairDistillation,
    PublishedDistillation,
    balanced,
    distillation,
    filled,
)
from encore.finetuning.teachers.outputs import PairScores, TextVectors, write_scores, write_vectors
from encore.finetuning.teachers.stage import listed_scores
from encore.storage.files import write_array
from tests.support import oracles
from tests.support.small_finetuning import PASSAGES, Lookup, step
from tests.support.small_teachers import ASKED, FIELDS, dual_task, query, score, scores_in, task_of, vectors_in
from tests.support.whole_loss import whole_loss


def batch_of(task: Any, rows: list[int]) -> tuple[list[Any], dict[str, torch.Tensor]]:
    examples = [task.example(row, np.random.default_rng(row)) for row in rows]
    return examples, {name: torch.from_numpy(array) for name, array in task.collate(examples).items()}


def student_scores(task: Any, encoder: Lookup, examples: list[Any], over_batch: bool) -> np.ndarray:
    """Products of vectors, one text at a time, over the temperature: [B, P], or [B, B * P]."""
    table, everything = encoder.table.weight.detach().numpy(), [p for one in examples for p in one.passages]

    def vector(text: np.ndarray, length: int) -> np.ndarray:
        mean: np.ndarray = table[[1, *text[: length - 2].tolist(), 2]].mean(axis=0)
        return mean

    return np.array([
        [
            vector(task.store.queries[one.query.row], task.step.query_length)
            @ vector(task.store.passages[passage], task.step.length)
            / task.step.temperature
            for passage in (everything if over_batch else one.passages)
        ]
        for one in examples
    ])  # fmt: skip


# Over pairs


@pytest.mark.parametrize("loss", ["kl-pairwise", "margin-mse"])
def test_a_pairs_loss_is_that_of_the_teachers_mean_scores(store: Any, loss: str, tmp_path: Path) -> None:
    task, encoder = task_of(store, loss, [scores_in(tmp_path / str(seed), seed) for seed in (1, 2)]), Lookup()
    examples, batch = batch_of(task, [0, 3, 5, 6])
    found = whole_loss(task, encoder, nn.ModuleDict(), batch)["loss"]
    rows, passages = np.array([[one.query.row] for one in examples]), np.array([one.passages for one in examples])
    teacher = (score(rows, passages, 1) + score(rows, passages, 2)) / 2
    student = student_scores(task, encoder, examples, over_batch=False)
    expected = (
        oracles.kl_over_pairs(student, teacher, 0.25)
        if loss == "kl-pairwise"
        else oracles.margin_mse(student, teacher / 0.25)
    )
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_a_pair_that_no_teacher_saw_is_refused(store: Any, tmp_path: Path) -> None:
    scores = PairScores(scores_in(tmp_path, 1), PASSAGES)
    with pytest.raises(EncoreError, match=r"no score of query 2 and passage 29 .rows of the token store.; .* again"):
        scores.of(np.array([1, 2]), np.array([[1, 11], [2, 29]]))
    assert scores.has(2, np.array([2, 29])).tolist() == [True, False]
    write_scores(tmp_path / "none", *(np.zeros(0, dtype=np.int64) for _ in range(2)), np.zeros(0, dtype=np.float32))
    assert PairScores(tmp_path / "none", PASSAGES).has(2, np.array([2, 29])).tolist() == [False, False]


def test_published_triples_are_the_examples(store: Any, tmp_path: Path) -> None:
    triples = np.array([[3, 3, 13], [0, 0, 14], [3, 3, 15], [7, 7, 17]], dtype=np.int32)
    write_array(scores_in(tmp_path, 1) / "triples.npy", triples)
    task = task_of(store, "kl-pairwise", [tmp_path], teachers=[], teacher_scores="f", negatives="none")
    assert isinstance(task, PublishedDistillation)
    assert len(task) == 4
    drawn = [task.example(index, np.random.default_rng(5)) for index in range(4)]
    assert [[one.query.row, *one.passages] for one in drawn] == triples.tolist()
    _, batch = batch_of(task, [0, 1])
    assert batch["teacher"].shape == (2, 2)
    few = distillation(task.step, [ASKED[3]], store, [tmp_path])
    assert len(few) == 2, "of a sample of queries only their lines"


# Over the batch


def max_sim_by_definition(queries: list[np.ndarray], passages: list[np.ndarray]) -> np.ndarray:
    return np.array([[sum(max(q @ p for p in one) for q in asked) for one in passages] for asked in queries])


@pytest.mark.parametrize("kind", ["text", "token"])
@pytest.mark.parametrize("pool", [None, 2])
def test_a_batchs_loss_is_that_of_all_its_passages(store: Any, kind: str, pool: int | None, tmp_path: Path) -> None:
    written = [vectors_in(tmp_path / str(seed), seed, kind) for seed in (1, 2)]
    task, encoder = task_of(store, "kl-in-batch", [tmp_path / "1", tmp_path / "2"], in_batch_group=pool), Lookup()
    examples, batch = batch_of(task, [1, 4, 6, 7])
    found = whole_loss(task, encoder, nn.ModuleDict(), batch)["loss"].item()
    said = [
        max_sim_by_definition(
            [own["queries"][one.query.row] for one in examples],
            [own["passages"][passage] for one in examples for passage in one.passages],
        )
        for own in written
    ]
    teacher, student = (said[0] + said[1]) / 2, student_scores(task, encoder, examples, over_batch=True)
    if pool:
        halves = [(slice(2 * half, 2 * half + 2), slice(6 * half, 6 * half + 6)) for half in range(2)]
        expected = np.mean([oracles.kl_over_pool(student[place], teacher[place], 0.25) for place in halves])
    else:
        expected = oracles.kl_over_pool(student, teacher, 0.25)
    assert found == pytest.approx(expected, rel=1e-5 if kind == "text" else 2e-2), "token vectors are kept in float16"


def test_a_student_that_is_its_teacher_has_nothing_to_learn(store: Any, tmp_path: Path) -> None:
    """Vectors of the student itself as its teacher's, over one temperature."""
    encoder, own = Lookup(), step(**FIELDS, loss="kl-in-batch")
    for name, sequences, length in (("queries", store.queries, 6), ("passages", store.passages, 12)):
        table = encoder.table.weight.detach().numpy()
        texts = [table[[1, *text[: length - 2].tolist(), 2]].mean(axis=0)[None] for text in sequences]
        write_vectors(tmp_path, name, np.arange(len(texts)), texts, "text")
    same = BatchDistillation(own.model_copy(update={"teacher_temperature": 0.5}), ASKED, store, [tmp_path])
    _, batch = batch_of(same, [0, 1, 2, 3])
    loss = whole_loss(same, encoder, nn.ModuleDict(), batch)["loss"]
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-9)
    assert encoder.table.weight.grad is not None
    assert encoder.table.weight.grad.abs().max() < 1e-6
    other = BatchDistillation(own, ASKED, store, [tmp_path])
    assert whole_loss(other, encoder, nn.ModuleDict(), batch)["loss"].item() > 1e-3


def test_a_text_without_vectors_is_refused(tmp_path: Path) -> None:
    write_vectors(tmp_path, "passages", np.array([2, 5]), [np.ones((2, 3)), np.ones((1, 3))], "token")
    vectors = TextVectors(tmp_path, "passages")
    padded, real = vectors.padded(np.array([[5, 2]]))
    assert padded.shape == (1, 2, 2, 3)
    assert real.tolist() == [[[True, False], [True, True]]]
    with pytest.raises(EncoreError, match=r"no vector of row 4 of the passages; .* make it again"):
        vectors.padded(np.array([5, 4]))
    (tmp_path / "passages.vectors.bin").write_bytes(b"short")
    with pytest.raises(EncoreError, match="does not hold the 3 vectors"):
        TextVectors(tmp_path, "passages")


def test_vectors_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="not finite"):
        write_vectors(tmp_path, "queries", np.array([0]), [np.array([[np.inf, 0]])], "text")


# What is shown to teachers


def test_too_few_negatives_are_filled_the_same_way_every_time() -> None:
    poor = query(4, (9,))
    two, four = filled(poor, 2, PASSAGES), filled(poor, 4, PASSAGES)
    assert two.negatives == four.negatives[:2]
    assert two.negatives[0] == 9
    assert len(set(four.negatives)) == 4
    assert 4 not in four.negatives
    assert filled(ASKED[0], 3, PASSAGES) == ASKED[0]
    assert len(filled(query(4, (0,)), 99, 6).negatives) == 5, "all that a small collection has"


def test_a_loss_without_teachers_is_refused(store: Any) -> None:
    with pytest.raises(EncoreError, match="loss margin-mse learns from teachers, and there are none"):
        task_of(store, "margin-mse", [])
    assert issubclass(PublishedDistillation, PairDistillation)


# Over pairs and the batch


def test_two_kinds_of_teachers_add_the_margins_to_own_and_to_others_passages(tmp_path: Path) -> None:
    """Hofstaetter et al. 2021, section 3.3: pairs, and 0.75 of the margins between queries, by definition."""
    task, encoder = dual_task(tmp_path), Lookup()
    examples, batch = batch_of(task, [0, 3, 5, 6])
    terms = whole_loss(task, encoder, nn.ModuleDict(), batch)
    rows, passages = np.array([[one.query.row] for one in examples]), np.array([one.passages for one in examples])
    own, every = (student_scores(task, encoder, examples, over_batch=over) for over in (False, True))
    pairs = oracles.margin_mse(own, score(rows, passages, 1).astype(np.float32) / 0.25)
    texts = {name: TextVectors(tmp_path / "batch", name) for name in ("queries", "passages")}
    vectors = {
        name: found.padded(shown.ravel()) for (name, found), shown in zip(texts.items(), (rows, passages), strict=True)
    }
    kept = [
        [own[real].astype(float) for own, real in zip(*vectors[name], strict=True)] for name in ("queries", "passages")
    ]
    batchwise = oracles.margin_mse_in_batch(every, oracles.max_sim(*kept) / 0.25)
    assert terms["pairs"].item() == pytest.approx(pairs, rel=1e-6)
    assert terms["distillation"].item() == pytest.approx(batchwise, rel=1e-6)
    assert terms["loss"].item() == pytest.approx(pairs + 0.75 * batchwise, rel=1e-6)


def test_what_a_published_teacher_did_not_score_is_left_out(tmp_path: Path) -> None:
    whole = dual_task(tmp_path / "whole")
    queries, passages = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 10, 14, 1, 2, 12])  # nothing of 1 but its positive
    for part in ("pairs", "batch"):
        (tmp_path / part).mkdir()
    write_scores(tmp_path / "pairs", queries, passages, np.arange(6.0))
    vectors_in(tmp_path / "batch", 2, "token")
    outputs = [tmp_path / "pairs", tmp_path / "batch"]
    task = task_of(whole.store, "margin-mse", outputs, per_query=1)
    assert [(one.row, one.positives, one.negatives) for one in task.queries] == [(0, (0,), (10, 14)), (2, (2,), (12,))]
    assert len(whole.queries) == 8
    write_scores(tmp_path / "pairs", queries[3:], passages[3:], np.arange(3.0))
    with pytest.raises(EncoreError, match=r"scored a positive and negatives .1 or more. of 1 queries, and two"):
        task_of(whole.store, "margin-mse", outputs, per_query=1)


@pytest.mark.parametrize(
    ("fields", "kept"), [({}, [0, 3]), ({"replacement": True}, [0, 2, 3]), ({"margin_bins": 4}, [0, 2, 3])]
)
def test_no_passage_is_drawn_that_a_published_teacher_did_not_score(
    tmp_path: Path, fields: dict[str, Any], kept: list[int]
) -> None:
    whole = dual_task(tmp_path / "whole")
    queries, passages = np.array([0, 0, 0, 2, 2, 3, 3, 3]), np.array([0, 10, 14, 2, 12, 3, 13, 15])
    vectors_in(tmp_path / "batch", 2, "token")
    (tmp_path / "pairs").mkdir()
    write_scores(tmp_path / "pairs", queries, passages, np.arange(8.0))
    task = task_of(whole.store, "margin-mse", [tmp_path / "pairs", tmp_path / "batch"], per_query=2, **fields)
    assert [one.row for one in task.queries] == kept
    for seed in range(20):
        drawn = [task.example(row, np.random.default_rng(seed)) for row in range(len(task))]
        assert task.collate(drawn)["teacher"].shape == (len(kept), 3)


def test_each_bin_of_margins_is_drawn_alike_and_so_is_each_negative_in_it() -> None:
    margins = np.array([0.0, 0.1, 0.2, 0.3, 9.9, 10.0, 5.0])
    drawn = balanced(margins, 10, 60_000, np.random.default_rng(0))
    shares = np.bincount(drawn, minlength=7) / len(drawn)
    np.testing.assert_allclose(shares, [1 / 12] * 4 + [1 / 6] * 2 + [1 / 3], atol=0.01)
    assert set(balanced(np.ones(3), 10, 200, np.random.default_rng(0))) == {0, 1, 2}, "equal margins are one bin"


def test_balanced_negatives_are_a_querys_own(tmp_path: Path) -> None:
    task = dual_task(tmp_path, margin_bins=10, per_query=1)
    drawn = [task.example(3, np.random.default_rng(seed)) for seed in range(40)]
    assert {one.passages[0] for one in drawn} == {3}
    assert {one.passages[1] for one in drawn} == {13, 15, 17}


def test_a_task_with_bins_draws_each_bin_alike(tmp_path: Path) -> None:
    """Of two negatives of one margin each comes half as often as the one of another."""
    close = {3: 5.0, 13: 1.0, 15: 1.01, 17: 4.0}
    task, rows = dual_task(tmp_path, margin_bins=10, per_query=1), np.array(list(close))
    write_scores(tmp_path / "close", np.full(4, 3), rows, np.array(list(close.values())))
    task.pairs.scores = [PairScores(tmp_path / "close", PASSAGES)]
    drawn = [task.example(3, np.random.default_rng(seed)).passages[1] for seed in range(1000)]
    shares = {passage: drawn.count(passage) / 1000 for passage in (13, 15, 17)}
    assert shares == pytest.approx({13: 0.25, 15: 0.25, 17: 0.5}, abs=0.05)


# A run's scores


def test_a_runs_scores_are_its_own_or_the_lowest_that_it_lists(store: Any, tmp_path: Path) -> None:
    run = {"q0": rank(["d10", "d00", "d12"], [7.0, 5.5, 2.25]), "q2": rank(["d20"], [3.0])}
    write_run(tmp_path, run, describe("bm25", collection="c", split="train", retrieval=[]))
    queries, passages = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 10, 14, 1, 11, 12])
    assert listed_scores(tmp_path, store, queries, passages).tolist() == [5.5, 7.0, 2.25, 0, 0, 3.0]


def test_a_residual_is_the_hinge_of_what_the_scores_leave(store: Any, tmp_path: Path) -> None:
    task, encoder = task_of(store, "residual", [scores_in(tmp_path, 1)], teacher_temperature=10.0), Lookup()
    examples, batch = batch_of(task, [0, 3, 5, 6])
    rows, passages = np.array([[one.query.row] for one in examples]), np.array([one.passages for one in examples])
    student = student_scores(task, encoder, examples, over_batch=False)
    expected = oracles.residual_margin(student, score(rows, passages, 1) / 10)
    assert whole_loss(task, encoder, nn.ModuleDict(), batch)["loss"].item() == pytest.approx(expected, rel=1e-6)
