"""The forms of other people's files: each is a function that gives numbered rows; a file's first bytes tell its form.

``FORMS`` registers them. A row has values by column; the columns of a file without header are called 1, 2, …
"""

import csv
import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq

from encore.data.columns import OPTIONAL, is_header, refuse_twice
from encore.data.validation import Row
from encore.datasets.dpr import elements
from encore.errors import EncoreError
from encore.storage.text_files import DAMAGED, LONGEST, numbered_lines, numbered_objects, numbered_records, opened

Rows = Iterator[tuple[int, Row]]
Batches = Iterator[pa.RecordBatch]
HEAD = 4096  # bytes that tell a form
_MARKUP = re.compile(r"</?[A-Za-z!][^<>]*>")
_FIELD = re.compile(r"<(\w+)[^<>]*>(.*?)</\1>", re.DOTALL)
_WRAPPER = re.compile(r"</?(?:body|html)\b[^<>]*>", re.IGNORECASE)
_BESIDE = ("docno", "docid", "dochdr", *OPTIONAL["passages"]["title"])  # of a document, next to its text
_NO_TEXT = re.compile(rf"<({'|'.join(_BESIDE)})\b[^<>]*>.*?</\1>", re.DOTALL | re.IGNORECASE)
_JUDGMENT = r"(\S+\tQ?\d+\t\S+\t|\S+ +Q?\d+ +\S+ +)-?\d+(\.0+)?\s*?(\n|$)"  # its second column is a number
_LABEL = re.compile(r"(?i)(number|topic|description|narrative)\s*:")


@dataclass(frozen=True)
class Form:
    """One form: how its files begin, and what numbers their rows."""

    name: str
    begins: str
    rows: Callable[[Path], Rows]
    unit: str = "line"


def form_of(path: Path) -> Form | None:
    """The form that a file begins like; None for an empty or unknown one."""
    try:
        with opened(path) as file:
            head = file.read(HEAD)
    except DAMAGED as error:
        raise EncoreError(f"{path}: cannot be read ({error}); replace the file") from error
    text = head.decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    return next((form for form in FORMS if re.match(form.begins, text, re.IGNORECASE)), None)


def _arrow(path: Path) -> Batches:
    """A stream, as a Hugging Face ``datasets`` folder has it, or a file of Feather's."""
    with pa.memory_map(str(path)) as source:
        if source.read(6) == b"ARROW1":
            file = pa.ipc.open_file(source)
            yield from (file.get_batch(number) for number in range(file.num_record_batches))
        else:
            source.seek(0)
            yield from pa.ipc.open_stream(source)


def _parquet(path: Path) -> Batches:
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(batch_size=1024)


def _batched(batches: Callable[[Path], Batches], path: Path) -> Rows:
    def rows() -> Iterator[Row]:
        for batch in batches(path):
            refuse_twice(batch.schema.names, str(path))
            yield from batch.to_pylist()

    try:
        yield from enumerate(rows(), 1)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # no UTF-8, a date that Python lacks
        raise EncoreError(f"{path}: cannot be read ({error}); replace the file") from error


def _trec_judgments(path: Path) -> Rows:
    for number, line in numbered_records(path):
        yield number, _fitting(path, number, ["qid", "iteration", "docid", "score"], line.split())


def _tab_separated(path: Path) -> Rows:
    """The quoting is that of CSV below a header, as pandas writes it; without one there is none, as in MS MARCO's."""
    _, first = next(numbered_records(path))
    if is_header(first.split("\t")):
        yield from _quoted(path, "\t")
        return
    names = _numbered(first.split("\t"))
    for number, line in numbered_records(path):
        yield number, _fitting(path, number, names, line.split("\t"))


def _comma_separated(path: Path) -> Rows:
    _, first = next(numbered_records(path))
    return _quoted(path, "," if first.count(",") >= first.count(";") else ";")


def _quoted(path: Path, between: str) -> Rows:
    before = csv.field_size_limit(LONGEST)  # of the whole process
    names, began, whole = list[str](), 1, list[str]()

    def lines() -> Iterator[str]:
        for _, line in numbered_lines(path):
            whole.append(line)
            yield f"{line}\n"

    reader = csv.reader(lines(), delimiter=between, strict=True)
    try:
        for fields in reader:
            if fields and not names:
                names = list(map(str.strip, fields)) if is_header(fields) else _numbered(fields)
                refuse_twice(names, str(path))
                fields = [] if is_header(fields) else fields
            if between == "\t" and any("\t" in line and line.count("\t") == len(names) - 1 for line in whole[1:]):
                raise EncoreError(
                    f"{path}, line {began}: quotation marks hold whole lines; double those that are part of a text, "
                    "or write JSON lines"
                )
            if fields:  # a blank line has none
                yield began, _fitting(path, began, names, fields)
            began = reader.line_num + 1
            whole.clear()
    except csv.Error as error:
        raise EncoreError(
            f"{path}, line {began}: cannot be split into columns ({error}); fix its quotes, or remove the line"
        ) from error
    finally:
        csv.field_size_limit(before)


def _numbered(fields: list[str]) -> list[str]:
    return [str(number) for number, _ in enumerate(fields, 1)]


def _fitting(path: Path, number: int, names: list[str], fields: list[str]) -> Row:
    if len(fields) != len(names):
        raise EncoreError(
            f"{path}, line {number}: {len(fields)} columns, {len(names)} are expected; fix or remove the line"
        )
    return dict(zip(names, fields, strict=True))


def _trec_documents(path: Path) -> Rows:
    """The elements of each ``<DOC>`` and its ``<BODY>``; without a ``<TEXT>`` all but id, header and titles is it."""
    for number, inner in _between(path, "DOC"):
        row: Row = {}
        inner = _WRAPPER.sub(" ", inner)
        for name, value in _FIELD.findall(inner):
            ours = "text" if name.lower() in ("lp", "leadpara") else name.lower()  # of the Wall Street Journal
            row[ours] = "\n".join([*filter(None, [row.get(ours)]), _plain(value)])
        if "text" not in row:
            row = {name: row[name] for name in _BESIDE if name in row} | {"text": _plain(_NO_TEXT.sub("", inner))}
        yield number, row


def _trec_topics(path: Path) -> Rows:
    """``<num>``, ``<title>`` and others of each ``<top>``, which nothing needs to close, without their labels."""
    for number, inner in _between(path, "top"):
        _, *parts = re.split(r"<(\w+)>", re.sub(r"</\w+>", "", inner))
        values = (" ".join(_LABEL.sub("", _plain(value), count=1).split()) for value in parts[1::2])
        yield number, dict(zip((name.lower() for name in parts[::2]), values, strict=True))


def _between(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """What is between each ``<name>`` and the next ``</name>``, with the line of the first."""
    marks = re.compile(rf"(<{name}(?:\s[^<>]*)?>|</{name}>)", re.IGNORECASE)
    began, parts = 0, list[str]()
    for number, line in numbered_lines(path):
        for piece in marks.split(line):
            closes, is_mark = piece.startswith("</"), marks.fullmatch(piece)
            if is_mark and closes == (not began):
                raise EncoreError(f"{path}, line {number}: {piece} cannot be here; close each <{name}> once")
            if is_mark and closes:
                yield began, "\n".join(parts)
            if is_mark:
                began, parts = 0 if closes else number, []
            else:
                parts.append(piece)
    if began:
        raise EncoreError(f"{path}, line {began}: <{name}> is not closed; close it, or replace the file")


def _plain(text: str) -> str:
    return html.unescape(_MARKUP.sub(" ", text)).strip()


def _xml_topics(path: Path) -> Rows:
    """Attributes and children of each child of the root; the text of one without children."""
    try:
        with opened(path) as file:
            root = ElementTree.parse(file).getroot()
    except (*DAMAGED, ElementTree.ParseError, ValueError) as error:  # ValueError: an encoding that it does not know
        raise EncoreError(f"{path}: no XML that can be read ({error}); replace the file") from error
    for number, topic in enumerate(root, 1):
        texts = [(each.tag, " ".join("".join(each.itertext()).split())) for each in (*topic, topic)]
        yield number, {**topic.attrib, **dict(texts[:-1] or [("text", texts[-1][1])])}


FORMS = (
    Form("parquet", r"PAR1", partial(_batched, _parquet), "row"),
    Form("Arrow", r"ARROW1|\ufffd{4}", partial(_batched, _arrow), "row"),
    Form("JSON lines", r"\{", numbered_objects),
    Form("JSON array", r"\[", lambda path: enumerate(elements(path), 1), "element"),
    Form("TREC documents", r"<DOC[\s>]", _trec_documents),
    Form("TREC topics", r"<top>", _trec_topics),
    Form("XML topics", r"<\?xml|<\w*(topics|queries)", _xml_topics, "topic"),
    Form("TREC judgments", _JUDGMENT, _trec_judgments),
    Form("tab-separated", r"[^\n]*\t", _tab_separated),
    Form("comma-separated", r"[^\n]*[,;]", _comma_separated),
)
