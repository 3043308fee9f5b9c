"""``encore preflight`` and ``encore calibrate``: their flags and what they print."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import yaml

from encore.claims.slice import CLAIMS
from encore.commands.preflight import finished, forecast_text
from encore.commands.preflight.forecast import Forecast, forecast
from encore.commands.preflight.machine import find_machine
from encore.commands.preflight.rates import OWN, SHIPPED, Rates, read_rates
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.storage.files import write_text

MACHINES = Path("config/machines.yaml")
SIZES = Path("config/sizes.yaml")
NANO = Path("config/nano.yaml")


def add_preflight(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore preflight``."""
    parser.add_argument(
        "targets",
        nargs="*",
        help="targets of Snakemake's, or tables and figures by name, declared or not; everything that the run declares "
        "without",
    )
    parser.add_argument("--machine", help="an entry of config/machines.yaml; the processor without")
    parser.add_argument("--gpus", type=_positive, default=1, help="GPUs side by side, on a machine that has some")
    parser.add_argument(
        "--cores", type=_positive, help="cores side by side; without, the machine's, as many for each GPU"
    )
    parser.add_argument("--rates", type=Path, help=f"a table of `encore calibrate`; without, {OWN}, if it is there")
    parser.add_argument(
        "--compare-finished", action="store_true", help="compare estimates with what finished jobs took"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore calibrate``: of config/nano.yaml, jobs that are not finished are run first."""
    parser.set_defaults(config=NANO)
    parser.add_argument("--output", type=Path, default=OWN, help=f"the table that is written; {OWN} without")


def preflight(plan: Plan, arguments: argparse.Namespace) -> int:
    """Print the forecast; 1 when a limit is exceeded."""
    known, rates = find_machine(arguments.machine, MACHINES), read_rates(arguments.rates)
    cores = arguments.cores or known.cores * (arguments.gpus if known.peak else 1)
    found = forecast(plan, arguments.targets, known, rates, arguments.gpus, cores, SIZES)
    if arguments.compare_finished:
        rows = finished.compare_with_finished(found)
        about = textwrap.fill(f"rates: {rates.about}", forecast_text.WIDTH)
        _say(rows, f"{about}\n\n{finished.comparison_text(rows)}", arguments.json)
        return 0
    complaints = found.complaints(plan.config.limits)
    content, text = forecast_text.forecast_json(found, complaints), forecast_text.forecast_text(found, complaints)
    if not arguments.json and {CLAIMS, f"results/{CLAIMS}.csv"} & set(arguments.targets):
        from encore.claims.seeds import seeds_text

        text += f"\n\n{seeds_text(plan)}"
    _say(content, text, arguments.json)
    return 1 if complaints else 0


def calibrate(plan: Plan, arguments: argparse.Namespace) -> int:
    """Fit the rates to the finished jobs of a run, and keep them.

    Raises:
        EncoreError: too few jobs of the run are finished.
    """
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
    path = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*:\s*(.+)", path.read_text()) if path.is_file() else []
    return f"{names[0].strip() if names else platform.machine()}, {os.cpu_count()} cores"


def _say(content: Any, text: str, as_json: bool) -> None:
    print(json.dumps(content, indent=1) if as_json else text)


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return value
