"""The common form: what is written is what is read, and bad material is refused with its place."""

import gzip
import json
import subprocess
import sys
import tracemalloc

import pytest

from encore.data.collection import Collection, Judgment, smallest, topics, write_collection
from encore.datasets import kinds
from encore.errors import EncoreError

CORPUS = [{"_id": "d1", "title": "", "text": "Sorts an array."}, {"_id": "d2", "title": "T", "text": "Adds numbers."}]
QUERIES = [{"_id": "q2", "text": "sorting", "metadata": {"cluster": "m"}}, {"_id": "q1", "text": "sum of numbers"}]
QRELS = {"test": [Judgment("q2", "d1", 3), Judgment("q1", "d2", 3), Judgment("q2", "d2", 1)]}
ARTICLES = [
    {
        "_id": "m",
        "title": "m",
        "sections": [{"title": "a", "sentences": ["One.", "Two."]}, {"title": "b", "sentences": ["Three."]}],
        "links": [{"section": 0, "to": "m", "anchor": 1, "origin": "see-also"}],
    }
]


def refusal(*material) -> str:
    with pytest.raises(EncoreError) as caught:
        write_collection(*material)
    return str(caught.value)


def test_reads_what_was_written(tmp_path):
    counts = write_collection(tmp_path, CORPUS, QUERIES, QRELS, ARTICLES)

    collection = Collection(tmp_path)
    assert list(collection.corpus()) == CORPUS
    assert collection.queries() == {"q2": "sorting", "q1": "sum of numbers"}
    assert collection.clusters() == {"q2": "m", "q1": "q1"}
    assert collection.qrels("test") == {"q2": {"d1": 3, "d2": 1}, "q1": {"d2": 3}}
    assert list(collection.articles()) == ARTICLES
    assert collection.splits() == ["test"]
    assert counts["splits"] == {"test": {"queries": 2, "judgments": 3}}
    assert (counts["sentences"], counts["links"], counts["links_between_articles"]) == (3, 1, 0)
    assert json.loads((tmp_path / "statistics.json").read_text()) == counts


def test_layout_is_beirs(tmp_path):
    write_collection(tmp_path, CORPUS, QUERIES, QRELS)
    lines = (tmp_path / "qrels" / "test.tsv").read_text().splitlines()
    assert lines == ["query-id\tcorpus-id\tscore", "q2\td1\t3", "q2\td2\t1", "q1\td2\t3"]
    with gzip.open(tmp_path / "corpus.jsonl.gz", "rt") as file:
        assert json.loads(next(file)) == CORPUS[0]


def test_articles_of_an_earlier_run_do_not_stay(tmp_path):
    write_collection(tmp_path, CORPUS, QUERIES, QRELS, ARTICLES)
    write_collection(tmp_path, CORPUS, QUERIES, QRELS)
    assert not Collection(tmp_path).has_articles()
    assert list(Collection(tmp_path).articles()) == []


def test_a_query_that_trains_or_validates_is_not_tested(tmp_path):
    train = {"train": [Judgment("q1", "d1", 1)]}
    message = refusal(tmp_path, CORPUS, QUERIES, QRELS | train)
    assert message.startswith("1 queries of split 'test' also train, such as 'q1'; remove")
    message = refusal(tmp_path, CORPUS, QUERIES, QRELS | {"valid": [Judgment("q1", "d1", 1)]})
    assert message.startswith("1 queries of split 'test' also validate, such as 'q1'; remove")
    apart = {"test": QRELS["test"][:1], "graded": QRELS["test"][:1]}
    assert write_collection(tmp_path, CORPUS, QUERIES, apart | train)["splits"].keys() == {"train", "test", "graded"}


def test_unknown_split_names_those_that_exist(tmp_path):
    write_collection(tmp_path, CORPUS, QUERIES, QRELS)
    with pytest.raises(EncoreError, match="no split 'dev'; it has test"):
        Collection(tmp_path).qrels("dev")


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        ([CORPUS[0], CORPUS[0]], "corpus, row 2: id 'd1' occurs twice"),
        ([{"_id": "d 1", "title": "", "text": "x"}], "corpus, row 1: id 'd 1' is empty or holds white space"),
        ([{"_id": "", "title": "", "text": "x"}], "is empty or holds white space"),
        ([{"_id": "d1", "title": " ", "text": "\n"}], "'d1' has no text"),
        ([], "holds no document"),
    ],
)
def test_bad_documents_are_refused(tmp_path, corpus, said):
    assert said in refusal(tmp_path, corpus, [], {})


@pytest.mark.parametrize(
    ("judgments", "said"),
    [
        ([Judgment("q9", "d1", 1, "qrels, line 2")], "qrels, line 2: query 'q9' is not among the queries"),
        ([Judgment("q1", "d9", 1)], "document 'd9' is not in the corpus"),
        ([Judgment("q1", "d1", 1), Judgment("q1", "d1", 2)], "judged twice"),
    ],
)
def test_bad_judgments_are_refused(tmp_path, judgments, said):
    assert said in refusal(tmp_path, CORPUS, QUERIES, {"test": judgments})


def test_links_must_point_to_sections(tmp_path):
    lost = [{**ARTICLES[0], "links": [{"section": 0, "to": "m", "anchor": 2, "origin": "see-also"}]}]
    assert "section that does not exist" in refusal(tmp_path, CORPUS, QUERIES, QRELS, lost)


def linked(name: str, *links: tuple[int, str, int], sections: int = 2) -> dict:
    return {
        "_id": name,
        "title": name,
        "sections": [{"title": "", "sentences": ["One."]}] * sections,
        "links": [{"section": own, "to": to, "anchor": anchor, "origin": "link"} for own, to, anchor in links],
    }


def test_links_may_lead_to_articles_that_come_later(tmp_path):
    rows = [linked("a", (0, "b", 1), (1, "b", 0), (0, "a", 1)), linked("b", (1, "a", 1))]
    counts = write_collection(tmp_path, CORPUS, QUERIES, QRELS, rows)
    assert list(Collection(tmp_path).articles()) == rows
    assert {name: counts[name] for name in ("articles", "sections", "links", "links_between_articles")} == {
        "articles": 2,
        "sections": 4,
        "links": 4,
        "links_between_articles": 3,
    }


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([linked("a", (0, "b", 2)), linked("b")], "2 of 'b'"),
        ([linked("b"), linked("a", (0, "b", 2))], "2 of 'b'"),
        ([linked("a", (0, "b", 0)), linked("b", sections=0)], "0 of 'b'"),
        ([linked("a", (0, "b", 1), (0, "b", 0)), linked("b", sections=1)], "1 of 'b'"),
        ([linked("a", (0, "c", 0)), linked("b")], "0 of 'c'"),
        ([linked("a", (0, "a", -1))], "-1 of 'a'"),
        ([linked("a", (2, "b", 0)), linked("b")], "2 of 'a'"),
        ([linked("a"), linked("a")], "the id 'a' occurs twice"),
    ],
)
def test_wrong_articles_are_refused_and_leave_no_file(tmp_path, rows, said):
    assert said in refusal(tmp_path, CORPUS, QUERIES, QRELS, rows)
    assert not (tmp_path / "articles.jsonl.gz").exists()


def test_articles_are_written_as_they_come(tmp_path):
    """Fifty megabytes of them in less than five of memory."""
    text = "word " * 5000
    rows = (
        linked(f"a{number}") | {"sections": [{"title": "", "sentences": [f"{number} {text}"]}]}
        for number in range(2000)
    )
    tracemalloc.start()
    write_collection(tmp_path, CORPUS, QUERIES, QRELS, rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


def test_topics_are_in_file_order_and_samples_are_nested(tmp_path):
    names = [f"q{number}" for number in range(40)]
    queries = [{"_id": name, "text": "words"} for name in names]
    write_collection(tmp_path, CORPUS, queries, {"train": [Judgment(name, "d1", 1) for name in names[::-1]]})
    collection = Collection(tmp_path)

    assert topics(collection, "train") == names[::-1]
    small, large = topics(collection, "train", 5), topics(collection, "train", 20)
    assert len(small) == 5
    assert set(small) < set(large)
    assert [name for name in names[::-1] if name in small] == small
    assert topics(collection, "train", 5, sample=1) != small
    assert topics(collection, "train", 100) == names[::-1]


def test_the_sample_is_chosen_by_sha256_of_the_id():
    """By ``sha256sum``: 0:a is 9df3c5fa…, 0:b is e02192fd…, 0:c is be086d93…."""
    assert smallest("abc", 2, "0") == ["a", "c"]


def test_importing_collections_is_light():
    """The plan imports them whenever the workflow is parsed."""
    heavy = {"torch", "transformers", "pandas", "scipy", "sklearn", "matplotlib"}
    program = f"import sys, encore.datasets.kinds; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_unknown_kind(tmp_path):
    with pytest.raises(EncoreError, match="unknown kind of dataset 'squad'; did you mean squad-reqa"):
        kinds.build_collection("squad", {}, tmp_path)
    with pytest.raises(EncoreError, match="unknown kind of dataset 'zzz'; known are beir, books, concat, "):
        kinds.build_collection("zzz", {}, tmp_path)


@pytest.mark.parametrize("name", ["kinds", "download", "source-files", "with_titles"])
def test_what_is_not_a_kind_in_their_folder_is_unknown(name, tmp_path):
    with pytest.raises(EncoreError, match=f"unknown kind of dataset '{name}'"):
        kinds.build_collection(name, {}, tmp_path)


@pytest.mark.parametrize(
    ("kind", "option", "spec"),
    [
        ("encyclopedia", "--source", {}),
        ("subset", "--collection", {"salt": "1"}),
        ("ir-datasets", "--data-root", {"id": "x", "splits": {}}),
    ],
)
def test_an_input_that_a_kind_needs_and_does_not_get_is_named(kind, option, spec, tmp_path):
    with pytest.raises(EncoreError, match=f"a collection of kind {kind} needs {option}, "):
        kinds.build_collection(kind, spec, tmp_path)


def test_a_spec_that_lacks_what_its_kind_reads_is_refused(tmp_path):
    with pytest.raises(EncoreError, match="salt"):
        kinds.build_collection("subset", {}, tmp_path)
