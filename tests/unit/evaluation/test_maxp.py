"""Documents that are cut into passages: each has the score of its best one, and the judgments of the whole."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from encore.data.collection import Collection
from encore.data.rankings import RunMatrices, rank
from encore.data.runs import describe, write_run
from encore.data.trec_runs import write_trec
from encore.errors import EncoreError
from encore.evaluation import EvaluationProtocol, judging
from encore.evaluation.check_from_files import check_scores
from encore.products.catalogue import load_plan
from encore.storage.files import write_json
from tests.support.small_beir import build, fields, write

LONG = '{"_id": "d1", "title": "Lift", "text": "a b c d e f g"}'
CORPUS = [LONG, '{"_id": "d2", "text": "drag of a tail"}', '{"_id": "d3", "text": "x"}']
SPLITS = {"test": {"RR@10": "RR@10", "R@2": "R@2", "nDCG@10": "nDCG@10"}}


@pytest.fixture
def own(tmp_path: Path) -> Collection:
    folder = write(tmp_path / "in", corpus=CORPUS, test=["q2\td1\t2", "q2\td2\t1", "q2\td3\t0"])
    return build(folder, tmp_path / "out", windows=[3, 2])


def test_documents_are_cut_into_overlapping_passages_with_their_title_and_judgments(own: Collection) -> None:
    texts = {row["_id"]: f"{row['title']}|{row['text']}" for row in own.corpus()}
    assert texts == {
        **{"d1#0": "Lift|a b c", "d1#1": "Lift|c d e", "d1#2": "Lift|e f g"},
        **{"d2#0": "|drag of a", "d2#1": "|a tail", "d3#0": "|x"},
    }
    assert own.qrels("test")["q2"] == {"d1#0": 2, "d1#1": 2, "d1#2": 2, "d2#0": 1, "d2#1": 1, "d3#0": 0}


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"windows": [2, 3]}, "leave words out"),
        ({"windows": [3, 2], "unknown_judgments": "keep"}, "from documents that are here"),
        ({"windows": [3, 2], "ignore_identical_ids": True}, "have no query's id"),
    ],
)
def test_windows_that_would_change_what_is_searched_are_refused(
    others: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValidationError, match=message):
        fields(write(tmp_path / "in"), **others)


def test_a_document_has_the_score_of_its_best_passage(own: Collection, tmp_path: Path) -> None:
    found = {"q2": rank(["d3#0", "d2#1", "d1#0", "d2#0", "d1#2"], np.array([9.0, 5.0, 3.0, 2.0, 1.0]))}
    protocol = EvaluationProtocol(splits=SPLITS, scored_by_passages=True)
    scores = judging.judge(found, own, protocol)
    values = {name: float(scored.values[0]) for (_, name), scored in scores.items()}
    gains = 1 / np.log2(3) + 2 / np.log2(4)
    assert values["RR@10"] == 0.5, "d3, d2, d1"
    assert values["R@2"] == 0.5
    assert values["nDCG@10"] == pytest.approx(gains / (2 + 1 / np.log2(3)))

    run = tmp_path / "run"
    header = describe("made-up", collection="own", split="test", retrieval=[])
    write_run(run, found, header)
    write_trec(run / "run.trec.gz", RunMatrices.of(found), header)
    write_json(run / "manifest.json", {})
    assert check_scores(run, own.folder, protocol, scores) == 1, "trec_eval has the same values"
    with pytest.raises(EncoreError, match="for trec_eval"):
        check_scores(run, own.folder, EvaluationProtocol(splits=SPLITS), scores)


def test_a_dataset_with_windows_says_so_to_its_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write(tmp_path / "in")
    with pytest.raises(ValueError, match="leave out `ignore_identical_ids`"):
        fields(place, windows=[3, 2], ignore_identical_ids=True)
    run = {"extends": "config/nano.yaml", "title": "own", "tables": {"table1": ["bm25"]}}
    entry = fields(place, windows=[3, 2]).model_dump(mode="json", exclude_unset=True)
    part = {"kind": "subset", "of": "own", "train_queries": 1}
    run["datasets"] = {"own": entry, "part": part}
    monkeypatch.chdir(Path(__file__).parents[3])
    plan = load_plan(Path("config/own.yaml"), run)
    for name in ("own", "part"):
        assert plan.scores("bm25", None, name, "test").spec["scored_by_passages"] is True
    assert "scored_by_passages" not in plan.scores("bm25", None, "pydocs", "test").spec
    assert plan.collection("own").spec["windows"] == [3, 2]
