"""Every comparison with a named peer on the processor, each in a process of its own; see README.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from encore.storage.program import run

from harness import machine, record
from harness.parts import DONE, run_part

from encore.plan.project import DEFAULT_RUN, load_plan

HERE = Path(__file__).parent
LOGS = Path("results/logs/benchmarks")
DATA_FOR, LINEAGE = "finetuning", "bert-base+marco-bm25"  # whose files Snakemake makes first
# Of each part the seconds that it may take, and what makes it short, or so small that it only shows that all runs.
PARTS: dict[str, tuple[int, list[str], list[str]]] = {
    "evaluation": (120, [], ["--queries", "30", "--depth", "200", "--documents", "500", "--turns", "1"]),
    "runs": (120, [], ["--queries", "30", "--depth", "200", "--documents", "500", "--turns", "1"]),
    "search": (
        120,
        [],
        ["--passages", "3000", "--dimension", "32", "--queries", "50", "--depth", "20", "--turns", "1"],
    ),
    "examples": (120, [], ["--batch", "16", "--lengths", "48", "--turns", "1"]),
    "planning": (240, [], ["--run", "config/nano.yaml", "--turns", "1"]),
    "encoding": (300, [], ["--model", "nano", "--passages", "64", "--turns", "1"]),
    "pretraining": (900, ["--clock", "cpu", "--threads", "1", "--repetitions", "3"], ["--quick", "--only", "bow"]),
    "finetuning": (1500, [], ["--seeds", "0", "1"]),
}


def main() -> int:
    options = _options()
    LOGS.mkdir(parents=True, exist_ok=True)
    found, goals = [], []
    for name, (command, most) in commands(options.only or list(PARTS), options.output, options.quick).items():
        part = run_part(name, command, most, LOGS / f"{name}.log")
        found.append(part)
        if part["ended"] == DONE and name in PARTS:
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


def commands(names: Sequence[str], output: Path, quick: bool) -> dict[str, tuple[list[str], int]]:
    """Each part's command and the seconds that it may take; before fine-tuning what makes its data."""
    python, found = sys.executable, {}
    if DATA_FOR in names:
        model = load_plan(DEFAULT_RUN).resolve.lineage(LINEAGE)
        target = load_plan(DEFAULT_RUN).model(model, 0).manifest
        found["data"] = ([python, "-m", "snakemake", "--profile", "local", target], 300)
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
