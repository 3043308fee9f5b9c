"""A run next to the one that it should reproduce, and their baselines if there are any."""

import argparse
import json
import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from encore.storage.program import positive

from encore.config.datasets import parse_measure
from encore.data import qrels
from encore.data.judgments import Grades, is_entered
from encore.data.trec_runs import read_trec
from encore.errors import EncoreError
from encore.evaluation.reproducibility import DEPTH, PERSISTENCE, Closeness, closeness, order

MEASURES = ["RR@10", "nDCG@10", "R@1000"]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("run", type=Path, help="a TREC run, gzipped or not")
    parser.add_argument("reference", type=Path, help="the run that it should reproduce")
    parser.add_argument("qrels", type=Path, help="judgments in TREC's or BEIR's form")
    parser.add_argument("--baseline", nargs=2, type=Path, metavar=("RUN", "REFERENCE"), help="what both improve on")
    parser.add_argument("--measure", nargs="+", default=MEASURES, help="for example RR@10 (the default: %(default)s)")
    parser.add_argument("--depth", type=positive, default=DEPTH, help="ranks whose order is compared (%(default)s)")
    parser.add_argument("--json", action="store_true", help="as JSON")


def answer(arguments: argparse.Namespace) -> int:
    """Read all files and print how close the runs are: in order, and by each measure over the judged queries."""
    grades: Grades = {}
    for judgment in qrels.read_qrels(arguments.qrels, {}, Counter(), str(arguments.qrels)):
        is_entered(judgment, grades)
    measures = [parse_measure(expression) for expression in arguments.measure]
    ours, theirs = read_trec(arguments.run), read_trec(arguments.reference)
    if not any(query in grades for query in ours):
        raise EncoreError(f"{arguments.qrels} judges no query of {arguments.run}; name the judgments of its queries")
    bases = (read_trec(arguments.baseline[0]), read_trec(arguments.baseline[1])) if arguments.baseline else None
    ranked = order(ours, theirs, arguments.depth)
    found = closeness(ours, theirs, grades, measures, bases)
    if arguments.json:
        measured = [_finite(asdict(one)) for one in found]
        print(json.dumps(_finite(asdict(ranked)) | {"judged": len(grades), "measures": measured}))
        return 0
    print(f"order, of {ranked.queries:,} queries that both answer:")
    print(f"  Kendall's tau over unions  {ranked.tau:.4f}")
    print(f"  rank-biased overlap        {ranked.overlap:.4f}  (p = {PERSISTENCE:g})")
    print(f"effectiveness, of {len(grades):,} judged queries:")
    print("\n".join(f"  {_line(one)}" for one in found))
    return 0


def _finite(numbers: dict[str, Any]) -> dict[str, Any]:
    """The same with None for what is not a finite number, which JSON cannot write."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in numbers.items()
    }


def _line(one: Closeness) -> str:
    parts = [f"{one.measure:<10} {one.ours:.4f}, reference {one.theirs:.4f}"]
    parts.append(f"RMSE {one.error:.4f}, p {one.p:.3g}")
    if one.effect_ratio is not None and one.relative is not None:
        parts.append(f"effect ratio {one.effect_ratio:.3f}, difference of relative improvements {one.relative:+.4f}")
    return "; ".join(parts)
