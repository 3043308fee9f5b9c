"""Evaluation of a run next to pytrec_eval, from text and from matrices, in turns in one process; see README.md."""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path

from encore.storage.program import run

import numpy as np
import pytrec_eval
from harness import timing

from encore.data.rankings import RunMatrices, rank
from encore.data.runs import TEXT, describe, read_run, write_run
from encore.data.trec_runs import read_trec
from encore.errors import EncoreError
from encore.evaluation import measures, reference_evaluator, ties
from encore.evaluation.hits import Grades, Hits

THEIRS = {"RR@10": "recip_rank", "R@100": "recall_100", "R@1000": "recall_1000", "nDCG@10": "ndcg_cut_10"}
Values = dict[str, dict[str, float]]  # measure -> query -> value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--judged", type=int, default=2, help="documents of each query that are relevant")
    parser.add_argument("--repetitions", type=int, default=5, help="turns, of which the best counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        grades = _made_up(folder, options)
        ways: dict[str, Callable[[], Values]] = {
            "pytrec_eval, plain text": lambda: _theirs(folder / "plain.txt", grades),
            "pytrec_eval, gzipped text": lambda: _theirs(folder / TEXT, grades),
            "Encore, plain text": lambda: _ours(read_trec(folder / "plain.txt"), grades),
            "Encore, gzipped text": lambda: _ours(read_trec(folder / TEXT), grades),
            "Encore, matrices": lambda: _ours(read_run(folder), grades),
        }
        seconds: dict[str, list[timing.Seconds]] = {name: [] for name in ways}
        values: dict[str, Values] = {}
        for _ in range(options.repetitions):
            for name, way in ways.items():
                before = timing.now()
                values[name] = way()
                seconds[name].append(timing.now() - before)
    first, *others = values.values()
    if any(other != first for other in others):
        raise EncoreError("the evaluators disagree; report it as a bug")
    best = {name: timing.best(readings, "cpu") for name, readings in seconds.items()}
    print(f"{options.queries} queries x {options.depth}, values equal; CPU seconds, and how many times as fast")
    for name, its in best.items():
        print(f"{name:<27} {its:7.4f}  {best['pytrec_eval, plain text'] / its:6.2f}")


def _theirs(path: Path, grades: Grades) -> Values:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        found = pytrec_eval.parse_run(file)
    judged = {query: dict(of) for query, of in grades.items()}
    scored = pytrec_eval.RelevanceEvaluator(judged, set(THEIRS.values())).evaluate(found)
    values = {name: {query: scored[query][theirs] for query in grades} for name, theirs in THEIRS.items()}
    return values | {"RR@10": {query: value if value >= 1 / 10 else 0.0 for query, value in values["RR@10"].items()}}


def _ours(found: RunMatrices, grades: Grades) -> Values:
    """All that ``evaluate`` computes: both evaluators and the interval over ties."""
    wanted = {name: measures.parse_measure(name) for name in THEIRS}
    hits = Hits.of(found, grades)
    values, counts = measures.values_of(wanted.values(), hits), reference_evaluator.count(hits)
    places = (reference_evaluator.judged_ranks(hits, counts), *ties.extremes(hits, counts))
    for measure in wanted.values():
        again, *_ = (reference_evaluator.measure_values(measure, place) for place in places)
        if not np.allclose(again, [values[measure][query] for query in grades], rtol=0, atol=1e-9):
            raise EncoreError(f"the second evaluator disagrees on {measure}; report it as a bug")
    return {name: values[measure] for name, measure in wanted.items()}


def _made_up(folder: Path, options: argparse.Namespace) -> Grades:
    """Write a run as matrices and both kinds of text; half of what is relevant is among the results."""
    generator = np.random.default_rng(0)
    names = [f"passage-{number}" for number in generator.permutation(options.documents)]
    found, grades = {}, {}
    for query in map(str, range(options.queries)):
        chosen = generator.permutation(options.documents)
        documents = [names[number] for number in chosen[: options.depth]]
        found[query] = rank(documents, np.round(generator.normal(20, 4, len(documents)), 4))
        half = [*chosen[: options.judged // 2], *chosen[options.depth :][: options.judged - options.judged // 2]]
        grades[query] = {names[number]: int(generator.integers(1, 4)) for number in half}
    write_run(folder, found, describe("made-up", collection="made-up", split="test", retrieval=[]))
    (folder / "plain.txt").write_bytes(gzip.decompress((folder / TEXT).read_bytes()))
    return grades


if __name__ == "__main__":
    run(main)
