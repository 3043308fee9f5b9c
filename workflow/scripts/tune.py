"""Choose hyper-parameters on the validation role: build every trial of a grid, score it, record it.

Trials are ordinary targets, so a repeated command goes on where it stopped. Options for Snakemake come after `--`.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from encore.storage.program import run

from encore.commands.tuning import search
from encore.commands.tuning.grid import read_grid
from encore.errors import EncoreError
from encore.plan import tuning
from encore.products.catalogue import DEFAULT_RUN, load_plan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=DEFAULT_RUN, help="the run to choose for")
    parser.add_argument("--grid", type=Path, default=Path("config/tuning/default.yaml"), help="what to try")
    parser.add_argument("--output", type=Path, default=Path("config/tuning/trials.csv"), help="record of the trials")
    parser.add_argument("options", nargs="*", default=["--cores", "all"], help="for Snakemake (default: --cores all)")
    args = parser.parse_args()

    def build(configuration: Path, targets: Sequence[str]) -> None:
        command = [sys.executable, "-m", "snakemake", *targets, "--configfile", str(configuration), *args.options]
        if subprocess.run(command, check=False).returncode:
            raise EncoreError("Snakemake did not make every trial (see above); the same command continues from here")

    grid = read_grid(args.grid)
    done = search.tune(args.config, grid, build)
    tuning.write_trials(args.output, done)
    for trial in done:
        print(f"{trial.row:<12} {trial.score:.4f} {trial.lineage} {'<- chosen' if trial.chosen else ''}".rstrip())
    print(f"{len(done)} trials of {len({trial.row for trial in done})} rows: {args.output}")
    for row in (trial.row for trial in tuning.at_an_edge(done)):
        print(
            f"row {row!r} is still best at an edge; its table says so, and more `values` or a larger `most` would help"
        )
    for difference in tuning.differences(load_plan(args.config), done) if grid.table else ():
        print(f"{args.config}, {difference}")


if __name__ == "__main__":
    run(main)
