"""Writing and reading of runs, as text and as matrices, next to the tools that users have; see README.md."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore.storage.program import run

import ir_measures
import numpy as np
import pytrec_eval
from harness import comparison, machine, record
from harness.runs import HEADER, PLAIN, made_up_run

from encore.data.rankings import RunMatrices
from encore.data.runs import TEXT, read_run, write_run
from encore.data.trec_runs import read_trec, write_trec
from encore.errors import EncoreError

OF_TRAINING = HEADER | {"data": {"test collection": {"name": "made-up", "topics": "train"}}}  # so without text
Scores = dict[str, dict[str, float]]  # query -> document -> score


def main() -> None:
    options = _options()
    before = machine.load()
    with tempfile.TemporaryDirectory() as place:
        folder, again = Path(place), Path(place) / "again"
        made_up_run(folder, options.queries, options.depth, options.documents, judged=2)
        again.mkdir()
        found = read_run(folder)
        writing: dict[str, Callable[[], None]] = {
            "Pyserini's TrecWriter, plain text": lambda: _write_lines(again / PLAIN, found),
            "Encore, gzipped text": lambda: write_trec(again / TEXT, found, HEADER),
            "Encore, matrices": lambda: write_run(again, found, OF_TRAINING),
        }
        _, written = comparison.in_turns(writing, options.turns)
        reading: dict[str, Callable[[], Any]] = {
            "pytrec_eval, plain text": lambda: _parsed(again / PLAIN),
            "ir_measures, plain text": lambda: list(ir_measures.read_trec_run(str(again / PLAIN))),
            "Encore, plain text": lambda: read_trec(again / PLAIN),
            "Encore, gzipped text": lambda: read_trec(again / TEXT),
            "Encore, matrices": lambda: read_run(again),
        }
        back, took = comparison.in_turns(reading, options.turns)
    expected = _scores(found)
    if wrong := [name for name, its in back.items() if _scores(its) != expected]:
        raise EncoreError(f"{wrong[0]} reads another run than was written; report it as a bug")
    lines = int(found.lengths.sum())
    contents: dict[str, Any] = {
        "setting": {name: getattr(options, name) for name in ("queries", "depth", "documents", "turns")},
        "agreement": "every way reads the same scores, whichever way wrote them",
        "writing": comparison.rows(written, lines, "lines", base=next(iter(writing))),
        "reading": comparison.rows(took, lines, "lines", base=next(iter(reading))),
        "goals": [],
    }
    record.write(options.output, options.name, contents, before, ("pytrec-eval-terrier", "ir-measures"))
    print("\n".join([*record.table(contents["writing"]), "", *record.table(contents["reading"])]))


def _write_lines(path: Path, found: RunMatrices) -> None:
    """As the class of that name writes them, without Lucene's hits before."""
    with path.open("w") as file:
        for query in found:
            ranking = found[query]
            for rank, (document, score) in enumerate(zip(ranking.documents, ranking.scores, strict=True), 1):
                file.write(f"{query} Q0 {document} {rank} {score:.6f} made-up\n")


def _parsed(path: Path) -> Scores:
    with path.open() as file:
        read: Scores = pytrec_eval.parse_run(file)
    return read


def _scores(found: Any) -> Scores:
    """A run as pytrec_eval has it, its scores as we have them."""
    if isinstance(found, RunMatrices):
        return {query: dict(zip(found[query].documents, found[query].scores.tolist(), strict=True)) for query in found}
    lines = (
        ((query, document, score) for query, of in found.items() for document, score in of.items())
        if isinstance(found, dict)
        else ((each.query_id, each.doc_id, each.score) for each in found)
    )
    scores: Scores = {}
    for query, document, score in lines:
        scores.setdefault(query, {})[document] = float(np.float32(score))
    return scores


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=3, help="of which the best counts")
    record.add_flags(parser, "runs")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
