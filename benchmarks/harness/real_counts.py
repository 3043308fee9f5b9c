"""Counts of real files, read with the project's own readers where it has one for them."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from encore.datasets import kinds
from encore.datasets.dpr import with_answers
from encore.storage.text_files import numbered_lines
from harness.trec_eval import judgments

Counts = Mapping[str, int]


def topics_and_judgments(folder: Path, topics: str, qrels: str) -> Counts:
    """MS MARCO's and TREC's form: ``id TAB text``, and qrels; those that are asked and judged count."""
    texts = dict(line.split("\t") for _, line in numbered_lines(folder / "topics" / topics))
    grades = judgments(folder / "qrels" / qrels)
    by_grade = Counter(grade for of in grades.values() for grade in of.values())
    asked = sum(bool(text.strip()) and query in grades for query, text in texts.items())
    return {"queries": asked, "judgments": by_grade.total()} | {f"grade {key}": by_grade[key] for key in by_grade}


def questions(path: Path) -> Counts:
    """Questions that have an answer: rows of DPR's, read as the collections do, or JSON lines."""
    lines = [line for _, line in numbered_lines(path)]
    if not lines[0].startswith("{"):
        return {"questions": sum(1 for _ in with_answers(path))}
    return {"questions": sum(bool(row["question"].strip()) and any(row["answer"]) for row in map(json.loads, lines))}


def squad(folder: Path) -> Counts:
    """Articles, paragraphs, and questions all of whose answers stand in their paragraph where they are said to."""
    path = next(path for path in sorted(folder.glob("dev-v1.1*")) if path.suffix in (".json", ".gz"))
    articles = json.loads("\n".join(line for _, line in numbered_lines(path)))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    standing = sum(
        all(paragraph["context"].startswith(answer["text"], answer["answer_start"]) for answer in question["answers"])
        for paragraph in paragraphs
        for question in paragraph["qas"]
    )
    return {"articles": len(articles), "paragraphs": len(paragraphs), "questions": standing}


def beir(folder: Path, qrels: str = "qrels/test.tsv") -> Counts:
    """Rows of the three files. What the collection keeps of them is ``collection``'s to say."""
    documents, queries, judged = (
        [line for _, line in numbered_lines(_packed_or_not(folder / name))]
        for name in ("corpus.jsonl", "queries.jsonl", qrels)
    )
    rows = [line.split("\t") for line in judged[1:]]
    by_grade = Counter(row[2] for row in rows)
    asked = len({row[0] for row in rows})
    return {"documents": len(documents), "queries": len(queries), "judged queries": asked, "judgments": len(rows)} | {
        f"grade {grade}": count for grade, count in by_grade.items()
    }


def _packed_or_not(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    return packed if packed.is_file() else path


def encyclopedia(path: Path) -> Counts:
    """Articles as they were published; the collection leaves out one that has no text."""
    rows = [json.loads(line) for _, line in numbered_lines(path)]
    sections = [[bool(section["paragraphs"]) for section in row["sections"]] for row in rows]
    return {
        "articles": len(rows),
        "articles with a lead": sum(bool(each) and each[0] for each in sections),
        "sections with text": sum(map(sum, sections)),
        "links": sum(len(set(row["links"])) for row in rows),
    }


def dump(path: Path) -> Counts:
    """Pages of a MediaWiki export, by the collection's own reader."""
    counts = collection({"kind": "wikipedia", "path": str(path)})["pages"]
    return {
        "pages": sum(counts.values()),  # each page stands under one reason, or is an article
        "redirects": counts["redirect"],
        "disambiguation pages": counts["disambiguation"],
        "other namespaces": counts["other_namespaces"],
    }


def collection(fields: dict[str, Any], read: Callable[[Path], Any] | None = None) -> Any:
    """Statistics of a collection, by its entry of a run's ``datasets``; or what ``read`` finds in its folder."""
    entry = kinds.load_kind(fields["kind"]).fields.model_validate(fields)
    with tempfile.TemporaryDirectory() as folder:
        counts = kinds.build_collection(fields["kind"], entry.resolve(), Path(folder), source=Path(fields["path"]))
        return read(Path(folder)) if read else counts
