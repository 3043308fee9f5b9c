"""What `make demo` takes of the processor, and how much of it is the programs' own work; see README.md."""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encore.storage.program import run

from harness import figures, machine, record

from encore.errors import EncoreError
from encore.storage.manifest import read_run

ROOT = Path(__file__).parents[1]
LINKED = ("workflow", "config", "profiles", "local", "src", "benchmarks", "envs")
TARGETS = ("results/tables/table1.csv", "results/figures/table1.png")
AROUND = "Snakemake, starts of jobs, table and figure"
MINUTES, SHARE = 4.5, 0.2  # goals: of the processor in all, and of that what is no job's own work
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: what a child leaves running becomes ours, and its seconds are counted


def main() -> None:
    options = _options()
    before = machine.load()
    with tempfile.TemporaryDirectory() as place:
        for name in LINKED:
            (Path(place) / name).symlink_to(ROOT / name)
        total = cpu_seconds([*options.targets, "--profile", "local", "--configfile", options.run], Path(place))
        rows = by_program(list((Path(place) / "results").rglob("run.json")), total)
    own = sum(row["own_work"] for row in rows)
    contents: dict[str, Any] = {
        "setting": {"run": options.run, "targets": " ".join(options.targets)},
        "rows": rows,
        "goals": [
            figures.goal("demo, minutes of the processor", total / 60, MINUTES, most=True),
            figures.goal("demo, share that is no job's own work", 1 - own / total, SHARE, most=True),
        ],
    }
    record.write(options.output, options.name, contents, before, ("snakemake", "pyserini"))
    print("\n".join([*record.table(rows), *record.table(contents["goals"])]))


def cpu_seconds(words: Sequence[str], folder: Path) -> float:
    """The processor's seconds of Snakemake in a folder where nothing is made, with all that it starts.

    Raises:
        EncoreError: it fails.
    """
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = subprocess.run([sys.executable, "-m", "snakemake", *words], cwd=folder, check=False).returncode
    if code:
        raise EncoreError(f"Snakemake ended with {code}; see its messages above")
    wait_for_all()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def wait_for_all() -> None:
    """Wait until no process is left that one of ours has started."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def by_program(runs: Sequence[Path], total: float) -> list[dict[str, Any]]:
    """Jobs, seconds of the processor, and those of their own work, by program; last what no job took.

    Args:
        runs: what was noted of each job (``run.json``).
        total: the seconds of all.
    """
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for path in runs:
        noted = read_run(path.parent)
        found[noted["stage"].partition(".")[0]].append((noted["cpu_seconds"], noted["own_cpu_seconds"]))
    rows: list[dict[str, Any]] = [
        {
            "program": name,
            "jobs": len(jobs),
            "cpu_seconds": sum(cpu for cpu, _ in jobs),
            "own_work": sum(own for _, own in jobs),
        }
        for name, jobs in found.items()
    ]
    rows.sort(key=lambda row: -row["cpu_seconds"])
    around = total - sum(row["cpu_seconds"] for row in rows)
    rows.append({"program": AROUND, "jobs": 0, "cpu_seconds": around, "own_work": 0.0})
    return [row | {name: figures.rounded(row[name]) for name in ("cpu_seconds", "own_work")} for row in rows]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", default="config/config.yaml", help="a run's configuration")
    parser.add_argument("--targets", nargs="+", default=TARGETS, help="of Snakemake")
    record.add_flags(parser, "demo")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
