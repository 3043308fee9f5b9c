"""Bring Cranfield or CACM, as published, into BEIR's layout: `convert.py cranfield cran.tar.gz data/cranfield`.

White space inside a field is folded to single spaces; nothing else is changed. See docs/real-data.md.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

from encore.storage.program import run

from encore.data.collection import QRELS_HEADER
from encore.errors import EncoreError
from encore.storage.files import write_jsonl, write_text

GAINS = {1: 4, 2: 3, 3: 2, 4: 1}  # Cranfield's code 1 is the best, 4 the least
_FIELD = re.compile(r"^\.([ITABW])(?: (\S+))?[ \r]*\n", re.MULTILINE)
_DATE = re.compile(r"^ *CACM\s+\w+[,.\s]+\d{4}\s*$", re.MULTILINE)
_NO_PROSE = re.compile(r"(?:\d+ \d+ \d+ ?)+|CA\d{6}.*")
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", choices=["cranfield", "cacm"])
    parser.add_argument("archive", type=Path, help="cran.tar.gz, or cacm.tar.gz with topics and qrels next to it")
    parser.add_argument("output", type=Path, help="the folder to fill")
    arguments = parser.parse_args()
    {"cranfield": cranfield, "cacm": cacm}[arguments.collection](arguments.archive, arguments.output)


def cranfield(archive: Path, output: Path) -> None:
    """Files of cran.tar.gz. Queries are numbered in their order, which is what the judgments use, not as they print."""
    files = _members(archive)
    documents = [
        {"_id": row["I"], "title": row.get("T", ""), "text": row.get("W", "")}
        for row in _records(files["cran.all.1400"])
    ]
    queries = [{"_id": str(place), "text": row["W"]} for place, row in enumerate(_records(files["cran.qry"]), 1)]
    judged = [line.split()[:3] for line in files["cranqrel"].splitlines() if line.strip()]
    _write(output, documents, queries)
    _write_qrels(output / "qrels/test.tsv", judged)
    _write_qrels(output / "extra/qrels.binary-all.tsv", ([query, document, 1] for query, document, _ in judged))
    gains = ([query, document, GAINS.get(int(code))] for query, document, code in judged)
    _write_qrels(output / "extra/qrels.gain.tsv", (row for row in gains if row[2]))


def cacm(archive: Path, output: Path) -> None:
    """Files of cacm.tar.gz, and topics.cacm.txt and qrels.cacm.txt next to it, whose ids are padded to four digits."""
    topics, published = (archive.parent / name for name in ("topics.cacm.txt", "qrels.cacm.txt"))
    for path in (topics, published):
        if not path.is_file():
            raise EncoreError(f"{path} is missing; put castorini/anserini-tools' file next to {archive.name}")
    documents = [_record(Path(name).stem, text) for name, text in sorted(_members(archive).items())]
    written = re.findall(r"<DOCNO>\s*(\S+)\s*</DOCNO>(.*?)</DOC>", topics.read_text(encoding="utf-8"), re.DOTALL)
    _write(output, documents, [{"_id": name, "text": _folded(text)} for name, text in written])
    rows = [line.split() for line in published.read_text(encoding="utf-8").splitlines() if line.strip()]
    _write_qrels(output / "qrels/test.tsv", ([row[0], _padded(row[2]), row[3]] for row in rows))
    for source, name in ((published, "extra/qrels.cacm.as-published.txt"), (archive, archive.name)):
        if (output / name).resolve() != source.resolve():
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, output / name)


def _members(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as opened:
        files = {Path(member.name).name: opened.extractfile(member) for member in opened if member.isfile()}
        return {name: file.read().decode("utf-8") for name, file in files.items() if file is not None}


def _records(text: str) -> Iterator[dict[str, str]]:
    """SMART's form: lines of a full stop and a letter begin a field, `.I` and a number a record."""
    row: dict[str, str] = {}
    parts = _FIELD.split(text)[1:]
    for letter, number, said in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if letter == "I" and row:
            yield row
            row = {}
        # Three of Cranfield's records have a field twice; its parts are joined.
        row[letter] = number if letter == "I" else f"{row.get(letter, '')} {_folded(said)}".strip()
    yield row


def _record(name: str, html: str) -> Row:
    """A CACM record: its first block is the title, those up to the date the text; authors and so on come after it.

    CACM-1890 has no date, so all of it is text. Citations and the line that says who typed it are left out.
    """
    text = unescape(re.sub(r"</?(?:html|pre)>", "", html))
    date = _DATE.search(text)
    before, after = (text[: date.start()], text[date.end() :]) if date else (text, "")
    title, *others = _blocks(before)
    said = {"date": _folded(date[0]) if date else "", "other": _blocks(after)}
    return {"_id": name, "title": title, "text": " ".join(others), "metadata": said}


def _blocks(text: str) -> list[str]:
    found = (_folded(block) for block in re.split(r"\n\s*\n", text))
    return [block for block in found if block and not _NO_PROSE.fullmatch(block)]


def _padded(name: str) -> str:
    kind, _, number = name.partition("-")
    return f"{kind}-{int(number):04}"


def _folded(text: str) -> str:
    return " ".join(text.split())


def _write(output: Path, documents: list[Row], queries: list[Row]) -> None:
    output.mkdir(parents=True, exist_ok=True)
    write_jsonl(output / "corpus.jsonl.gz", documents)
    write_jsonl(output / "queries.jsonl.gz", queries)


def _write_qrels(path: Path, rows: Iterable[list[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join("\t".join(map(str, row)) + "\n" for row in [[QRELS_HEADER], *rows]))


if __name__ == "__main__":
    run(main)
