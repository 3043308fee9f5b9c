"""``encore calibrate``: the rates of ``encore preflight``, fitted to finished jobs."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import yaml

from encore.cli.plan import plan_of
from encore.commands.preflight import finished
from encore.commands.preflight.forecast import Forecast, forecast
from encore.commands.preflight.machine import MACHINES, find_machine
from encore.commands.preflight.rates import OWN, SHIPPED, Rates, read_rates
from encore.commands.preflight.sizes import SIZES
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.storage import machine
from encore.storage.files import write_text

NANO = Path("config/nano.yaml")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command: of config/nano.yaml, jobs that are not finished are run first."""
    parser.set_defaults(config=NANO)
    parser.add_argument("--output", type=Path, default=OWN, help=f"the table that is written; {OWN} without")


def answer(arguments: argparse.Namespace) -> int:
    """Fit the rates to the finished jobs of a run, and keep them.

    Raises:
        EncoreError: too few jobs of the run are finished.
    """
    plan = plan_of(arguments)
    if arguments.config == NANO:
        _finish(plan)
    rates = read_rates(SHIPPED)
    found = _declared(plan, rates)
    fitted = finished.fitted(rates, finished.finished_jobs(found), str(arguments.config), _here())
    content = fitted.model_dump(exclude_defaults=True)
    write_text(arguments.output, yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120))
    print(f"{fitted.about}\nkept as {arguments.output}", end="")
    print("; `encore preflight` takes it from now on" if arguments.output == OWN else "; name it with --rates")
    return 0


def _finish(plan: Plan) -> None:
    """Run what is missing of the run's models and scores; its tables are left alone."""
    missing = [job.artifact.manifest for job in _declared(plan, read_rates(SHIPPED)).jobs if not job.finished]
    missing = [manifest for manifest in missing if manifest.startswith("results/scores/")]
    command = [sys.executable, "-m", "snakemake", *missing, "--profile", "local", "--configfile", str(NANO)]
    if missing and subprocess.run(command, check=False).returncode:
        raise EncoreError(f"the run that is measured failed; see above, then repeat: snakemake --configfile {NANO}")


def _declared(plan: Plan, rates: Rates) -> Forecast:
    return forecast(plan, (), find_machine(None, MACHINES), rates, 0, 1, SIZES)


def _here() -> str:
    """This machine's processor and cores."""
    return f"{machine.processor()}, {os.cpu_count()} cores"
