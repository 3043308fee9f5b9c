"""Files in other people's forms become one collection, and each form says what was taken for what."""

import csv
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from encore.data.collection import Collection
from encore.datasets import kinds
from encore.datasets.beir import BeirFields
from encore.datasets.foreign.conversion import convert
from encore.errors import EncoreError
from encore.storage.files import sha256

PASSAGES = [("007", "Lift", 'of a "wing", it is'), ("8", "", "drag")]
QUERIES = [("1", "what is lift"), ("02", "what is drag")]
JUDGED = [("1", "007", 1), ("02", "8", 2), ("02", "007", 0)]
GRADES = {"1": {"007": 1}, "02": {"8": 2, "007": 0}}


def lines(*rows: object) -> str:
    return "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)


def pyserini(place: Path) -> None:
    (place / "docs").mkdir()
    for number, (name, title, text) in enumerate(PASSAGES):
        row = {"id": name, "contents": text, **({"title": title} if title else {})}
        (place / f"docs/part{number}.json").write_text(lines(row))
    (place / "topics.tsv").write_text(lines(*map("\t".join, QUERIES)))
    trec_judgments(place, "qrels.txt")


def trec_judgments(place: Path, name: str, between: str = " ") -> None:
    (place / name).write_text(lines(*(between.join((q, "0", d, str(grade))) for q, d, grade in JUDGED)))


def ms_marco(place: Path) -> None:
    (place / "collection.tsv").write_text(lines(*("\t".join(filter(None, row)) for row in PASSAGES[1:])))
    with (place / "collection.tsv").open("a") as file:
        file.write('007\tLift\tof a "wing", it is\n'.replace("\tLift\t", "\t"))
    (place / "queries.dev.small.tsv").write_text(lines(*map("\t".join, QUERIES)))
    (place / "queries.dev.tsv").write_text(lines(*map("\t".join, [*QUERIES, ("3", "unjudged, and there")])))
    trec_judgments(place, "qrels.dev.small.tsv", "\t")


def trec(place: Path) -> None:
    (place / "wsj").mkdir()
    (place / "wsj/WSJ_1").write_text(
        "<DOC>\n<DOCNO> 007 </DOCNO>\n<HL> Lift </HL>\n<TEXT>\n<P>of a &quot;wing&quot;,</P> it is\n</TEXT>\n</DOC>\n"
        "<DOC><DOCNO>8</DOCNO>drag</DOC>\n"
    )
    (place / "topics.401-450").write_text(
        "\n".join(
            f"<top>\n\n<num> Number: {name}\n<title> {text.replace(' ', chr(10), 1)}\n\n<desc> Description:\nx\n</top>"
            for name, text in QUERIES
        )
    )
    trec_judgments(place, "qrels.trec8")


def xml_topics(place: Path) -> None:
    topics = "".join(
        f'<topic number="{name}"><query>{text}</query><narrative>x</narrative></topic>' for name, text in QUERIES
    )
    (place / "topics-rnd5.xml").write_text(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<topics task="x">\n{topics}</topics>'
    )
    corpus_of_csv(place)
    trec_judgments(place, "qrels-covid.txt", "   ")


def corpus_of_csv(place: Path) -> None:
    with (place / "documents.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerows([("docid", "title", "text", "length"), *((*row, "3") for row in PASSAGES)])


def comma_separated(place: Path) -> None:
    corpus_of_csv(place)
    with (place / "queries.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([("id", "text"), *QUERIES])
    frame = pd.DataFrame(JUDGED, columns=["query_id", "doc_id", "relevance"])
    frame["relevance"] = frame["relevance"].astype(float)  # as after a join: 1.0
    frame.to_csv(place / "qrels.csv", index=False)


def parquet(place: Path) -> None:
    for name, (columns, rows) in TABLES.items():
        (place / name).mkdir()
        for number, row in enumerate(rows):  # shards, as Hugging Face writes them
            table = pa.table({column: [value] for column, value in zip(columns, row, strict=True)})
            pq.write_table(table, place / name / f"test-{number:05}-of-{len(rows):05}.parquet")


def arrow(place: Path) -> None:
    """A folder as ``datasets``' ``save_to_disk`` leaves it."""
    (place / "dataset_dict.json").write_text('{"splits": ["corpus", "queries", "qrels"]}')
    for name, (columns, rows) in TABLES.items():
        (place / name).mkdir()
        (place / name / "state.json").write_text('{\n  "_data_files": []\n}')
        table = pa.table(
            {column: list(values) for column, values in zip(columns, zip(*rows, strict=True), strict=True)}
        )
        with (
            pa.OSFile(str(place / name / "data-00000-of-00001.arrow"), "wb") as file,
            pa.ipc.new_stream(file, table.schema) as out,
        ):
            out.write_table(table)


TABLES = {
    "corpus": (("_id", "title", "text"), PASSAGES),
    "queries": (("_id", "text"), QUERIES),
    "qrels": (("query-id", "corpus-id", "score"), JUDGED),
}
WRITERS = {
    pyserini: "1 passages from docs/part1.json (JSON lines: id, contents).",
    ms_marco: "3 judgments of dev from qrels.dev.small.tsv (TREC judgments: qid, docid, score; not read: iteration).",
    trec: "2 queries from topics.401-450 (TREC topics: num, title; not read: desc).",
    xml_topics: "2 queries from topics-rnd5.xml (XML topics: number, query; not read: narrative).",
    comma_separated: "2 passages from documents.csv (comma-separated: docid, text, title; not read: length).",
    parquet: "3 judgments of test from qrels/test-00000-of-00003.parquet, qrels/test-00001-of-00003.parquet",
    arrow: "2 passages from corpus/data-00000-of-00001.arrow (Arrow: _id, text, title).",
}


@pytest.mark.parametrize("write", WRITERS)
def test_each_form_gives_the_same_collection(write: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    write(tmp_path / "raw")
    said = convert(tmp_path / "raw", tmp_path / "made")
    assert any(WRITERS[write] in sentence for sentence in said), said
    made = Collection(tmp_path / "made")
    texts = {row["_id"]: (row["title"], " ".join(row["text"].split())) for row in made.corpus()}
    without_title = write is ms_marco
    assert texts == {name: ("" if without_title else title, text) for name, title, text in PASSAGES}
    assert {name: made.queries()[name] for name, _ in QUERIES} == dict(QUERIES)
    (split,) = made.splits()
    assert made.qrels(split) == GRADES
    convert(tmp_path / "raw", tmp_path / "again")
    names = [path.relative_to(tmp_path / "made") for path in (tmp_path / "made").rglob("*") if path.is_file()]
    assert len(names) == 4
    for name in names:
        assert sha256(tmp_path / "made" / name) == sha256(tmp_path / "again" / name)


def test_what_is_written_is_a_folder_that_the_kind_beir_reads(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    pyserini(tmp_path / "raw")
    convert(tmp_path / "raw", tmp_path / "made")
    split = {"test": {"role": "test", "measures": {"RR@10": "RR@10"}}}
    fields = BeirFields.model_validate({"kind": "beir", "path": str(tmp_path / "made"), "splits": split})
    counts = kinds.build_collection("beir", fields.resolve(), tmp_path / "built", source=tmp_path / "made")
    assert (counts["passages"], counts["queries"], counts["splits"]["test"]["judgments"]) == (2, 2, 3)


@pytest.mark.parametrize("packing", [".gz", ".xz", ".zst"])
def test_packed_files_are_unpacked(packing: str, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    pyserini(raw)
    for path in [path for path in raw.rglob("*") if path.is_file()]:
        packed, data = path.with_name(path.name + packing), path.read_bytes()
        if packing == ".zst":
            with pa.CompressedOutputStream(str(packed), "zstd") as file:
                file.write(data)
        else:
            packed.write_bytes(gzip.compress(data) if packing == ".gz" else lzma.compress(data))
        path.unlink()
    assert f"3 judgments of test from qrels.txt{packing} (" in "".join(convert(raw, tmp_path / "made"))
    assert Collection(tmp_path / "made").qrels("test") == GRADES


def test_ids_grades_and_ends_of_lines_are_read_as_pandas_and_trec_eval_do(tmp_path: Path) -> None:
    """A byte order mark, CR LF, blank lines at the end, grades as floats; an id of JSON's may be a number."""
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "corpus.jsonl").write_bytes(b'\xef\xbb\xbf{"_id": 7, "text": "a"}\r\n{"_id": "1.0", "text": "b"}\r\n\r\n\n')
    (raw / "queries.tsv").write_bytes("\ufeff007\twhat\r\n\r\n".encode())
    (raw / "qrels.txt").write_bytes(b"007 0 7 1.0\r\n007 0 1.0 2.0\r\n\n\n")
    convert(raw, tmp_path / "made")
    assert Collection(tmp_path / "made").qrels("test") == {"007": {"7": 1, "1.0": 2}}


def test_a_column_without_a_name_is_not_read(tmp_path: Path) -> None:
    """As `to_csv` of pandas writes its index; it was every passage's title."""
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "corpus.csv").write_text(",id,text\n0,d1,lift\n1,d2,drag\n")
    (raw / "queries.csv").write_text(",id,text\n0,q1,what\n")
    (raw / "qrels.csv").write_text(",qid,docid,score\n0,q1,d1,1\n")
    convert(raw, tmp_path / "made")
    assert [row["title"] for row in Collection(tmp_path / "made").corpus()] == ["", ""]


def tevatron(name: str, query: str, positives: list[str], negatives: list[str]) -> dict[str, object]:
    listed = [[{"docid": each, "title": "", "text": f"text {each}"} for each in ids] for ids in (positives, negatives)]
    return {"query_id": name, "query": query, "positive_passages": listed[0], "negative_passages": listed[1]}


def test_training_rows_give_queries_judgments_passages_and_negatives(tmp_path: Path) -> None:
    """Tevatron's, in lines and, as objects of lists, in Arrow's; a passage that several rows list is one."""
    rows = [tevatron("q1", "lift", ["a"], ["b", "c"]), tevatron("q2", "drag", ["b", "d"], ["a"])]
    (tmp_path / "train.jsonl").write_text(lines(*rows))
    said = convert(tmp_path / "train.jsonl", tmp_path / "made")
    assert "3 judgments of train, 3 listed negatives, 4 passages, 2 queries from train.jsonl" in said[0]
    made = Collection(tmp_path / "made")
    assert [row["_id"] for row in made.corpus()] == ["a", "b", "c", "d"]
    assert made.qrels("train") == {"q1": {"a": 1}, "q2": {"b": 1, "d": 1}}
    assert list(made.negatives("train")) == [("q1", "b", 1), ("q1", "c", 2), ("q2", "a", 1)]
    turned = [
        {
            **row,
            **{
                key: {name: [each[name] for each in row[key]] for name in ("docid", "title", "text")}
                for key in list(row)[2:]
            },
        }
        for row in rows
    ]
    (tmp_path / "raw/train").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(turned), tmp_path / "raw/train/0000.parquet")
    convert(tmp_path / "raw", tmp_path / "other")
    assert sha256(tmp_path / "other/negatives/train.tsv.gz") == sha256(tmp_path / "made/negatives/train.tsv.gz")
    assert sha256(tmp_path / "other/corpus.jsonl.gz") == sha256(tmp_path / "made/corpus.jsonl.gz")


def test_dprs_rows_are_numbered_and_passages_come_from_the_corpus_if_there_is_one(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "psgs_w100.tsv").write_text('id\ttext\ttitle\n1\t"a ""b"""\tA\n2\tc\tC\n')
    row = {
        "question": "who",
        "answers": ["a"],
        "positive_ctxs": [{"passage_id": "1", "title": "A", "text": "another text", "score": 1000}],
        "negative_ctxs": [],
        "hard_negative_ctxs": [{"psg_id": 2, "title": "C", "text": "c"}],
    }
    (raw / "nq-dev.json").write_text(json.dumps([row, {**row, "question": "whom"}]))
    said = "\n".join(convert(raw, tmp_path / "made"))
    assert "2 queries with answers" in said
    assert "not read: negative_ctxs" in said
    made = Collection(tmp_path / "made")
    assert made.answers() == {"dev-1": ["a"], "dev-2": ["a"]}
    assert [(row["_id"], row["text"]) for row in made.corpus()] == [("1", 'a "b"'), ("2", "c")]
    assert made.queries() == {"dev-1": "who", "dev-2": "whom"}
    assert made.qrels("dev") == {"dev-1": {"1": 1}, "dev-2": {"1": 1}}
    assert next(made.negatives("dev")) == ("dev-1", "2", 1)
    (raw / "trivia-dev.json").write_text(json.dumps([{**row, "question": "whose", "answers": "Ada Lovelace"}]))
    convert(raw, tmp_path / "both")
    assert Collection(tmp_path / "both").answers()["dev-2-1"] == ["Ada Lovelace"]
    assert Collection(tmp_path / "both").queries() == {"dev-1": "who", "dev-2": "whom", "dev-2-1": "whose"}


SMALL = {"corpus.tsv": "1\ta\n", "queries.tsv": "1\tx\n"}
REFUSED = [
    (
        {"fragen.csv": "Nummer;Frage\n1;Was ist Auftrieb?\n"},
        "there: raw/fragen.csv: comma-separated with no known header (Nummer, Frage) is not understood; rename its "
        "columns or the file, or remove it",
    ),
    ({"a.jsonl": lines({"id": "1", "text": "x"})}, "a.jsonl: JSON lines with id, text is not understood; rename"),
    ({"queries.jsonl": lines({"id": "1", "text": "x"})}, "queries.jsonl has queries (JSON lines: id, text)"),
    ({"run.txt": "1 Q0 d1 1 2.5 tag\n"}, "run.txt is empty, or its form is not known (6 columns separated by blanks"),
    ({}, "raw has no passages (there: nothing)"),
    (
        {"corpus.jsonl": '{"id": "1", "text": "x"}\n{"id": 1.0, "text": "y"}\n'},
        "corpus.jsonl, line 2: id is 1.0, no id",
    ),
    ({"corpus.jsonl": lines({"id": "1", "text": "x"}, {"id": "2", "text": None})}, "line 2: text is missing or null"),
    ({"corpus.jsonl": lines({"id": "1", "text": "x", "Text": "y"})}, "corpus.jsonl: two columns are called 'text'"),
    ({"corpus.jsonl": "{"}, "corpus.jsonl, line 1: not JSON that can be read"),
    (
        {"docs.1": '{"id": "1", "contents": "x"}', "docs.2": '{"id": "1", "contents": "y"}'},
        "docs.2, line 1: id '1' occurs",
    ),
    ({"corpus.tsv": "id\tabstract\n1\ta\n"}, "with no known header (id, abstract) is not understood; rename its"),
    (
        {"docs.tsv": 'docid\ttitle\ttext\n1\tA\ta\n2\tB\t"To be,\n3\tC\tor not"\n'},
        "docs.tsv, line 3: quotation marks hold whole lines; double those that are part of a text, or write JSON lines",
    ),
    (
        {"docs.tsv": 'docid\ttitle\ttext\n1\t"To be,\ta\n2\tor not"\tb\n'},
        "docs.tsv, line 2: quotation marks hold whole lines",
    ),
    ({"corpus.tsv": "1\ta\n2\tb\tc\n"}, "corpus.tsv, line 2: 3 columns, 2 are expected"),
    ({"docs.csv": "docid, Text,text,,\n1,a,b,,\n"}, "docs.csv: two columns are called 'text'; rename or remove one"),
    ({"docs.csv": 'docid,text\n1,"a\n'}, "docs.csv, line 2: cannot be split into columns (unexpected end of data)"),
    ({"docs.csv": 'docid,text\n1,"a"b\n'}, "docs.csv, line 2: cannot be split into columns"),
    ({"docs.trec": "<DOC>\n<DOCNO>1</DOCNO>\na\n<DOC>\n"}, "docs.trec, line 4: <DOC> cannot be here"),
    ({"docs.trec": "<DOC>\n<DOCNO>1</DOCNO>\na\n"}, "docs.trec, line 1: <DOC> is not closed"),
    ({"docs.parquet": "PAR1 and no more"}, "docs.parquet: cannot be read"),
    ({**SMALL, "qrels.txt": "1 0 1 yes\n"}, "qrels.txt is empty, or its form is not known"),
    ({**SMALL, "qrels.test.txt": "1 0 1 0.5\n"}, "(4 columns separated by blanks: 1 0 1 0.5): judgments are four such"),
    ({**SMALL, "qrels.test.txt": "1 Q0 1 1 2.5 tag\n"}, "six are a run of a system, and no judgments"),
    (
        {**SMALL, "qrels/dev.tsv": "1\t1\t1\n", "qrels/test.tsv": "query-id corpus-id score\n1 1 1\n"},
        "test.tsv is empty, or its form is not known (3 columns separated by blanks: query-id corpus-id score)",
    ),
    ({**SMALL, "qrels.txt": "1 0 1 1\n", "test.tsv": "1 1 1\n"}, "raw/test.tsv is empty, or its form is not known"),
    ({**SMALL, "qrels/dev.tsv": "1\t1\t1\n", "qrels/notes": "who judged"}, "raw/qrels/notes is empty, or its form"),
    ({**SMALL, "qrels.tsv": "1\t1\t0.5\n"}, "qrels.tsv, line 1: grade '0.5' is not a whole number"),
    ({**SMALL, "qrels.txt": "1 0 1 1\n1 0 2 1\n"}, "qrels.txt, line 2: document '2' is not in the corpus"),
    ({**SMALL, "qrels.a": "1 0 1 1\n", "qrels.b": "1 0 1 1\n"}, "raw/qrels.a and raw/qrels.b both judge 'test'"),
    ({**SMALL, "queries.train.tsv": "1\ty\n"}, "queries.tsv, line 1: id '1' occurs twice"),
    ({**SMALL, "topics.xml": "<?xml?><topics>"}, "topics.xml: no XML that can be read"),
    (
        {"train.jsonl": lines(tevatron("1", "x", ["a"], []) | {"negative_passages": [{"text": "b"}]})},
        "train.jsonl, line 1: {'",
    ),
    *(
        ({"train.jsonl": lines(tevatron("1", "x", ["a"], []) | wrong)}, f"train.jsonl, line 1: {says}")
        for wrong, says in [
            ({"positive_passages": 5}, "5 is no list of passages"),
            (
                {"positive_passages": {"docid": "ab", "text": ["t", "u"]}},
                "{'docid': 'ab', 'text': ['t', 'u']} is no list",
            ),
            ({"positive_passages": {"docid": ["a"], "text": ["t", "u"]}}, "{'docid': ['a'], 'text': ['t', 'u']} is no"),
            ({"positive_passages": [{"docid": 5, "text": 6}]}, "text is 6 and not text"),
            ({"answers": 5}, "answers are 5; give a text or a list of texts"),
            (
                {"answers": {"text": ["a"], "answer_start": [0]}},
                "answers are {'text': ['a'], 'answer_start': [0]}; give",
            ),
        ]
    ),
]


UNREADABLE = [
    ({"docid": ["1"], "text": ["a"], "Text": ["b"]}, {}, "docs.parquet: two columns are called 'text'; rename or"),
    ({"docid": ["1"], "text": [b"\xff"]}, {"text": pa.string()}, "docs.parquet: cannot be read ('utf-8' codec can't"),
    (
        {"docid": ["1"], "text": ["a"], "at": [10**12]},
        {"at": pa.timestamp("s")},
        "docs.parquet: cannot be read (date value out of",
    ),
]


@pytest.mark.parametrize(("columns", "types", "message"), UNREADABLE)
def test_a_table_that_cannot_be_taken_is_refused(
    columns: dict[str, list[object]], types: dict[str, pa.DataType], message: str, tmp_path: Path
) -> None:
    arrays = {name: pa.array(values) for name, values in columns.items()}
    arrays |= {
        name: arrays[name].view(kind) if name == "text" else arrays[name].cast(kind) for name, kind in types.items()
    }
    pq.write_table(pa.table(arrays), tmp_path / "docs.parquet")
    with pytest.raises(EncoreError) as caught:
        convert(tmp_path / "docs.parquet", tmp_path / "made")
    assert message in str(caught.value)


@pytest.mark.parametrize(("files", "message"), REFUSED)
def test_what_cannot_be_taken_is_refused_with_its_place_and_what_is_there(
    files: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("raw").mkdir()
    for name, text in files.items():
        (Path("raw") / name).parent.mkdir(exist_ok=True)
        (Path("raw") / name).write_text(text)
    with pytest.raises(EncoreError) as caught:
        convert(Path("raw"), Path("made"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [path.name for path in Path().iterdir()] == ["raw"]


DOCUMENTS = [
    (
        "<DOCHDR>\nhttp://x\n</DOCHDR><html><head><title>T</title></head><body>is <p>read</p> too</body></html>",
        ("T", "is read too"),
    ),
    ("<BODY><SLUG>x</SLUG><HEADLINE>H</HEADLINE>\n<TEXT>in a body</TEXT></BODY>", ("H", "in a body")),
    ("<HL>H</HL><LP>leads</LP><DATE>1</DATE><TEXT>and goes on</TEXT>", ("H", "leads and goes on")),
    ("<TITLE>T</TITLE><ABSTRACT>is its text</ABSTRACT>", ("T", "is its text")),
]


@pytest.mark.parametrize(("inner", "read"), DOCUMENTS)
def test_no_text_of_a_trec_document_is_lost(inner: str, read: tuple[str, str], tmp_path: Path) -> None:
    """Of the web (GOV2, WT10g), AQUAINT, the Wall Street Journal, and of fields of their own."""
    (tmp_path / "docs").write_text(f"<DOC>\n<DOCNO>1</DOCNO>\n{inner}\n</DOC>\n")
    convert(tmp_path / "docs", tmp_path / "made")
    (row,) = Collection(tmp_path / "made").corpus()
    assert (row["title"], " ".join(row["text"].split())) == read


def test_what_the_first_row_lacks_is_read_of_later_ones(tmp_path: Path) -> None:
    """Titles and listed negatives, which need not be there."""
    raw = tmp_path / "raw"
    raw.mkdir()
    rows = {"id": "a", "contents": "x"}, {"id": "b", "contents": "y", "Title": "Lift"}, {"id": "c", "contents": "z"}
    (raw / "corpus.jsonl").write_text(lines(*rows))
    first, second = tevatron("q1", "lift", ["a"], []), tevatron("q2", "drag", ["b"], ["c"]) | {"answers": ["z"]}
    del first["negative_passages"]
    (raw / "train.jsonl").write_text(lines(first, second))
    convert(raw, tmp_path / "made")
    made = Collection(tmp_path / "made")
    assert [row["title"] for row in made.corpus()] == ["", "Lift", ""]
    assert (list(made.negatives("train")), made.answers()) == ([("q2", "c", 1)], {"q2": ["z"]})


@pytest.mark.parametrize(
    ("name", "split"), [("qrels.training", "train"), ("development-qrels", "dev"), ("qrels", "test")]
)
def test_a_name_says_what_judgments_are_of(name: str, split: str, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for each, text in {**SMALL, f"{name}.txt": "1 0 1 1\n"}.items():
        (tmp_path / "raw" / each).write_text(text)
    convert(tmp_path / "raw", tmp_path / "made")
    assert Collection(tmp_path / "made").splits() == [split]


def test_what_is_not_read_is_said(tmp_path: Path) -> None:
    for name, text in {**SMALL, "README.md": "Texts, and more.\n", ".hidden": "x"}.items():
        (tmp_path / name).write_text(text)
    (said,) = (each for each in convert(tmp_path, tmp_path.with_name("made")) if each.startswith("Not read"))
    assert said.endswith(
        "README.md: comma-separated with no known header (Texts,  and more.) is not understood; rename "
        "its columns or the file, or remove it."
    )


def test_columns_that_are_known_by_their_place_alone_are_said_with_the_first_row(tmp_path: Path) -> None:
    """It may be a header of names that nobody knows."""
    (tmp_path / "docs.tsv").write_text("key\tabstract\theading\n1\ta\tb\n")
    (said,) = convert(tmp_path / "docs.tsv", tmp_path / "made")
    columns = "_id, title, text; first row: key, abstract, heading"
    assert said == f"2 passages from docs.tsv (tab-separated, no header, by position: {columns})."


def test_links_to_folders_and_to_nothing_are_not_read(tmp_path: Path) -> None:
    source = tmp_path / "raw"
    (source / "more").mkdir(parents=True)
    for name, text in SMALL.items():
        (source / name).write_text(text)
    (source / "linked").symlink_to(source / "more")
    (source / "gone.csv").symlink_to(source / "nowhere")
    gone, linked = (each for each in convert(source, tmp_path / "made") if each.startswith("Not read"))
    assert "gone.csv: cannot be read (" in gone
    assert "linked: cannot be read (" in linked


def test_scores_are_grades_where_no_column_is_called_so_and_a_run_is_no_judgments(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for name, text in SMALL.items():
        (raw / name).write_text(text)
    (raw / "qrels.csv").write_text("qid,docid,score,relevance\n1,1,35,2\n")
    (raw / "bm25.csv").write_text("qid,docid,rank,score\n1,1,1,35\n")
    said = convert(raw, tmp_path / "made")
    assert "bm25.csv: comma-separated with qid, docid, rank, score is not understood" in said[-1]
    assert Collection(tmp_path / "made").qrels("test") == {"1": {"1": 2}}


def test_a_tab_separated_text_may_have_several_lines(tmp_path: Path) -> None:
    frame = pd.DataFrame({"docid": ["1", "2"], "title": ["A", "B"], "text": ["to be,\nor not", 'a "b"\tc']})
    (tmp_path / "raw").mkdir()
    frame.to_csv(tmp_path / "raw/docs.tsv", sep="\t", index=False)
    convert(tmp_path / "raw", tmp_path / "made")
    assert [row["text"] for row in Collection(tmp_path / "made").corpus()] == [*frame["text"]]


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "corpus.tsv").write_text("1\ta\n")
    (tmp_path / "made").mkdir()
    with pytest.raises(EncoreError, match="made is there already"):
        convert(tmp_path / "corpus.tsv", tmp_path / "made")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for name, text in SMALL.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(EncoreError, match=r"cannot write .*corpus\.tsv/made: File exists; make room"):
        convert(tmp_path, tmp_path / "corpus.tsv/made")


def test_drop_leaves_out_what_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    files = {"corpus.tsv": "1\ta\n2\t \n", "queries.tsv": "1\tx\n", "qrels.txt": "1 0 1 1\n1 0 2 1\n1 0 3 1\n"}
    for name, text in files.items():
        (tmp_path / "raw" / name).write_text(text)
    with pytest.raises(EncoreError, match=r"or set `empty_documents: drop` \(here: `--drop`\)"):
        convert(tmp_path / "raw", tmp_path / "made")
    (tmp_path / "raw/corpus.tsv").write_text(files["corpus.tsv"] + "1\ta\n")
    (tmp_path / "raw/queries.tsv").write_text(files["queries.tsv"] + "2\t \n1\tx\n")
    said = convert(tmp_path / "raw", tmp_path / "made", drop=True)
    assert said[-1] == (
        "Left out: 1 passages without text, 2 duplicate rows, 1 queries without text, 1 judgments of "
        "passages without text, 1 judgments of passages that do not exist."
    )
    made = Collection(tmp_path / "made")
    assert ([row["_id"] for row in made.corpus()], made.qrels("test")) == (["1"], {"1": {"1": 1}})
    assert list(made.queries()) == ["1"]


def test_judgments_of_subtopics_are_counted_as_those_of_their_topic(tmp_path: Path) -> None:
    """TREC's diversity task names a subtopic in the column that is 0 otherwise."""
    (tmp_path / "raw").mkdir()
    for name, text in {**SMALL, "qrels.txt": "1 1 1 1\n1 2 1 1\n"}.items():
        (tmp_path / "raw" / name).write_text(text)
    said = convert(tmp_path / "raw", tmp_path / "made")
    assert "2 judgments of a subtopic, which count for its topic, 2 judgments of test from qrels.txt" in "".join(said)
    assert said[-1] == "Left out: 1 duplicate judgments."
    assert Collection(tmp_path / "made").qrels("test") == {"1": {"1": 1}}
    (tmp_path / "raw/qrels.txt").write_text("1 1 1 1\n1 2 1 0\n")
    with pytest.raises(EncoreError, match="judged twice, with other grades"):
        convert(tmp_path / "raw", tmp_path / "again")


def test_a_listed_negative_that_is_not_a_passage_is_refused_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/corpus.tsv").write_text("a\tlift\n")
    (tmp_path / "raw/train.jsonl").write_text(lines(tevatron("q1", "lift", ["a"], ["b"])))
    with pytest.raises(EncoreError, match=r"train.jsonl, line 1: document 'b' is not in the corpus"):
        convert(tmp_path / "raw", tmp_path / "made")
    said = convert(tmp_path / "raw", tmp_path / "made", drop=True)
    assert said[-1] == "Left out: 1 listed negatives that do not exist."


def test_drop_leaves_empty_passages_out_of_listed_negatives(tmp_path: Path) -> None:
    row = tevatron("q1", "lift", ["a"], ["b", "c"])
    row["negative_passages"][0] |= {"title": "", "text": " "}
    (tmp_path / "train.jsonl").write_text(lines(row))
    said = convert(tmp_path / "train.jsonl", tmp_path / "made", drop=True)
    assert said[-1] == "Left out: 1 passages without text, 1 listed negatives without text."
    assert list(Collection(tmp_path / "made").negatives("train")) == [("q1", "c", 2)]


@pytest.mark.parametrize("name", ["docs.jsonl.xz", "docs.jsonl.gz", "train.json.xz", "topics.xml.gz"])
def test_a_damaged_archive_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    texts = {"docs": "x" * 99_999, "train": "[", "topics": "<?xml version='1.0'?><topics><topic number='1'>x</topic>"}
    whole = {".xz": lzma, ".gz": gzip}[Path(name).suffix].compress(texts[name.split(".")[0]].encode())
    for damaged in (whole[: len(whole) // 2], whole[:20] + b"?" * 20 + whole[40:]):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(EncoreError) as caught:
            convert(tmp_path / name, tmp_path / "made")
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)
