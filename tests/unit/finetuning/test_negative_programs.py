"""The programs that make negatives, on twenty passages: what they leave in the folder and its manifest."""

import gzip
import json

import numpy as np
import pytest

from encore.data import runs
from encore.data.collection import Judgment, write_collection
from encore.data.rankings import rank
from encore.data.runs import describe, write_run
from encore.finetuning.negatives import mining
from encore.storage import manifest
from encore.storage.files import contents
from tests.support import inside

DOCUMENTS = [f"d{i:02d}" for i in range(20)]
RECIPE = {"split": "train", "depth": 10, "keep": 4, "exclude_judged": True, "seed": 0}


def call(stage, output, spec, source=None, **inputs):
    """Make a folder as a rule does; give the exit status and what its manifest says."""
    done = inside.make(stage, spec, inputs, output, **({"source": str(source)} if source else {}))
    said = manifest.read_manifest(output)["results"] if done.returncode == 0 else done.stderr
    return done.returncode, said


@pytest.fixture
def made(tmp_path):
    """A collection of questions, a run of BM25's kind over them and one of a model's, all with manifests."""
    with manifest.record(tmp_path / "collection", stage="collection.beir", spec={}, inputs=[]):
        write_collection(
            tmp_path / "collection",
            [{"_id": name, "title": "", "text": "right" if name in ("d03", "d12") else "wrong"} for name in DOCUMENTS],
            [{"_id": name, "text": "a question"} for name in ("q1", "q2")],
            {"train": [Judgment("q1", "d00", 1), Judgment("q2", "d01", 1)]},
            answers=[{"_id": name, "answers": ["Right"]} for name in ("q1", "q2")],
        )
    for name, order in (("bm25", DOCUMENTS), ("mined", DOCUMENTS[::-1])):
        header = describe(name, collection="collection", split="train", retrieval=[])
        with manifest.record(tmp_path / name, stage="search", spec={}, inputs=[]):
            ranked = rank(order, np.arange(20.0, 0, -1))
            write_run(tmp_path / name, {"q1": ranked, "q2": ranked}, header)
    return tmp_path


def test_runs_are_as_the_programs_read_them(made):
    assert runs.read_run(made / "bm25")["q1"].documents == DOCUMENTS


def test_negatives_say_how_many_and_what_set_they_are(made):
    spec, places = {**RECIPE, "depth": 14, "keep": 14}, {"run": made / "bm25", "collection": made / "collection"}
    code, bm25 = call("negatives", made / "n1", spec, **places)
    assert (code, bm25["kept"], bm25["judged"]) == (0, 26, 2)
    assert bm25["set"] == mining.identity(mining.read_negatives(made / "n1"))
    assert json.loads((made / "n1/statistics.json").read_text()) == bm25


def test_the_first_improbable_passages_are_in_the_order_before_the_ranking_again(made):
    """The ranker turns the order round, gives d11 to d00 less than ln(0.1 / 0.9) = -2.197; d00 and d01 are judged."""
    header = describe("ranker", collection="collection", split="train", retrieval=[])
    with manifest.record(made / "ranker", stage="rerank", spec={}, inputs=[]):
        again = rank(DOCUMENTS[::-1], 5.5 - np.arange(20.0))
        write_run(made / "ranker", {"q1": again, "q2": again}, header)
    spec = {**RECIPE, "depth": 20, "negatives_below": 0.1, "kept": "first"}
    places = {"run": made / "ranker", "first": made / "bm25", "collection": made / "collection"}
    code, found = call("negatives", made / "n", spec, **places)
    assert (code, found["kept"], found["answering"]) == (0, 8, 16)
    four = {f"d0{number}": number + 1 for number in range(2, 5)}
    assert mining.read_negatives(made / "n") == {"q1": {"d01": 2} | four, "q2": {"d00": 1} | four}


def test_answers_to_a_query_of_equal_text_are_not_negatives_where_copies_are_ignored(made):
    places = {"run": made / "bm25", "collection": made / "collection"}
    wide = {**RECIPE, "depth": 20, "keep": 20}
    for name, spec, others in (("without", wide, True), ("with", {**wide, "ignore_copies": True}, False)):
        assert call("negatives", made / name, spec, **places)[0] == 0
        drawn = mining.read_negatives(made / name)
        assert ("d01" in drawn["q1"], "d00" in drawn["q2"]) == (others, others)


def test_passages_with_an_answer_become_positives_and_the_sets_are_merged(made):
    places = {"collection": made / "collection"}
    left_out = {**RECIPE, "depth": 20, "keep": 20, "answers": "left out"}
    code, bm25 = call("negatives", made / "n1", left_out, run=made / "bm25", **places)
    assert (code, bm25["answering"], "positives" in bm25) == (0, 4, False)
    found = {**RECIPE, "answers": "positives"}
    _, mined = call("negatives", made / "n2", found, run=made / "mined", **places)
    assert (mined["answering"], mined["positives"]) == (2, 2)
    assert mining.read_positives(made / "n2") == {"q1": {"d12": 8}, "q2": {"d12": 8}}
    spec = {"from": ["bm25", "a model"]}
    code, both = call("merged_negatives", made / "n3", spec, bm25=made / "n1", mined=made / "n2")
    assert (code, both["kept"], both["positives"]) == (0, bm25["kept"], 2)
    assert mining.read_negatives(made / "n3") == mining.read_negatives(made / "n1")
    assert mining.read_positives(made / "n3") == mining.read_positives(made / "n2")
    assert not any(set(drawn) & {"d03", "d12"} for drawn in mining.read_negatives(made / "n3").values())


def test_listed_negatives_are_drawn_from_the_file_that_was_planned(made):
    path = made / "triples.tsv"
    path.write_text("q1\td00\td05\nq1\td00\td00\nq2\td01\td06\nq7\td01\td06\n")
    asked = {"split": "train", "queries": None, "sample": 0, "exclude_judged": True, "keep": 9, "seed": 0}
    spec = {**asked, "form": "triples", "content": contents({"file": path})["file"]}
    flags = {"source": path, "collection": made / "collection"}
    code, found = call("negatives_from_file", made / "n", spec, **flags)
    assert (code, found["kept"], found["judged"], found["unknown"]) == (0, 2, 1, 1)
    assert mining.read_negatives(made / "n") == {"q1": {"d05": 0}, "q2": {"d06": 0}}
    _, one = call("negatives_from_file", made / "one", {**spec, "queries": 1}, **flags)
    assert one["queries"] == 1
    path.write_text("q1\td00\td05\n")
    code, said = call("negatives_from_file", made / "m", spec, **flags)
    assert code == 1
    assert "is not what was planned with" in said


def test_published_negatives_are_drawn_by_rank_and_only_where_there_is_a_passage(made):
    path = made / "collection/negatives/train.tsv.gz"
    path.parent.mkdir()
    lines = ["q1\td05\t1", "q1\td00\t2", "q1\tgone\t3", "q1\td06\t4", "q2\td07\t1", "q2\td08\t0", "q9\td05\t1"]
    with manifest.record(made / "collection", stage="collection.beir", spec={}, inputs=[]):
        path.write_bytes(gzip.compress(("\n".join([mining.HEADER, *lines]) + "\n").encode()))
        with (made / "collection/qrels/train.tsv").open("a") as file:
            file.write("q2\td08\t0\n")
    spec = {
        "split": "train",
        "queries": None,
        "sample": 0,
        "exclude_judged": True,
        "keep": 9,
        "seed": 0,
        "form": "published",
    }
    code, found = call("negatives_from_dataset", made / "n", spec, collection=made / "collection")
    assert (code, found["kept"], found["judged"], found["unknown"]) == (0, 4, 1, 1)
    judged_so = {"d08": 0}
    assert mining.read_negatives(made / "n") == {"q1": {"d05": 1, "d06": 4}, "q2": judged_so | {"d07": 1}}
    few = {**spec, "keep": 1}
    assert call("negatives_from_dataset", made / "few", few, collection=made / "collection")[0] == 0
    assert all(len(drawn) <= 1 for drawn in mining.read_negatives(made / "few").values())
    other = {**spec, "split": "valid"}
    code, said = call("negatives_from_dataset", made / "m", other, collection=made / "collection")
    assert code == 1
    assert said.startswith("error: ")
