"""Bring Cranfield or CACM, as published, into BEIR's layout, and Wikispeedia into articles with sections and links.

`convert.py cranfield data/cranfield/cran.tar.gz data/cranfield`. White space inside a field is folded to single spaces;
nothing else of Cranfield and CACM is changed. Of Wikispeedia only prose is kept; `wikispeedia-part` has four fifths of
its articles, as recorded runs. See docs/real-data.md.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import md5
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from encore.storage.program import run

from encore.data.collection import QRELS_HEADER
from encore.errors import EncoreError
from encore.storage.files import write_jsonl, write_text

GAINS = {1: 4, 2: 3, 3: 2, 4: 1}  # Cranfield's code 1 is the best, 4 the least
_FIELD = re.compile(r"^\.([ITABW])(?: (\S+))?[ \r]*\n", re.MULTILINE)
_DATE = re.compile(r"^ *CACM\s+\w+[,.\s]+\d{4}\s*$", re.MULTILINE)
_NO_PROSE = re.compile(r"(?:\d+ \d+ \d+ ?)+|CA\d{6}.*")
_BEGINS, _ENDS = "Related subjects:", 'Retrieved from "'  # the lines above and below an article of Wikispeedia
_WORDS = 8  # of a paragraph at least
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", choices=["cranfield", "cacm", "wikispeedia", "wikispeedia-part"])
    parser.add_argument(
        "archive",
        type=Path,
        help="cran.tar.gz, cacm.tar.gz with topics and qrels next to it, or wikispeedia_articles_plaintext.tar.gz with "
        "wikispeedia_paths-and-graph.tar.gz",
    )
    parser.add_argument("output", type=Path, help="the folder to fill")
    arguments = parser.parse_args()
    convert: dict[str, Callable[[Path, Path], None]] = {
        "cranfield": cranfield,
        "cacm": cacm,
        "wikispeedia": wikispeedia,
        "wikispeedia-part": partial(wikispeedia, part=True),
    }
    convert[arguments.collection](arguments.archive, arguments.output)


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
    """Files of cacm.tar.gz, and topics.cacm.txt and qrels.cacm.txt next to it, whose ids are padded to four digits.

    Below ``whole`` are the whole records with the judgments as published, which the known scores of BM25 are of.
    """
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
    whole = [
        {"_id": Path(name).stem, "title": "", "text": _whole(text)} for name, text in sorted(_members(archive).items())
    ]
    _write(output / "whole", whole, [{"_id": name, "text": _folded(text)} for name, text in written])
    _write_qrels(output / "whole/qrels/test.tsv", ([row[0], row[2], row[3]] for row in rows))


def wikispeedia(archive: Path, output: Path, part: bool = False) -> None:
    """Articles of Wikipedia as lines of JSON: prose by section, and the articles that each one links to.

    A ``part`` has those whose md5 of the name modulo 5 is not 0.
    """
    graph = archive.parent / "wikispeedia_paths-and-graph.tar.gz"
    if not graph.is_file():
        raise EncoreError(f"{graph} is missing; put it next to {archive.name}")
    texts = {unquote(Path(name).stem): text for name, text in _members(archive).items() if name.endswith(".txt")}
    if part:
        texts = {name: text for name, text in texts.items() if int(md5(name.encode()).hexdigest(), 16) % 5}
    links: dict[str, list[str]] = {}
    for line in _members(graph)["links.tsv"].splitlines():
        if line and not line.startswith("#"):
            source, target = (unquote(name) for name in line.split("\t"))
            links.setdefault(source, []).extend([target] if target in texts else [])
    output.mkdir(parents=True, exist_ok=True)
    with lzma.open(output / "articles.jsonl.xz", "wt", encoding="utf-8") as file:
        for name, text in sorted(texts.items()):
            row = {
                "id": name,
                "title": name.replace("_", " "),
                "sections": _sections(text),
                "links": links.get(name, []),
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _sections(text: str) -> list[Row]:
    """Prose is indented by three blanks and ends with a stop; headings are not indented, lists and tables further."""
    found: list[Row] = [{"heading": "", "paragraphs": []}]
    for block in re.split(r"\n[ \t]*\n", text.partition(_BEGINS)[2].partition(_ENDS)[0])[1:]:
        lines = [line for line in block.splitlines() if line.strip()]
        if lines and not lines[0].startswith(" "):
            found.append({"heading": _folded(block), "paragraphs": []})
        elif lines and all(re.match(r"   \S", line) for line in lines):
            said = _folded(block)
            prose = said.count(" ") + 1 >= _WORDS and re.search(r"[.!?:][\"')\]]*$", said)
            if prose and "Enlarge" not in said and not said.startswith("* "):
                found[-1]["paragraphs"].append(said)
    return [section for number, section in enumerate(found) if section["paragraphs"] or number == 0]


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


def _whole(html: str) -> str:
    """All of a CACM record: authors, citations and who typed it, too."""
    return _folded(unescape(re.sub(r"</?(?:html|pre)>", " ", html)))


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
