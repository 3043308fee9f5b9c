"""Collections of data frames, as notebooks have them."""

from pathlib import Path

import pandas as pd
import pytest

import encore

CORPUS = pd.DataFrame({"docno": ["007", "8"], "text": ["of a wing", "drag"], "title": ["Lift", None]})
TOPICS = pd.DataFrame({"qid": [1, 2], "query": ["what is lift", "what is drag"]})
QRELS = pd.DataFrame({"qid": ["1", "2", "2"], "docno": ["007", "8", "007"], "label": [1.0, 2.0, 0.0]})


def test_names_of_pyterrier_are_known_and_ids_stay(tmp_path: Path) -> None:
    made = encore.Collection.from_dataframes(CORPUS, TOPICS, {"test": QRELS[1:], "train": QRELS[:1]}, tmp_path / "made")
    assert list(made.corpus()) == [
        {"_id": "007", "title": "Lift", "text": "of a wing"},
        {"_id": "8", "title": "", "text": "drag"},
    ]
    assert made.queries() == {"1": "what is lift", "2": "what is drag"}
    assert {split: made.qrels(split) for split in made.splits()} == {
        "test": {"2": {"8": 2, "007": 0}},
        "train": {"1": {"007": 1}},
    }
    again = encore.Collection.from_dataframes(CORPUS, TOPICS, QRELS, tmp_path / "again")
    assert again.splits() == ["test"]
    assert (tmp_path / "again/corpus.jsonl.gz").read_bytes() == (tmp_path / "made/corpus.jsonl.gz").read_bytes()


@pytest.mark.parametrize(
    ("corpus", "queries", "qrels", "message"),
    [
        (CORPUS.assign(docno=[7.0, 8.0]), TOPICS, QRELS, "corpus, row 1: docno is 7.0, no id; give ids as texts"),
        (CORPUS.assign(text=["a", None]), TOPICS, QRELS, "corpus, row 2: text is missing or null"),
        (
            CORPUS.rename(columns={"text": "words"}),
            TOPICS,
            QRELS,
            "corpus has the columns docno, words, title (an index is none, see `reset_index`); give it",
        ),
        (CORPUS.rename(columns={"title": "Text"}), TOPICS, QRELS, "corpus: two columns are called 'text'; rename"),
        (CORPUS, TOPICS.assign(qid=["1", "1"]), QRELS, "queries, row 2: id '1' occurs twice"),
        (CORPUS, TOPICS, QRELS.assign(label=[1, 0.5, 1]), "qrels of test, row 2: grade '0.5' is not a whole number"),
        (CORPUS, TOPICS, QRELS.assign(docno="9"), "qrels of test, row 1: document '9' is not in the corpus"),
        (CORPUS, TOPICS, {"../../x": QRELS}, "'../../x' cannot be the name of a split; begin with A-Z, a-z or 0-9"),
        (CORPUS, TOPICS, {1: QRELS}, "1 cannot be the name of a split"),
        (CORPUS, TOPICS, {"train": QRELS[:2], "test": QRELS[2:]}, "1 queries of split 'test' also train"),
    ],
)
def test_what_is_wrong_is_named_with_its_row(
    corpus: pd.DataFrame, queries: pd.DataFrame, qrels: pd.DataFrame, message: str, tmp_path: Path
) -> None:
    with pytest.raises(encore.EncoreError) as caught:
        encore.Collection.from_dataframes(corpus, queries, qrels, tmp_path / "made")
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(encore.EncoreError, match=r"cannot write .*file/made: File exists"):
        encore.Collection.from_dataframes(CORPUS, TOPICS, QRELS, tmp_path / "file/made")


def test_judgments_may_be_dictionaries_or_rows_and_a_cell_may_run_twice(tmp_path: Path) -> None:
    by_query = {"1": {"007": 1}, "2": {"8": 2, "007": 0}}
    rows = [("1", "007", 1), ("2", "8", 2), ("2", "007", 0)]
    for number, judged in enumerate((QRELS, by_query, rows, {"test": by_query}, {"test": rows})):
        made = encore.Collection.from_dataframes(CORPUS, TOPICS, judged, tmp_path / str(number))
        assert made.qrels("test") == by_query
    kept = (tmp_path / "0/corpus.jsonl.gz").stat().st_mtime_ns
    again = encore.Collection.from_dataframes(CORPUS, TOPICS, rows, tmp_path / "0")
    assert (again.qrels("test"), (tmp_path / "0/corpus.jsonl.gz").stat().st_mtime_ns) == (by_query, kept)
    with pytest.raises(encore.EncoreError, match="0 is there already, with other content; remove it, or name another"):
        encore.Collection.from_dataframes(CORPUS, TOPICS, rows[:2], tmp_path / "0")
    assert len(list(tmp_path.iterdir())) == 5


def test_names_of_other_programs_are_known(tmp_path: Path) -> None:
    topics = pd.DataFrame({"q_id": ["1"], "query": ["what is lift"], "text": ["a passage"]})
    qrels = pd.DataFrame({"query": ["1"], "q0": 0, "docid": ["007"], "rel": 1})
    made = encore.Collection.from_dataframes(CORPUS, topics, qrels, tmp_path / "made")
    assert (made.queries(), made.qrels("test")) == ({"1": "what is lift"}, {"1": {"007": 1}})
