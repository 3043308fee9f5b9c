"""Writing a collection's articles as they come: none is held, only how many sections each one has.

A collection that is only for pre-training has nothing else: passages of it would be stored, and never read. Its
articles can be packed by several processes: gzip with a member for each batch of rows, which readers take as one file.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from isal import igzip
from pydantic import Field

from encore.config.datasets import CollectionFields, Split
from encore.errors import EncoreError
from encore.storage.files import GZIP_LEVEL, replacing, write_json, write_jsonl
from encore.storage.processes import shared_in_order

Row = dict[str, Any]
COUNTED = ("articles", "sections", "sentences", "links", "links_between_articles")


class ArticlesFields(CollectionFields):
    """Fields of kinds of collections that are only for pre-training."""

    splits: dict[str, Split] = Field({}, max_length=0, description="none: there are no queries")

    only_articles: ClassVar[bool] = True


def article(name: str, title: str, sections: Iterable[tuple[str, Sequence[str]]], links: Sequence[Row] = ()) -> Row:
    """The row of an article, from the title and the sentences of each section, and its links (``collection.py``)."""
    written = [{"title": heading, "sentences": sentences} for heading, sentences in sections]
    return {"_id": name, "title": title, "sections": written, "links": links}


def write_articles(path: Path, articles: Iterable[Row]) -> dict[str, int]:
    """Write the articles, checking that their links point to sections, and count them; no file when there are none."""
    counts = Counter(dict.fromkeys(COUNTED, 0))
    write_jsonl(path, _checked(articles, counts))
    if not counts["articles"]:
        path.unlink()
        return {}
    return dict(counts)


def write_article_collection(
    folder: Path, articles: Iterable[Row], statistics: Mapping[str, Any], processes: int = 1
) -> dict[str, Any]:
    """Write a collection to pre-train on, of articles only, and return its counts (also in ``statistics.json``).

    The files of passages and queries are there and empty. ``statistics`` is read when all articles are written.

    Args:
        processes: that pack the articles; the bytes are the same for any number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, counts = folder / "articles.jsonl.gz", Counter(dict.fromkeys(COUNTED, 0))
    try:
        _write_packed(path, _checked(articles, counts), processes)
    except UnicodeEncodeError as error:
        raise EncoreError(
            f"an article holds half of a surrogate pair, which UTF-8 cannot represent: {error}"
        ) from error
    if not counts["articles"]:
        path.unlink()
        raise EncoreError("the source holds no article; name another one")
    for name in ("corpus", "queries"):
        write_jsonl(folder / f"{name}.jsonl.gz", ())
    found = {"passages": 0, "queries": 0, "splits": {}, **counts, **statistics}
    write_json(folder / "statistics.json", found)
    return found


def _checked(rows: Iterable[Row], counts: Counter[str]) -> Iterator[Row]:
    """Yield the articles unchanged, each once it has been checked and counted.

    A link may lead to an article that comes later: the furthest section that is asked of such a one is remembered.
    """
    sections: dict[str, int] = {}
    awaited: dict[str, tuple[int, str]] = {}  # by article: the section, and who asks
    for row in rows:
        name, links = row["_id"], row["links"]
        if name in sections:
            raise EncoreError(f"articles: the id {name!r} occurs twice; give each article one row")
        sections[name] = len(row["sections"])
        anchor, source = awaited.pop(name, (-1, ""))
        if anchor >= sections[name]:
            raise _lost(source, name, anchor)
        for link in links:
            to, anchor = link["to"], link["anchor"]
            if anchor < 0 or anchor >= sections.get(to, anchor + 1):
                raise _lost(name, to, anchor)
            if not 0 <= link["section"] < sections[name]:
                raise _lost(name, name, link["section"])
            if to not in sections and anchor > awaited.get(to, (-1, ""))[0]:
                awaited[to] = anchor, name
        counts["articles"] += 1
        counts["sections"] += len(row["sections"])
        counts["sentences"] += sum(len(section["sentences"]) for section in row["sections"])
        counts["links"] += len(links)
        counts["links_between_articles"] += sum(link["to"] != name for link in links)
        yield row
    for to, (anchor, source) in awaited.items():
        raise _lost(source, to, anchor)


def _lost(source: str, to: str, section: int) -> EncoreError:
    return EncoreError(
        f"article {source!r} has a link from or to a section that does not exist, {section} of {to!r}; remove it"
    )


TOGETHER = 256  # rows of a member


def _write_packed(path: Path, rows: Iterable[Row], processes: int) -> None:
    """Write one JSON object a line, compressed; equal rows give equal bytes, whatever the number of processes is."""
    rows = iter(rows)
    batches = iter(lambda: list(islice(rows, TOGETHER)), [])
    with replacing(path) as temporary, temporary.open("wb") as file:
        for packed in shared_in_order(_packed, batches, processes):
            file.write(packed)


def _packed(rows: list[dict[str, Any]]) -> bytes:
    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows]
    return igzip.compress("".join(lines).encode(), compresslevel=GZIP_LEVEL, mtime=0)
