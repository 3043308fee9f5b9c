"""Evaluation of a run next to pytrec_eval, from text and from matrices, in turns in one process; see README.md."""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore.storage.program import run

import ir_measures
import numpy as np
import pytrec_eval
from harness import comparison, figures, machine, record
from harness.runs import PLAIN, made_up_run

from encore.config.datasets import parse_measure
from encore.data.rankings import RunMatrices
from encore.data.runs import TEXT, read_run
from encore.data.trec_runs import read_trec
from encore.errors import EncoreError
from encore.evaluation import EvaluationProtocol, measures
from encore.evaluation.check_from_files import check_scores
from encore.evaluation.ranks import Grades, Hits
from encore.evaluation.scores import Scored
from encore.storage.files import write_text

THEIRS = {"RR@10": "recip_rank", "R@100": "recall_100", "R@1000": "recall_1000", "nDCG@10": "ndcg_cut_10"}
ALONE, SPLIT = "Encore, matrices, without the check", "test"
Values = dict[str, dict[str, float]]  # measure -> query -> value


def main() -> None:
    options = _options()
    before = machine.load()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        grades = made_up_run(folder, options.queries, options.depth, options.documents, options.judged)
        ways: dict[str, Callable[[], Values]] = {
            "pytrec_eval, plain text": lambda: _theirs(folder / PLAIN, grades),
            "pytrec_eval, gzipped text": lambda: _theirs(folder / TEXT, grades),
            "ir_measures, plain text": lambda: _ir_measures(folder / PLAIN, grades),
            "Encore, plain text": lambda: _ours(read_trec(folder / PLAIN), grades, folder),
            "Encore, gzipped text": lambda: _ours(read_trec(folder / TEXT), grades, folder),
            "Encore, matrices": lambda: _ours(read_run(folder), grades, folder),
            ALONE: lambda: _ours(read_run(folder), grades),
        }
        _write_judgments(folder, grades)
        values, seconds = comparison.in_turns(ways, options.turns)
    first, *others = values.values()
    if any(other != first for other in others):
        raise EncoreError("the evaluators disagree; report it as a bug")
    base = "pytrec_eval, plain text"
    rows = comparison.rows(seconds, options.queries, "queries", base)
    check = seconds["Encore, matrices"] - seconds[ALONE]
    contents: dict[str, Any] = {
        "setting": {name: getattr(options, name) for name in ("queries", "depth", "documents", "judged", "turns")},
        "agreement": "values of all ways are equal to the last bit",
        "rows": rows,
        "check": {"queries": options.queries, "cpu_seconds": figures.rounded(check)},
        "goals": [
            figures.goal(f"evaluation from {what}, speed relative to pytrec_eval", seconds[base] / seconds[way], aim)
            for what, way, aim in (
                ("text, the check included", "Encore, plain text", 0.8),
                ("matrices, the check included", "Encore, matrices", 1),
                ("matrices, without the check", ALONE, 20),
            )
        ],
    }
    record.write(options.output, options.name, contents, before, ("pytrec-eval-terrier", "ir-measures"))
    print("\n".join([*record.table(rows), contents["agreement"]]))


def _theirs(path: Path, grades: Grades) -> Values:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        found = pytrec_eval.parse_run(file)
    judged = {query: dict(of) for query, of in grades.items()}
    scored = pytrec_eval.RelevanceEvaluator(judged, set(THEIRS.values())).evaluate(found)
    values = {name: {query: scored[query][theirs] for query in grades} for name, theirs in THEIRS.items()}
    return values | {"RR@10": {query: value if value >= 1 / 10 else 0.0 for query, value in values["RR@10"].items()}}


def _ir_measures(path: Path, grades: Grades) -> Values:
    qrels = [ir_measures.Qrel(query, document, grade) for query, of in grades.items() for document, grade in of.items()]
    values: Values = {name: {} for name in THEIRS}
    wanted = list(map(ir_measures.parse_measure, THEIRS))
    for each in ir_measures.iter_calc(wanted, qrels, ir_measures.read_trec_run(str(path))):
        values[str(each.measure)][each.query_id] = each.value
    return {name: {query: of[query] for query in grades} for name, of in values.items()}


def _write_judgments(folder: Path, grades: Grades) -> None:
    """The files that the check reads besides the run: judgments, and the manifest of the run."""
    lines = [f"{query}\t{document}\t{grade}\n" for query, of in grades.items() for document, grade in of.items()]
    write_text(folder / f"qrels/{SPLIT}.tsv", "".join(["query-id\tcorpus-id\tscore\n", *lines]))
    write_text(folder / "manifest.json", "{}")


def _ours(found: RunMatrices, grades: Grades, folder: Path | None = None) -> Values:
    """All that ``evaluate`` computes: values and their interval over ties; with a folder, the check from files."""
    hits, queries, scored = Hits.of(found, grades), list(grades), {}
    usual, (worst, best), nothing = hits.usual(), hits.extremes(), np.zeros(len(grades), np.int8)
    for name in THEIRS:
        values, low, high = (measures.values(parse_measure(name), ranks) for ranks in (usual, worst, best))
        scored[SPLIT, name] = Scored(queries, queries, values, low, high, hits.places >= 0, nothing)
    if folder is not None:
        check_scores(folder, folder, EvaluationProtocol(splits={SPLIT: {name: name for name in THEIRS}}), scored)
    return {name: dict(zip(queries, each.values.tolist(), strict=True)) for (_, name), each in scored.items()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--judged", type=int, default=2, help="documents of each query that are relevant")
    parser.add_argument("--turns", type=int, default=5, help="of which the best counts")
    record.add_flags(parser, "evaluation")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
