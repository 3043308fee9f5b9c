"""Anybody's BEIR folder: read whatever its line ends and packing are, refused with file and line when it is damaged."""

import gzip
import json
import lzma
import re
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import ValidationError

from encore.datasets import kinds
from encore.datasets.source_files import hold_out
from encore.errors import EncoreError
from encore.storage.files import sha256
from tests.support import inside
from tests.support.small_beir import CORPUS, QUERIES, SPLITS, build, fields, refusal, write

PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_folder_becomes_the_common_form(tmp_path, end):
    collection = build(write(tmp_path / "in", end=end), tmp_path / "out")
    assert list(collection.corpus()) == [
        {"_id": "d1", "title": "Lift", "text": "of a wing"},
        {"_id": "d2", "title": "", "text": "drag"},
    ]
    assert collection.queries() == {"q1": "lift", "q2": "drag of wings"}
    assert collection.qrels("train") == {"q1": {"d1": 1}}
    assert collection.qrels("test") == {"q2": {"d2": 2}}
    assert not collection.has_articles()


def test_packed_files_are_read(tmp_path):
    folder = write(tmp_path / "in")
    for name in ("corpus", "queries"):
        plain = folder / f"{name}.jsonl"
        plain.with_suffix(".jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    assert len(list(build(folder, tmp_path / "out").corpus())) == 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"corpus": [*CORPUS, CORPUS[0]]}, "corpus.jsonl, line 3: id 'd1' occurs twice"),
        ({"corpus": [CORPUS[0], '{"_id": "d2", "text": " "}']}, "corpus.jsonl, line 2: 'd2' has no text"),
        ({"corpus": [CORPUS[0], '{"_id": "d2", ']}, "corpus.jsonl, line 2: not JSON"),
        ({"corpus": [CORPUS[0], '{"_id": 2, "text": "x"}']}, 'line 2: "_id" is 2 and not text; put it in quotes'),
        ({"corpus": [CORPUS[0], '{"_id": "2", "text": ["x"]}']}, """line 2: "text" is ['x'] and not text; put it"""),
        ({"corpus": [CORPUS[0], '{"_id": "d2"}']}, 'line 2: "text" is missing or null; add it, or remove the row'),
        ({"corpus": [CORPUS[0], '{"_id": null, "text": "x"}']}, 'line 2: "_id" is missing or null'),
        ({"queries": [QUERIES[0], '{"_id": "q 2", "text": "x"}']}, "queries.jsonl, line 2: id 'q 2' is empty or holds"),
        ({"test": ["q2\td2\t1", "q9\td1\t1"]}, "test.tsv, line 3: query 'q9' is not among the queries"),
        ({"test": ["q2\td9\t1"]}, "test.tsv, line 2: document 'd9' is not in the corpus"),
        ({"test": ["q2\td2\t0.5"]}, "test.tsv, line 2: grade '0.5' is not a whole number"),
        ({"test": ["q2 0 d2 1"]}, "test.tsv, line 2: 1 fields, 3 separated by tabs are expected"),
        ({"test": ["q2\td2\t1", "q2\td2\t2"]}, "test.tsv, line 3: 'q2' and 'd2' are judged twice"),
    ],
)
def test_bad_rows_are_named(tmp_path, changed, said):
    assert said in refusal(write(tmp_path / "in", **changed), tmp_path / "out")


def test_other_encodings_are_named(tmp_path):
    folder = write(tmp_path / "in")
    (folder / "corpus.jsonl").write_bytes(CORPUS[0].encode() + b'\n{"_id": "d2", "text": "caf\xe9"}\n')
    assert "corpus.jsonl, line 2: not UTF-8" in refusal(folder, tmp_path / "out")


def test_a_cut_archive_is_named(tmp_path):
    folder = write(tmp_path / "in")
    plain = folder / "corpus.jsonl"
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes())[:-12])
    plain.unlink()
    assert "corpus.jsonl.gz, after line" in refusal(folder, tmp_path / "out")


def test_a_file_plain_and_packed_is_refused(tmp_path):
    folder = write(tmp_path / "in")
    (folder / "queries.jsonl.gz").write_bytes(gzip.compress((folder / "queries.jsonl").read_bytes()))
    with pytest.raises(
        EncoreError, match=r"queries\.jsonl and queries\.jsonl\.gz both exist, and only one can be read"
    ):
        fields(folder).resolve()


def test_an_empty_field_may_be_null_as_in_beirs_own_files(tmp_path):
    rows = ['{"_id": "d1", "title": null, "text": "of a wing", "url": null}', CORPUS[1]]
    folder = write(tmp_path / "in", corpus=[*rows, '{"_id": "d3", "text": "x", "url": "y"}'])
    collection = build(folder, tmp_path / "out", segments=[["title", "url", "text"]])
    assert next(collection.corpus()) == {"_id": "d1", "title": "", "text": "of a wing", "url": ""}
    for key in ("_id", "text"):
        rows[0] = json.dumps({"_id": "d1", "text": "x", key: None})
        said = refusal(write(tmp_path / key, corpus=rows), tmp_path / "out")
        assert f'line 1: "{key}" is missing or null; add it, or remove the row' in said


def test_a_field_that_no_document_has_is_refused(tmp_path):
    said = "in/corpus.jsonl: no document has 'heading', which `segments` reads; correct its name"
    with pytest.raises(EncoreError, match=re.escape(said)):
        build(write(tmp_path / "in"), tmp_path / "out", segments=[["heading", "text"]])


def test_an_empty_cluster_is_none(tmp_path):
    queries = [*QUERIES, '{"_id": "q3", "text": "x", "metadata": {"cluster": ""}}']
    folder = write(tmp_path / "in", queries=queries, test=("q2\td2\t2", "q3\td1\t1"))
    assert build(folder, tmp_path / "out").clusters()["q3"] == "q3"


BEFORE_ANY_JOB = [
    ({"corpus": []}, {}, "corpus.jsonl holds no document"),
    ({"test": ["q2\td2\t1", "q1\td2\t1"]}, {}, "test.tsv, line 3: 1 queries of split 'test' also train, such as 'q1'"),
    ({"train": ["q1\td1\t0"]}, {}, "train.tsv has no grade above 0, so nothing is relevant"),
    ({"test": ["q2\td2\tx"]}, {}, "test.tsv, line 2: grade 'x' is not a whole number"),
    ({}, {"valid_queries": 1}, "train.tsv, line 2: valid_queries is 1, but train ends with query 1"),
]


@pytest.mark.parametrize(("changed", "others", "said"), BEFORE_ANY_JOB)
def test_what_seconds_can_tell_is_told_before_any_job(tmp_path, changed, others, said):
    folder = write(tmp_path / "in", **changed)
    splits = SPLITS | ({"valid": {"role": "valid"}} if others else {})
    with pytest.raises(EncoreError, match=re.escape(said)):
        fields(folder, splits=splits, **others).check_files()
    with pytest.raises(EncoreError, match=re.escape(said)):  # and by the job itself, if the files change meanwhile
        build(folder, tmp_path / "out", splits=splits, **others)


@pytest.mark.parametrize("packing", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("rows", ["", '{"_id": "d1", "text": "a b"}\n\n'])
def test_a_size_is_known_if_a_file_is_empty_or_packed_or_ends_with_a_blank_line(tmp_path, rows, packing):
    """It is forecast from, so that a wrong file is refused by its own check and not here."""
    folder = write(tmp_path / "in")
    (folder / "corpus.jsonl").unlink()
    (folder / f"corpus.jsonl{packing}").write_bytes(PACKERS[packing](rows.encode()))
    assert fields(folder).known_size().passages == (1 if rows or packing else None)


@pytest.mark.parametrize("trec", [False, True])
def test_queries_are_counted_with_and_without_a_header(tmp_path, trec):
    folder = write(tmp_path / "in", train=("q1\td1\t1", "q1\td2\t1", "q2\td2\t1"))
    if trec:
        (folder / "qrels/train.tsv").write_text("q1 0 d1 1\nq1 0 d2 1\nq2 0 d2 1\n")
    assert fields(folder).known_size().queries == {"train": 2, "test": 1}


def test_nothing_is_held_out_of_no_judgments():
    with pytest.raises(EncoreError, match=r"^valid_queries is 1, but train ends with query 0"):
        hold_out({"train": []}, "train", "valid", 1)


def test_a_good_folder_is_not_refused(tmp_path):
    fields(write(tmp_path / "in")).check_files()


def test_a_missing_header_is_named(tmp_path):
    folder = write(tmp_path / "in")
    (folder / "qrels/test.tsv").write_text("q2\td2\t1\n")
    assert "test.tsv, line 1: the header must be" in refusal(folder, tmp_path / "out")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(EncoreError, match=r"corpus\.jsonl is missing \(.* has nothing\)"):
        fields(tmp_path).resolve()
    for name in ("docs.jsonl", "topics.xml"):
        (tmp_path / name).write_text("")
    with pytest.raises(EncoreError, match=r"corpus\.jsonl is missing \(.* has docs\.jsonl, topics\.xml\)"):
        fields(tmp_path).resolve()


def test_empty_documents_can_be_dropped_with_their_judgments(tmp_path):
    folder = write(tmp_path / "in", corpus=[*CORPUS, '{"_id": "d3", "text": ""}'], test=["q2\td2\t2", "q2\td3\t1"])
    collection = build(folder, tmp_path / "out", empty_documents="drop")
    assert [row["_id"] for row in collection.corpus()] == ["d1", "d2"]
    assert collection.qrels("test") == {"q2": {"d2": 2}}


def many_queries(folder: Path) -> Path:
    queries = [json.dumps({"_id": f"q{number}", "text": "words"}) for number in range(31)]
    return write(folder, queries=queries, test=["q30\td1\t1"], train=[f"q{number}\td1\t1" for number in range(30)])


def listing(folder: Path, *lines: str, header: str = "query-id\tcorpus-id\trank") -> Path:
    (folder / "negatives").mkdir(exist_ok=True)
    (folder / "negatives/train.tsv.gz").write_bytes(gzip.compress("\n".join([header, *lines, ""]).encode()))
    return folder


def test_listed_negatives_are_read_where_the_entry_says_so(tmp_path):
    """Those of a file with their ranks, and those that are judged 0; an entry that says nothing stays as it was."""
    folder = write(tmp_path / "in", train=["q1\td1\t1", "q1\td2\t0"])
    usual = fields(folder).resolve()
    assert list(build(folder, tmp_path / "judged", listed_negatives=True).negatives("train")) == [("q1", "d2", 0)]
    listing(folder, "q1\td2\t3")
    assert fields(folder).resolve() == usual
    made = build(folder, tmp_path / "both", listed_negatives=True)
    assert list(made.negatives("train")) == [("q1", "d2", 3), ("q1", "d2", 0)]
    assert json.loads((tmp_path / "both/statistics.json").read_text())["splits"]["train"]["negatives"] == 2
    with pytest.raises(EncoreError, match="lists no negatives of train"):
        next(build(folder, tmp_path / "none").negatives("train"))
    changed = fields(folder, listed_negatives=True).resolve()
    assert changed != fields(listing(folder, "q1\td2\t4"), listed_negatives=True).resolve()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["q1\td9\t1"], "negatives/train.tsv.gz, line 2: document 'd9' is not in the corpus"),
        (["q9\td1\t1"], "negatives/train.tsv.gz, line 2: query 'q9' is not among the queries"),
        (["q1\td2"], "negatives/train.tsv.gz, line 2: 2 fields, 3 separated by tabs"),
        (["q1\td2\tfirst"], "negatives/train.tsv.gz, line 2, rank: grade 'first' is not a whole number"),
        (None, "train.tsv judges no passage as not relevant (0), and negatives/train.tsv is missing"),
    ],
)
def test_negatives_that_do_not_fit_are_named(tmp_path, lines, said):
    folder = write(tmp_path / "in")
    if lines:
        listing(folder, *lines)
    with pytest.raises(EncoreError) as caught:
        build(folder, tmp_path / "out", listed_negatives=True)
    assert said in str(caught.value)
    if not lines:
        with pytest.raises(EncoreError, match="judges no passage as not relevant"):
            fields(folder, listed_negatives=True).check_files()
    dropped = {"listed_negatives": True, "unknown_judgments": "drop"}
    if lines and lines[0].endswith("1"):
        assert list(build(folder, tmp_path / "out", **dropped).negatives("train")) == []


def test_validation_is_held_out_of_training_by_hash(tmp_path):
    splits = {**SPLITS, "valid": {"role": "valid"}}
    collection = build(many_queries(tmp_path / "in"), tmp_path / "out", splits=splits, valid_queries=10)
    train, valid = set(collection.qrels("train")), set(collection.qrels("valid"))
    assert (len(train), len(valid), train & valid) == (20, 10, set())
    assert valid != {f"q{number}" for number in range(10)}

    again = build(tmp_path / "in", tmp_path / "more", splits=splits, valid_queries=11)
    assert valid < set(again.qrels("valid"))  # one more query moves; none comes back


def test_holding_out_needs_a_split_of_its_own(tmp_path):
    with pytest.raises(ValidationError, match="needs one split of role valid, without a file"):
        fields(tmp_path, valid_queries=10)


def test_identity_is_the_content_not_the_place(tmp_path):
    spec = fields(write(tmp_path / "a")).resolve()
    assert spec == fields(write(tmp_path / "b")).resolve()
    assert str(tmp_path) not in json.dumps(spec)
    measured = {**SPLITS, "test": {"role": "test", "measures": {"R@100": "R@100"}}}
    assert spec == fields(tmp_path / "a", splits=measured).resolve()
    assert spec != fields(write(tmp_path / "c", test=["q2\td2\t1"])).resolve()


def test_a_large_source_is_read_whole_when_its_size_or_time_of_change_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("encore.storage.files.REMEMBERED", 0)
    monkeypatch.chdir(tmp_path)
    path, reads = write(tmp_path / "a") / "corpus.jsonl", []
    monkeypatch.setattr("encore.storage.files.sha256", lambda each: reads.append(each.name) or sha256(each))
    first = fields(tmp_path / "a").resolve()["content"]
    assert first["corpus"] == sha256(path)
    count = len(reads)
    assert fields(tmp_path / "a").resolve()["content"] == first
    assert len(reads) == count, "nothing is read again"
    path.write_text(path.read_text().replace("drag", "grad"))  # in the middle, of equal size
    assert fields(tmp_path / "a").resolve()["content"]["corpus"] == sha256(path) != first["corpus"]
    assert reads[count:] == ["corpus.jsonl"]
    for damaged in ("[1", "[" * 100_000):
        Path("results/plan/digests.json").write_text(damaged)
        assert fields(tmp_path / "a").resolve()["content"]["corpus"] == sha256(path)


def test_a_remembered_digest_is_not_believed_by_the_job(tmp_path, monkeypatch):
    monkeypatch.setattr("encore.storage.files.REMEMBERED", 0)
    monkeypatch.chdir(tmp_path)
    folder = write(tmp_path / "in")
    fields(folder).resolve()
    memory = Path("results/plan/digests.json")
    known = {name: [*state[:2], "f" * 64] for name, state in json.loads(memory.read_text()).items()}
    memory.write_text(json.dumps(known))
    with pytest.raises(EncoreError, match="changed since; run snakemake again"):
        kinds.build_collection("beir", fields(folder).resolve(), tmp_path / "out", source=folder)


@pytest.mark.parametrize("end", ["\n\n", "\n \t\n\n"])
def test_blank_lines_at_the_end_and_grades_as_pandas_writes_them_are_read(tmp_path, end):
    folder = write(tmp_path / "in")
    spec = fields(folder).resolve()
    for path in (folder / "corpus.jsonl", folder / "qrels/test.tsv"):
        path.write_text(path.read_text().rstrip("\n") + end)
    path = folder / "qrels/test.tsv"
    path.write_text(path.read_text().replace("\t1\n", "\t1.0\n"))
    kinds.build_collection(
        "beir", spec | {"content": fields(folder).resolve()["content"]}, tmp_path / "b", source=folder
    )
    kinds.build_collection("beir", spec, tmp_path / "a", source=write(tmp_path / "again"))
    for name in ("corpus.jsonl.gz", "qrels/test.tsv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_source_changed_after_planning_is_refused(tmp_path):
    spec = fields(write(tmp_path / "in")).resolve()
    write(tmp_path / "in", test=["q1\td1\t1"])
    with pytest.raises(EncoreError, match="changed since; run snakemake again"):
        kinds.build_collection("beir", spec, tmp_path / "out", source=tmp_path / "in")


def script(spec: dict, folder: Path, output: Path) -> subprocess.CompletedProcess:
    return inside.make("collection", spec, {}, output, source=str(folder))


def test_the_script_writes_the_manifest_last(tmp_path):
    folder = write(tmp_path / "in")
    spec = {**fields(folder).resolve(), "impl": kinds.load_kind("beir").impl}
    done = script(spec, folder, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert (manifest["stage"], manifest["spec"]) == ("collection.beir", spec)
    assert manifest["results"]["passages"] == 2
    assert str(tmp_path) not in json.dumps(manifest)


def test_the_script_says_one_line_and_leaves_no_manifest(tmp_path):
    folder = write(tmp_path / "in", test=["q9\td1\t1"])
    done = script(fields(folder).resolve(), folder, tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
