"""A scoring of pairs that was killed goes on where it was, to the same bytes; for scorers of all kinds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.data.collection import QuerySample
from encore.data.rankings import rank
from encore.data.runs import describe, write_run
from encore.data.tokens import TokenStore
from encore.finetuning import scoring
from encore.finetuning.scoring import open_scorer
from encore.finetuning.step import FinetuneInputs
from encore.finetuning.teachers import TeacherRequest
from encore.finetuning.teachers.stage import write_teacher_outputs
from encore.models import embed
from encore.models.memory import PartSize
from encore.retrieval.rerank import Reranking, answer_reranked
from encore.storage.manifest import MANIFEST
from encore.storage.sealed import SealedBlocks
from tests.support.small_home import NUMERICS, STEP, finetuned

KINDS = ["vector", "late-interaction", "cross-encoder"]
SHORT = {name: value for name, value in STEP.items() if name != "validate_every"} | {"per_query": 1, "steps": 2}


class KilledError(Exception):
    pass


@pytest.fixture(scope="module")
def models(home: Path, negatives: Path) -> dict[str, Path]:
    for kind in KINDS:
        step = SHORT | ({} if kind == "vector" else {"scorer": kind, "token_dimension": 8})
        places = [home / name for name in ("tokens", "collection", "start")]
        finetuned(step, FinetuneInputs(*places, negatives), home / f"kept-{kind}", home / f"state-kept-{kind}")
    found = {kind: home / f"kept-{kind}" for kind in KINDS}
    for folder in (home / "tokens", *found.values()):
        (folder / MANIFEST).write_text(folder.name)  # other bytes for each
    return found


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few pairs are many parts."""
    monkeypatch.setattr(scoring.passage_blocks, "__defaults__", (7,))
    monkeypatch.setitem(embed.PASS, "cpu", PartSize(8))


def kill_after(pairs: int) -> Any:
    def said(done: int) -> None:
        if done >= pairs:
            raise KilledError

    return said


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_scoring_goes_on_to_the_same_bytes(
    home: Path, models: dict[str, Path], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = TokenStore(home / "tokens")
    rng = np.random.default_rng(0)
    queries, passages = rng.integers(0, len(store.queries), 60), rng.integers(0, len(store.passages), 60)
    whole = open_scorer(models[kind], store).score(queries, passages)
    with pytest.raises(KilledError):
        open_scorer(models[kind], store).score(queries, passages, kill_after(30), tmp_path, "spec")
    told: list[int] = []
    again = open_scorer(models[kind], store).score(queries, passages, told.append, tmp_path, "spec")
    assert again.tobytes() == whole.tobytes()
    assert min(told) > 20, "what was done is not scored again"
    assert told[-1] == 60
    assert "resuming after" in capsys.readouterr().out
    for other in ((queries, passages[::-1], "spec"), (queries, passages, "other spec")):
        expected = open_scorer(models[kind], store).score(*other[:2])
        found = open_scorer(models[kind], store).score(*other[:2], state=tmp_path, spec=other[2])
        assert found.tobytes() == expected.tobytes(), "scores of other pairs or of another spec are made again"
        assert "is cut off after 0 blocks" in capsys.readouterr().out


def test_a_scoring_goes_on_with_batches_of_another_size(
    home: Path, models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it has on another device."""
    store = TokenStore(home / "tokens")
    rng = np.random.default_rng(0)
    queries, passages = rng.integers(0, len(store.queries), 60), rng.integers(0, len(store.passages), 60)
    scorer = open_scorer(models["cross-encoder"], store)
    whole = scorer.score(queries, passages)
    with pytest.raises(KilledError):
        scorer.score(queries, passages, kill_after(30), tmp_path, "spec")
    monkeypatch.setitem(embed.PASS, "cpu", PartSize(50))
    again = scorer.score(queries, passages, state=tmp_path, spec="spec")
    np.testing.assert_allclose(again, whole, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_teacher_says_the_same(
    home: Path, models: dict[str, Path], negatives: Path, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"split": "train", "queries": None, "sample": 0, "least_negatives": 0}
    request = TeacherRequest(form="scores", **asked, fill=5, numerics=NUMERICS)
    places = (models[kind], home / "tokens", home / "collection", negatives)
    write_teacher_outputs(request, *places, tmp_path / "whole")
    killed_while_writing(monkeypatch, 6)
    with pytest.raises(KilledError):
        write_teacher_outputs(request, *places, tmp_path / "again", tmp_path / "state")
    monkeypatch.undo()
    monkeypatch.setattr(scoring.passage_blocks, "__defaults__", (7,))
    monkeypatch.setitem(embed.PASS, "cpu", PartSize(8))
    assert not (tmp_path / "again").exists()
    write_teacher_outputs(request, *places, tmp_path / "again", tmp_path / "state")
    for name in ("pair_queries.npy", "pair_passages.npy", "pair_scores.npy"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def killed_while_writing(monkeypatch: pytest.MonkeyPatch, parts: int) -> None:
    """Die after so many parts are written down."""
    append = SealedBlocks.append
    written: list[object] = []

    def count(self: SealedBlocks, block: bytes | memoryview) -> None:
        append(self, block)
        written.append(block)
        if len(written) == parts:
            raise KilledError

    monkeypatch.setattr(SealedBlocks, "append", count)


def test_a_killed_reranking_ranks_the_same(
    home: Path,
    models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = TokenStore(home / "tokens")
    ranked = rank(store.passages.names[:30], np.arange(30.0, 0, -1))
    header = describe("bm25", collection="collection", split="test", retrieval=[])
    write_run(tmp_path / "first", dict.fromkeys(store.queries.names[:5], ranked), header)
    queries = Reranking(QuerySample("test"), 25, NUMERICS, "x", "c", 20)
    places = (models["cross-encoder"], home / "tokens", tmp_path / "first")
    whole = answer_reranked(queries, *places, tmp_path / "whole")
    killed_while_writing(monkeypatch, 4)
    with pytest.raises(KilledError):
        answer_reranked(queries, *places, tmp_path / "again", tmp_path / "state")
    monkeypatch.undo()
    monkeypatch.setitem(embed.PASS, "cpu", PartSize(8))
    assert answer_reranked(queries, *places, tmp_path / "again", tmp_path / "state") == whole
    runs = [(tmp_path / name / "run.npz").read_bytes() for name in ("whole", "again")]
    assert runs[0] == runs[1]
    (models["cross-encoder"] / MANIFEST).write_text("made again, to other bytes")
    capsys.readouterr()
    answer_reranked(queries, *places, tmp_path / "other", tmp_path / "state")
    assert "is cut off after 0 blocks" in capsys.readouterr().out
