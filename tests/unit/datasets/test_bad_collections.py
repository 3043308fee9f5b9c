"""What is refused of a user's collection and what is counted: docs/collections.md has the table, here is its proof."""

import gzip
import json
import os
from pathlib import Path

import pytest

from encore.data import vocabulary
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.tokens import TokenStore, write_store
from encore.errors import EncoreError
from tests.support.small_beir import CORPUS, QUERIES, SPLITS, build, fields, refusal, write


def clustered(cluster: str) -> str:
    return f'{{"_id": "q1", "text": "lift", "metadata": {{"cluster": {cluster}}}}}'


def counts(collection: Collection) -> dict:
    return json.loads((collection.folder / "statistics.json").read_text())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"corpus": []}, "corpus.jsonl holds no document"),
        ({"queries": []}, "train.tsv, line 2: query 'q1' is not among the queries"),
        ({"corpus": [*CORPUS, '{"_id": "a\\u0000b", "text": "x"}']}, "line 3: id 'a\\x00b' holds a control character"),
        ({"corpus": [*CORPUS, '{"_id": "d3", "text": "\\u0000 \\u0001"}']}, "line 3: 'd3' has no text"),
        ({"corpus": [*CORPUS, '{"_id": "d3", "text": "\\ud800"}']}, "line 3: not JSON that can be read (half of"),
        (
            {"corpus": [*CORPUS, '{"_id": "d3", "_id": "d4", "text": "x"}']},
            "line 3: not JSON that can be read (the key",
        ),
        ({"corpus": [CORPUS[0], "", CORPUS[1]]}, "corpus.jsonl, line 2: not JSON"),
        ({"corpus": [*CORPUS, f'{{"_id": "{"x" * 10**6} ", "text": "x"}}']}, "line 3: id 'xxxx"),
        ({"queries": [*QUERIES, QUERIES[1]]}, "queries.jsonl, line 3: id 'q2' occurs twice"),
        (
            {"queries": [*QUERIES, '{"_id": "q3", "text": ""}']},
            "queries.jsonl, line 3: 'q3' has no text; give it one or remove the row, or set `empty_documents: drop`",
        ),
        (
            {"queries": [*QUERIES, '{"_id": "q3", "title": "lift", "text": ""}']},
            "queries.jsonl, line 3: 'q3' has no text, and its title is not searched; give it one",
        ),
        ({"queries": [*QUERIES, '{"_id": "#3", "text": "x"}']}, "line 3: id '#3' starts like a comment of a TREC run"),
        (
            {"corpus": [*CORPUS, f'{{"_id": "{"é" * 16_384}", "text": "x"}}']},
            "has more than 32,766 bytes, which no Luc",
        ),
        (
            {"queries": [clustered("1.5")]},
            "queries.jsonl, line 1: the cluster 1.5 is neither a text nor a whole number",
        ),
        ({"queries": [clustered("true")]}, "queries.jsonl, line 1: the cluster True is neither a text nor a whole"),
        (
            {"queries": [clustered("[7]")]},
            "queries.jsonl, line 1: the cluster [7] is neither a text nor a whole number",
        ),
        ({"test": []}, "test.tsv has no judgment"),
        ({"test": ["q2\td2\t0", "q2\td1\t-1"]}, "test.tsv has no grade above 0, so nothing is relevant"),
        ({"test": ["q2\td2\t1e3"]}, "line 2: grade '1e3' is not a whole number"),
        ({"test": ["q2\td2\t٣"]}, "line 2: grade '٣' is not a whole number"),
        ({"test": ["q2\td2\t" + "9" * 5000]}, "line 2: grade '9999"),
        ({"test": ["q2\td2\t"]}, "line 2: grade '' is not a whole number"),
        ({"test": ["q2\td2\t1\t"]}, "line 2: 4 fields, 3 separated by tabs are expected"),
        ({"test": ["q2\td2\t1", "", "q2\td1\t1"]}, "line 3: 1 fields, 3 separated by tabs are expected"),
        ({"test": ["\td2\t1"]}, "line 2: query '' is not among the queries"),
        ({"test": ["q2\td2\t1", "q2\td2\t1", "q2\td2\t0"]}, "line 4: 'q2' and 'd2' are judged twice, with other"),
    ],
)
def test_what_is_refused(tmp_path, changed, said):
    message = refusal(write(tmp_path / "in", **changed), tmp_path / "out")
    assert said in message
    assert len(message) < 600


def test_clusters_are_texts_or_whole_numbers(tmp_path):
    """Page 7 is one cluster, whether it was written as a number or as a text."""
    ids = {"q1": "7", "q2": '"7"', "q3": "-1", "q4": "null", "q5": f'"{"7" * 40}"'}
    queries = [clustered(cluster).replace("q1", name, 1) for name, cluster in ids.items()]
    corpus = [*CORPUS, clustered("[1, 2]").replace("q1", "d3"), '{"_id": "#4", "text": "x"}']
    collection = build(write(tmp_path / "in", corpus=corpus, queries=queries), tmp_path / "out")
    assert collection.clusters() == {"q1": "7", "q2": "7", "q3": "-1", "q4": "q4", "q5": "7" * 40}
    assert all(row.keys() == {"_id", "title", "text"} for row in collection.corpus())


def test_nothing_is_counted_of_a_good_folder(tmp_path):
    assert counts(build(write(tmp_path / "in"), tmp_path / "out")) == {
        "passages": 2,
        "queries": 2,
        "splits": {"train": {"queries": 1, "judgments": 1}, "test": {"queries": 1, "judgments": 1}},
    }


def test_empty_queries_and_rows_that_are_there_again_are_dropped_where_asked(tmp_path):
    empty = '{"_id": "q3", "title": "lift", "text": " ", "metadata": {"cluster": 3}}'
    folder = write(
        tmp_path / "in",
        corpus=[*CORPUS, CORPUS[0], CORPUS[0]],
        queries=[QUERIES[0], empty, empty, *QUERIES],
        train=["q1\td1\t1", "q3\td1\t1"],
    )
    assert "line 3: id 'd1' occurs twice" in refusal(folder, tmp_path / "out")
    found = counts(build(folder, tmp_path / "out", empty_documents="drop", unknown_judgments="drop"))
    assert (found["passages"], found["queries"]) == (len(CORPUS), len(QUERIES))
    assert (found["empty_queries"], found["repeated_rows"]) == (1, 4)
    assert found["splits"]["train"]["of_unknown_queries"] == 1
    other = CORPUS[0].replace("wing", "tail")
    folder = write(tmp_path / "other", corpus=[*CORPUS, other])
    with pytest.raises(EncoreError, match="id 'd1' occurs twice"):
        build(folder, tmp_path / "out2", empty_documents="drop")


def test_what_is_counted(tmp_path):
    folder = write(
        tmp_path / "in",
        corpus=[*CORPUS, '{"_id": "d3", "text": " "}', '{"_id": "d4", "text": "..."}'],
        queries=[*QUERIES, '{"_id": "q3", "text": "nobody judges"}', '{"_id": "q4", "text": "nothing helps"}'],
        train=["q1\td1\t1", "q1\td1\t1", "q1\td3\t1", "q9\td1\t1", "q1\td9\t1", "q8\td8\t1"],
        test=["q2\td2\t2", "q4\td1\t0", "q4\td2\t-2"],
    )
    found = counts(build(folder, tmp_path / "out", empty_documents="drop", unknown_judgments="drop"))
    assert found == {
        "passages": 3,
        "queries": 4,
        "empty_documents": 1,
        "unjudged_queries": 1,
        "splits": {
            "train": {
                "queries": 1,
                "judgments": 1,
                "repeated": 1,
                "of_empty_documents": 1,
                "of_unknown_queries": 2,
                "of_unknown_documents": 1,
            },
            "test": {"queries": 2, "judgments": 3, "queries_without_relevant": 1},
        },
    }


def test_judgments_that_are_all_unknown_are_refused(tmp_path):
    """They are another collection's."""
    folder = write(tmp_path / "in", test=["x\td2\t1"])
    with pytest.raises(EncoreError, match="split 'test' judges nothing that the collection has"):
        build(folder, tmp_path / "out", unknown_judgments="drop")


def test_judgments_of_documents_that_do_not_exist_count_as_never_found(tmp_path):
    """As in trec_eval: they stay among what could be found; those of queries that do not exist are left out."""
    folder = write(tmp_path / "in", test=["q2\td1\t1", "q2\tnowhere\t1", "nobody\td1\t1"])
    found = counts(build(folder, tmp_path / "out", unknown_judgments="keep"))
    lines = (tmp_path / "out/qrels/test.tsv").read_text().splitlines()[1:]
    assert lines == ["q2\td1\t1", "q2\tnowhere\t1"]
    assert found["splits"]["test"]["of_unknown_queries"] == 1


def test_names_of_existing_collections_stay(tmp_path):
    spec = fields(write(tmp_path / "in")).resolve()
    assert spec.keys() == {"kind", "files", "held_out", "empty_documents", "content"}
    assert spec != fields(tmp_path / "in", unknown_judgments="drop").resolve()


def graded(*grades):
    return {**SPLITS, "test": {"role": "test", "grades": dict(grades)}}


def test_grades_can_be_turned_round(tmp_path):
    """Cranfield's best is 1; a grade that is not named is left out and counted."""
    folder = write(tmp_path / "in", test=["q2\td1\t1", "q2\td2\t4", "q1\td1\t-1", "q1\td2\t5"], train=["q0\td1\t1"])
    (folder / "queries.jsonl").write_text("\n".join([*QUERIES, '{"_id": "q0", "text": "x"}']) + "\n")
    collection = build(folder, tmp_path / "out", splits=graded((1, 4), (2, 3), (3, 2), (4, 1)))
    assert collection.qrels("test") == {"q2": {"d1": 4, "d2": 1}}
    assert counts(collection)["judgments_of_other_grades"] == {"test": 2}
    assert counts(collection)["unjudged_queries"] == 1
    spec = fields(folder, splits=graded((1, 2))).resolve()
    assert spec["grades"] == {"test": [[1, 2]]}
    assert json.loads(json.dumps(spec)) == spec


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_judgments_may_be_trecs(tmp_path, end):
    folder = write(tmp_path / "in")
    (folder / "qrels/test.tsv").write_text(f"q2 Q0  d2 3{end}q2\t0\td1\t0{end}", newline="")
    assert build(folder, tmp_path / "out").qrels("test") == {"q2": {"d2": 3, "d1": 0}}
    (folder / "qrels/test.tsv").write_text("q2 0 d2 3\nq2 0 d1\n")
    assert "test.tsv, line 2: 3 fields, 4 separated by blanks" in refusal(folder, tmp_path / "out")
    for first in ("q2 d2 3", "qid\tpid\trel"):
        (folder / "qrels/test.tsv").write_text(f"{first}\n")
        said = refusal(folder, tmp_path / "out")
        assert "line 1: the header must be query-id, corpus-id and score" in said
        assert said.endswith("`encore new NAME --from FOLDER` knows other names of columns, too")


def test_a_byte_order_mark_is_read_past_in_every_file(tmp_path):
    folder = write(tmp_path / "in", end="\r\n")
    for path in folder.rglob("*.*"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    collection = build(folder, tmp_path / "out")
    assert [row["_id"] for row in collection.corpus()] == ["d1", "d2"]
    assert collection.qrels("test") == {"q2": {"d2": 2}}


def test_an_id_in_another_unicode_form_is_named_as_such(tmp_path):
    folder = write(tmp_path / "in", corpus=[*CORPUS, '{"_id": "caf\u00e9", "text": "x"}'], test=["q2\tcafe\u0301\t1"])
    assert "(but is, in another Unicode normal form)" in refusal(folder, tmp_path / "out")
    both = write(
        tmp_path / "both",
        corpus=[*CORPUS, '{"_id": "cafe\u0301", "text": "x"}', '{"_id": "caf\u00e9", "text": "x"}'],
        test=["q2\tcafe\u0301\t1"],
    )
    assert build(both, tmp_path / "out").qrels("test") == {"q2": {"cafe\u0301": 1}}


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz", "qrels/test.tsv"])
def test_a_folder_in_a_file_s_place_is_named_before_any_job(tmp_path, name):
    folder = write(tmp_path / "in")
    for path in folder.glob(f"{name.removesuffix('.gz')}*"):
        path.unlink()
    (folder / name).mkdir()
    with pytest.raises(EncoreError, match=f"{name} is not a file"):
        fields(folder).resolve()


@pytest.mark.parametrize("content", [b"plainly no archive\n", gzip.compress(b"x" * 999, mtime=0)[:-9], b""])
def test_what_is_no_archive_is_named(tmp_path, content):
    folder = write(tmp_path / "in")
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl.gz").write_bytes(content)
    said = refusal(folder, tmp_path / "out")
    assert "corpus.jsonl.gz, after line 0: cannot be read" in said if content else "holds no document" in said


def test_an_empty_document_that_is_there_twice_is_refused(tmp_path):
    folder = write(tmp_path / "in", corpus=[*CORPUS, '{"_id": "d3", "text": ""}', '{"_id": "d3", "text": " "}'])
    with pytest.raises(EncoreError, match="line 4: id 'd3' occurs twice"):
        build(folder, tmp_path / "out", empty_documents="drop")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_gives_one_line_and_leaves_no_half_file(tmp_path, monkeypatch):
    opened = Path.open

    def full(path, mode="r", *others, **named):
        return opened(Path("/dev/full") if path.suffix == ".tmp" else path, mode, *others, **named)

    folder = write(
        tmp_path / "in", corpus=[f'{{"_id": "d{n}", "text": "{os.urandom(40).hex()}"}}' for n in range(9999)]
    )
    monkeypatch.setattr(Path, "open", full)
    message = refusal(folder, tmp_path / "out")
    assert f"cannot write {tmp_path / 'out/corpus.jsonl.gz'}: No space left on device; make room" in message
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_texts_of_any_kind_reach_the_token_store(tmp_path):
    """Punctuation, a NUL, what has no token at all, and a document of very many words."""
    texts = ["...", "a\0b", "\u200b", "word " * 100_000]
    rows = [{"_id": f"d{number}", "title": "", "text": text} for number, text in enumerate(texts)]
    write_collection(tmp_path / "c", rows, [{"_id": "q", "text": "?"}], {"test": [Judgment("q", "d0", 1)]})
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(vocabulary.train(["ab b . word ?"] * 3, 40)), tmp_path / "t")
    found = write_store(Collection(tmp_path / "c"), tmp_path / "t", tmp_path / "s")
    assert TokenStore(tmp_path / "s").passages.lengths.tolist() == [3, 1, 0, 100_000]
    assert found["passages_without_tokens"] == 1
