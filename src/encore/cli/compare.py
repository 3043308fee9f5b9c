"""``encore compare``: a run next to the one that it should reproduce, and their baselines if there are any."""

import argparse
import json
from pathlib import Path

from encore.storage.program import positive

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
    from encore.commands.compare import compare_runs

    runs = arguments.run, arguments.reference
    found = compare_runs(runs, arguments.qrels, arguments.baseline, arguments.measure, arguments.depth)
    print(json.dumps(found.data()) if arguments.json else found.text())
    return 0
