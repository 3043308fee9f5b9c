"""What tested queries share with training is counted by query, noted under the table, and told apart in columns."""

from pathlib import Path

import numpy as np
import pytest

from encore.data.collection import Collection, Judgment, write_collection
from encore.data.copies import overlap_with_training
from encore.data.rankings import Ranking
from encore.evaluation import EvaluationProtocol, judging, scores
from encore.evaluation.scores import RELEVANT, TEXT
from encore.products.catalogue import load_plan
from encore.products.explained import explanations
from encore.products.tables.layout import of_unseen
from encore.storage.files import write_json
from encore.storage.manifest import MANIFEST, describe
from tests.support.small_beir import build, fields, write
from tests.support.small_table import lines_of, plan, table_of, write_scores

QUERIES = {
    "t1": "What is lift?",
    "t2": "drag",
    "a": "what  IS Lift",  # the text of t1
    "b": "wing",  # judges d1, which answers t1, relevant
    "c": "both",  # as little as d3, which is related to t1 and answers nothing
    "d": "ﬁn",  # NFKC: fin
    "t3": "Fin.",
}
CORPUS = [{"_id": f"d{number}", "title": "", "text": "x"} for number in range(6)]


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    judged = {
        "train": [("t1", "d1", 2), ("t1", "d3", 1), ("t2", "d2", 1), ("t3", "d4", 1), ("t2", "d5", 0)],
        "test": [("a", "d0", 1), ("b", "d1", 1), ("b", "d0", 3), ("c", "d3", 1), ("c", "d5", 2), ("d", "d2", 2)],
    }
    rows = ({"_id": name, "text": text} for name, text in QUERIES.items())
    qrels = {split: [Judgment(*each) for each in lines] for split, lines in judged.items()}
    write_collection(tmp_path / "c", CORPUS, rows, qrels)
    return Collection(tmp_path / "c")


def test_texts_and_answers_of_training_queries_are_found(collection: Collection) -> None:
    found = overlap_with_training(collection, "test")
    assert found.texts == {"a", "d"}
    assert found.grades == {"b": 1, "d": 2}
    assert (found.relevant(), found.relevant(2), found.relevant(3)) == ({"b", "d"}, {"d"}, set())


def test_another_draws_training_does_not_count(tmp_path: Path) -> None:
    rows = [{"_id": name, "text": "the same"} for name in ("p", "q", "r")]
    qrels = {
        "train-1": [Judgment("p", "d1", 1)],
        "test-1": [Judgment("q", "d2", 1)],
        "test-80": [Judgment("r", "d1", 1)],
    }
    write_collection(tmp_path / "c", CORPUS, rows, qrels)
    assert overlap_with_training(Collection(tmp_path / "c"), "test-1").texts == {"q"}
    of_another = overlap_with_training(Collection(tmp_path / "c"), "test-80")
    assert (of_another.texts, of_another.grades) == (frozenset(), {})


def test_scores_say_of_each_query_what_it_shares_by_what_the_measure_calls_relevant(
    collection: Collection, tmp_path: Path
) -> None:
    run = {query: Ranking(["d0", "d1"], np.array([2.0, 1.0], np.float32)) for query in "abcd"}
    protocol = EvaluationProtocol(splits={"test": {"RR@10": "RR@10", "strict": "RR(rel=2)@10"}})
    scores.write_scores(tmp_path, judging.judge(run, collection, protocol))
    found = scores.read_scores(tmp_path)
    assert found["test", "RR@10"].queries == ["a", "b", "c", "d"]
    assert found["test", "RR@10"].shared.tolist() == [TEXT, RELEVANT, 0, RELEVANT + TEXT]
    assert found["test", "strict"].shared.tolist() == [TEXT, 0, 0, RELEVANT + TEXT]


def test_a_collection_that_only_tests_shares_nothing(tmp_path: Path) -> None:
    folder = write(tmp_path / "in")
    splits = {"test": fields(folder).splits["test"].model_dump()}
    found = overlap_with_training(build(folder, tmp_path / "out", splits=splits), "test")
    assert (found.texts, found.grades) == (frozenset(), {})


def met(tmp_path: Path, relevant: int, text: int, **changes):
    """The small table, whose first queries share something with training."""
    table = plan(tmp_path, seeds=2, **changes)
    for folder in {read["folder"] for row in table["rows"] for cell in row["cells"].values() for read in cell["reads"]}:
        found = scores.read_scores(Path(folder))
        shared = {place: with_shared(one, relevant, text) for place, one in found.items()}
        scores.write_scores(Path(folder), shared)
        outputs = {scores.FILE: describe(Path(folder) / scores.FILE)}
        write_json(Path(folder) / MANIFEST, {"spec": {}, "results": {}, "inputs": {}, "outputs": outputs})
    return table


def with_shared(one: scores.Scored, relevant: int, text: int) -> scores.Scored:
    places = np.arange(len(one.queries))
    flags = (RELEVANT * (places < relevant) + TEXT * (places < text)).astype(np.int8)
    return scores.Scored(one.queries, one.clusters, one.values, one.low, one.high, one.answered, flags)


def test_a_measure_of_which_training_has_met_over_a_tenth_gets_a_column_of_the_others(tmp_path: Path) -> None:
    table = table_of(met(tmp_path, relevant=5, text=2))
    assert [column.id for column in table.columns] == ["rr", "rr-unseen", "ndcg"], "one cluster is left under nDCG"
    assert [column.label for column in table.columns][:2] == ["RR@10", "RR@10 (unseen)"]
    row = next(row for row in table.rows if row.id == "ict")
    seeds = [scores.read_scores(tmp_path / f"ict-s{seed}")["test", "RR@10"].values for seed in range(2)]
    everything, unseen_only = row.cells["rr"].ours, row.cells["rr-unseen"].ours
    assert everything.value == pytest.approx(np.mean(seeds), abs=1e-12)
    assert unseen_only.value == pytest.approx(np.mean([values[5:] for values in seeds]), abs=1e-12)
    assert (everything.judged, unseen_only.judged) == (40, 35)
    assert everything.value != unseen_only.value
    assert row.cells["rr-unseen"].comparisons.keys() == {"none", "control", "mlm"}
    assert all(one.p_holm is None for one in row.cells["rr-unseen"].comparisons.values()), "it is secondary"
    notes = " ".join(table.footnotes)
    assert (
        "RR@10: of 40 queries of Python documentation, 5 have a relevant document that also answers a training query "
        "and 2 have the text of one; “unseen” are the other 35." in notes
    )
    assert "RR@10 (unseen): Python documentation, split test of pydocs-1a2b3c4d; 35 queries judged" in notes
    assert len(lines_of(tmp_path, table)) == 2 * len({row.id for row in table.rows})


def test_settings_of_several_splits_are_told_apart_by_themselves(tmp_path: Path) -> None:
    """As where models learn from 1 % and from 80 % of the questions, and each is tested on its own rest."""
    table = met(tmp_path, relevant=20, text=0, columns=[{"id": "rr", "label": "RR@10", "primary": True}])
    other = write_scores(tmp_path / "other", 0.2, 3)
    request = {"dataset": "pydocs", "collection": "pydocs-1a2b3c4d", "split": "graded", "value": "nDCG@10"}
    request |= {"system": "tiny+ict", "reads": [{"seed": 0, "folder": other}]}
    row = {"id": "ict", "label": "ICT", "setting": "Other", "system": "tiny+ict", "cells": {"rr": request}}
    table["rows"] = [row, *({**each, "cells": {"rr": each["cells"]["rr"]}} for each in table["rows"])]
    made = table_of(table)
    assert [column.id for column in made.columns] == ["rr", "rr-unseen"]
    first, *_ = made.rows
    assert (first.cells["rr"].ours is not None, first.cells["rr-unseen"].ours) == (True, None)
    assert first.cells["rr-unseen"].reason == "training has met hardly any of its queries, or nearly all"
    assert next(each for each in made.rows[1:] if each.id == "ict").cells["rr-unseen"].ours.judged == 20
    assert [note for note in made.footnotes if "training query" in note] == [
        "RR@10: of 40 queries of Python documentation, split test, 20 have a relevant document that also answers a "
        "training query; “unseen” are the other 20."
    ]


def test_a_tenth_or_less_is_noted_and_has_no_column(tmp_path: Path) -> None:
    table = table_of(met(tmp_path, relevant=0, text=4, columns=[{"id": "rr", "label": "RR@10", "primary": True}]))
    assert [column.id for column in table.columns] == ["rr"]
    (note,) = [note for note in table.footnotes if "training query" in note]
    assert note == "RR@10: of 40 queries of Python documentation, 4 have the text of a training query."


def test_a_table_whose_queries_share_nothing_says_nothing(tmp_path: Path) -> None:
    table = table_of(plan(tmp_path, seeds=2))
    assert [column.id for column in table.columns] == ["rr", "ndcg"]
    assert not [note for note in table.footnotes if "training query" in note]


def test_where_training_has_met_every_query_none_is_left_to_show(tmp_path: Path) -> None:
    table = table_of(met(tmp_path, relevant=40, text=0))
    assert [column.id for column in table.columns] == ["rr", "ndcg"]
    assert any("40 have a relevant document" in note for note in table.footnotes)


@pytest.mark.usefixtures("at_the_root")
def test_such_a_column_is_explained_by_what_it_was_computed_from() -> None:
    plan = load_plan(Path("config/nano.yaml"))
    (own,), (unseen,) = (explanations(plan, "table1", "bm25", name) for name in ("rr10", "rr10-unseen"))
    assert own.reads == unseen.reads != []
    assert unseen.title == own.title.replace("RR@10", "RR@10 (unseen)")
    assert of_unseen("ndcg", "nDCG@10 (graded)") == ("ndcg-unseen", "nDCG@10 (graded, unseen)")
