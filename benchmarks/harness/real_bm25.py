"""BM25 on small whole collections, under every reading of their files that moves a score."""

from __future__ import annotations

import json
import re
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from html import unescape
from pathlib import Path
from statistics import mean, median
from typing import Any

from encore.config.datasets import parse_measure
from encore.data.collection import Collection
from encore.data.rankings import Run
from encore.evaluation.measures import measure_values
from encore.evaluation.ranks import Grades
from encore.retrieval import lucene
from encore.storage.text_files import numbered_lines
from harness.real_counts import collection
from harness.trec_eval import judgments

ARCHIVE, WHOLE, PUBLISHED = "cacm.tar.gz", "whole record", "ids as published"
APART = 5e-4  # of published scores: tied documents stand in another order there
SHOWN = ("AP", "P@30", "R@100", "nDCG@10")
Row = dict[str, Any]


def cranfield(folder: Path) -> tuple[list[Row], list[Row]]:
    """Scores under three readings of the grades, and what BM25 itself says of them.

    1 is the best grade and 4 the least; -1, one document of each query, is in no description.
    """
    splits = {"test": {"role": "test", "file": "qrels/test.tsv"}}
    fields = {"kind": "beir", "path": str(folder), "segments": [["text"]], "empty_documents": "drop", "splits": splits}

    def answered(built: Path) -> tuple[list[Row], list[Row]]:
        opened = Collection(built)
        run, codes = _run(opened), _tsv(folder / "qrels/test.tsv")
        readings = {
            "all pairs relevant": _graded(codes, lambda code: 1),
            "1 the best, -1 the best too": _graded(codes, lambda code: 5 - code if code > 0 else 4),
            "1 the best, -1 left out": _graded(codes, lambda code: 5 - code if code > 0 else 0),
            "codes as gains (upside down), -1 left out": _graded(codes, lambda code: max(code, 0)),
        }
        rows = [_row("Cranfield", name, run, of) for name, of in readings.items()]
        return rows, [_standing(run, codes, code) for code in (-1, 1, 2, 3, 4)]

    return collection(fields, answered)


def cacm(folder: Path) -> list[Row]:
    """Scores with titles and abstracts, or whole records, against padded and published ids.

    Whole with their citations they are in the archive only that is published (``cacm.tar.gz``); BM25's published score
    is of these, so where the archive is next to the other files they are searched too.
    """
    fields = {"kind": "beir", "path": str(folder), "splits": {"test": {"role": "test"}}}
    corpus = [json.loads(line) for _, line in numbered_lines(folder / "corpus.jsonl.gz")]
    texts = {"title and abstract": None, "whole record but citations": {row["_id"]: _record(row) for row in corpus}}
    if (folder / ARCHIVE).is_file():
        texts[WHOLE] = _archived(folder / ARCHIVE)
    published = judgments(folder / "extra/qrels.cacm.as-published.txt")

    def answered(built: Path) -> list[Row]:
        opened = Collection(built)
        runs = {name: _run(opened, documents) for name, documents in texts.items()}
        readings = {"padded ids": opened.qrels("test"), PUBLISHED: published}
        return [
            {"collection": "CACM", "reading": f"{text}, {ids}", **_scores(run, grades), "published": "", "agrees": ""}
            for text, run in runs.items()
            for ids, grades in readings.items()
        ]

    return collection(fields, answered)


def compared(rows: list[Row], printed: Mapping[str, float]) -> list[Row]:
    """The published scores in the row that they are about; it agrees where no value is further off than ``APART``."""
    for row in rows:
        if row["reading"].startswith(f"{WHOLE}, {PUBLISHED}"):
            row["published"] = ", ".join(f"{name} {value:.4f}" for name, value in printed.items())
            row["agrees"] = all(abs(row[name] - value) <= APART for name, value in printed.items())
    return rows


def _run(opened: Collection, texts: Mapping[str, str] | None = None) -> Run:
    documents = texts.items() if texts else ((name, parts[0]) for name, parts in opened.texts())
    with tempfile.TemporaryDirectory() as folder:
        lucene.build_lucene_index(documents, Path(folder), 512)
        return lucene.search_bm25(Path(folder), opened.queries(), memory_mb=512)


def _row(name: str, reading: str, run: Run, grades: Grades) -> Row:
    return {"collection": name, "reading": reading, **_scores(run, grades), "published": "", "agrees": ""}


def _scores(run: Run, grades: Grades) -> dict[str, float]:
    """Means over judged queries of whatever grade, as trec_eval -c has them; nDCG says nothing of binary grades."""
    found = measure_values([parse_measure(name) for name in SHOWN], grades, run)
    return {str(measure): mean(values.values()) for measure, values in found.items()}


def _standing(run: Run, codes: Grades, code: int) -> Row:
    """Where the ranking has the documents of one code; one that it has not counts as behind all."""
    ranks = [
        run[query].documents.index(document) + 1 if query in run and document in run[query].documents else 1e9
        for query, of in codes.items()
        for document, given in of.items()
        if given == code
    ]
    if not ranks:
        return {"code": code, "pairs": 0, "median_rank": None, "mean_reciprocal_rank": None}
    reciprocal = mean(1 / rank for rank in ranks)
    return {"code": code, "pairs": len(ranks), "median_rank": median(ranks), "mean_reciprocal_rank": reciprocal}


def _tsv(path: Path) -> Grades:
    grades: dict[str, dict[str, int]] = {}
    for _, line in list(numbered_lines(path))[1:]:
        query, document, code = line.split("\t")
        grades.setdefault(query, {})[document] = int(code)
    return grades


def _graded(codes: Grades, gain: Callable[[int], int]) -> Grades:
    return {query: {document: gain(code) for document, code in of.items()} for query, of in codes.items()}


def _archived(path: Path) -> dict[str, str]:
    """Texts of the published records by id: all that stands between their HTML and PRE tags."""
    with tarfile.open(path) as archive:
        members = [(Path(member.name).stem, archive.extractfile(member)) for member in archive if member.isfile()]
        texts = {name: file.read().decode("utf-8") for name, file in members if file is not None}
    return {name: unescape(re.sub(r"</?(?:html|pre)>", " ", text)) for name, text in texts.items()}


def _record(row: Mapping[str, Any]) -> str:
    metadata = row["metadata"]
    return " ".join([row["title"], row["text"], metadata.get("date", ""), *metadata.get("other", [])])
