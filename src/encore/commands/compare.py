"""A run next to the one that it should reproduce, and their baselines if there are any."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from encore.storage.program import positive

from encore.data import qrels
from encore.data.trec_runs import read_trec
from encore.evaluation.measures import parse_measure
from encore.evaluation.reproducibility import DEPTH, PERSISTENCE, Closeness, RankAgreement, closeness, order

MEASURES = ["RR@10", "nDCG@10", "R@1000"]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("run", type=Path, help="a TREC run, gzipped or not")
    parser.add_argument("reference", type=Path, help="the run that it should reproduce")
    parser.add_argument("qrels", type=Path, help="judgments in TREC's or BEIR's form")
    parser.add_argument("--baseline", nargs=2, type=Path, metavar=("RUN", "REFERENCE"), help="what both improve on")
    parser.add_argument("--measure", nargs="+", default=MEASURES, help="for example RR@10 (the default: %(default)s)")
    parser.add_argument("--depth", type=positive, help="ranks whose order is compared (100 without)")
    parser.add_argument("--json", action="store_true", help="as JSON")


def answer(arguments: argparse.Namespace) -> int:
    """Read all files and print how close the runs are."""
    runs = arguments.run, arguments.reference
    found = compare_runs(runs, arguments.qrels, arguments.baseline, arguments.measure, arguments.depth)
    print(json.dumps(found.data()) if arguments.json else found.text())
    return 0


@dataclass(frozen=True)
class Comparison:
    """How close a run is to its reference: in order, and by each measure over the judged queries."""

    ranked: RankAgreement
    measures: list[Closeness]
    judged: int

    def data(self) -> dict[str, Any]:
        """The comparison for a program."""
        return asdict(self.ranked) | {"judged": self.judged, "measures": [asdict(one) for one in self.measures]}

    def text(self) -> str:
        """The comparison for people."""
        sentences = [
            f"order, of {self.ranked.queries:,} queries that both answer:",
            f"  Kendall's tau over unions  {self.ranked.tau:.4f}",
            f"  rank-biased overlap        {self.ranked.overlap:.4f}  (p = {PERSISTENCE:g})",
            f"effectiveness, of {self.judged:,} judged queries:",
        ]
        return "\n".join([*sentences, *(f"  {_line(one)}" for one in self.measures)])


def compare_runs(
    runs: tuple[Path, Path],
    judged: Path,
    baselines: Sequence[Path] | None,
    expressions: Sequence[str],
    depth: int | None,
) -> Comparison:
    """Compare a run with the one that it should reproduce.

    Args:
        runs: the run and its reference.
        judged: judgments in TREC's or BEIR's form.
        baselines: of the run and of its reference, which both improve on.
        expressions: measures, such as RR@10.
        depth: ranks whose order is compared; 100 without.

    Raises:
        EncoreError: a file is damaged, a measure is unknown, or the runs have nothing in common.
    """
    grades: dict[str, dict[str, int]] = {}
    for judgment in qrels.read_qrels(judged, {}, Counter(), str(judged)):
        grades.setdefault(judgment.query, {})[judgment.document] = judgment.grade
    measures = [parse_measure(expression) for expression in expressions]
    ours, theirs = map(read_trec, runs)
    bases = (read_trec(baselines[0]), read_trec(baselines[1])) if baselines else None
    ranked = order(ours, theirs, depth or DEPTH)
    return Comparison(ranked, closeness(ours, theirs, grades, measures, bases), len(grades))


def _line(one: Closeness) -> str:
    parts = [f"{one.measure:<10} {one.ours:.4f}, reference {one.theirs:.4f}"]
    parts.append(f"RMSE {one.error:.4f}, p {one.p:.3g}")
    if one.effect_ratio is not None and one.relative is not None:
        parts.append(f"effect ratio {one.effect_ratio:.3f}, difference of relative improvements {one.relative:+.4f}")
    return "; ".join(parts)
