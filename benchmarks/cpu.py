"""Every comparison with a named peer on the processor, each in a process of its own; see README.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from encore.storage.program import run

from harness import machine, record
from harness.parts import DONE, run_part

from encore.products.catalogue import DEFAULT_RUN, load_plan

HERE = Path(__file__).parent
LOGS = Path("results/logs/benchmarks")
ONE_THREAD = ["--clock", "cpu", "--threads", "1"]
DATA_FOR, LINEAGE = "finetuning", "bert-base+marco-bm25"  # whose files Snakemake makes first
TOTAL = 1800  # seconds of all parts together
FEW = ["--queries", "30", "--depth", "200", "--documents", "500", "--turns", "1"]
# Of each part the seconds that are its own, and what makes it short, or so small that it only shows that all runs.
PARTS: dict[str, tuple[int, list[str], list[str]]] = {
    "evaluation": (60, [], FEW),
    "runs": (60, [], FEW),
    "search": (
        60,
        [],
        ["--passages", "3000", "--dimension", "32", "--queries", "50", "--depth", "20", "--turns", "1"],
    ),
    "tokens": (60, [], ["--passages", "100", "--turns", "1"]),
    "randomisation": (60, [], ["--queries", "50", "--samples", "500", "--turns", "1"]),
    "examples": (60, [], ["--batch", "16", "--lengths", "48", "--turns", "1"]),
    "planning": (150, [], ["--run", "config/nano.yaml", "--turns", "1"]),
    "encoding": (240, [], ["--model", "nano", "--count", "64", "--turns", "1"]),
    "distillation": (150, ["--model", "mini", *ONE_THREAD, "--repetitions", "2"], ["--quick"]),
    "pretraining": (420, [*ONE_THREAD, "--repetitions", "3"], ["--quick", "--only", "bow"]),
    "finetuning": (360, [], ["--seeds", "0", "1", "--model", "nano"]),
}
OF_DATA = 120  # seconds, before fine-tuning


def main() -> int:
    options = _options()
    LOGS.mkdir(parents=True, exist_ok=True)
    found = run_all(commands(options.only or list(PARTS), options.output, options.quick))
    goals = []
    for name in (part["part"] for part in found if part["ended"] == DONE):
        if name in PARTS:
            goals += json.loads((options.output / f"{name}-{machine.name()}.json").read_text())["goals"]
    failed = [part for part in found if part["ended"] != DONE]
    print("\n".join(["", *record.table(found), "", *(record.table(goals) if goals else [])]))
    for part in failed:
        log = LOGS / f"{part['part']}.log"
        print(
            f"\n{part['part']} failed ({part['ended']}); the end of {log}:",
            *log.read_text().splitlines()[-3:],
            sep="\n",
        )
    return 1 if failed else 0


def run_all(parts: Mapping[str, tuple[list[str], int]]) -> list[dict[str, Any]]:
    """How each part ended, all within ``TOTAL`` seconds: one may take its own, and what is not another's.

    Args:
        parts: the command of each and its seconds.
    """
    found, spare = [], float(TOTAL - sum(own for _, own in parts.values()))
    for name, (command, own) in parts.items():
        found.append(run_part(name, command, own + spare, LOGS / f"{name}.log"))
        spare += own - found[-1]["seconds"]
    return found


def commands(names: Sequence[str], output: Path, quick: bool) -> dict[str, tuple[list[str], int]]:
    """Each part's command and its seconds; before fine-tuning what makes its data."""
    python, found = sys.executable, {}
    if DATA_FOR in names:
        model = load_plan(DEFAULT_RUN).resolve.lineage(LINEAGE)
        target = load_plan(DEFAULT_RUN).model(model, 0).manifest
        found["data"] = ([python, "-m", "snakemake", "--profile", "local", target], OF_DATA)
    for name in names:
        most, usual, small = PARTS[name]
        program = [python, str(HERE / f"{name}.py"), "--output", str(output)]
        found[name] = ([*program, *(small if quick else usual)], most)
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--only", nargs="*", choices=[*PARTS], help="these parts; without: all")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="of the records")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
