"""``encore preflight`` and ``encore calibrate``: their flags and what they print."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from encore.commands.preflight import calibration_report, forecast_text, machine
from encore.commands.preflight.forecast import Forecast, forecast
from encore.plan.plan import Plan

MACHINES = Path("config/machines.yaml")
SIZES = Path("config/sizes.yaml")


def add_preflight(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore preflight``."""
    parser.add_argument(
        "targets",
        nargs="*",
        help="targets of Snakemake's, or tables and figures by name, declared or not; everything that the run declares "
        "without",
    )
    parser.add_argument("--machine", help="an entry of config/machines.yaml, or a machine that was calibrated")
    parser.add_argument("--gpus", type=_positive, default=1, help="GPUs side by side, on a machine that has some")
    parser.add_argument(
        "--cores", type=_positive, help="cores side by side; without, the machine's, as many for each GPU"
    )
    parser.add_argument(
        "--compare-finished", action="store_true", help="compare estimates with what finished jobs took"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore calibrate``."""
    parser.add_argument("--name", help="what the machine is called; its host's name without")
    parser.add_argument("--seconds", type=_positive, default=60, help="about how long it may take")


def preflight(plan: Plan, arguments: argparse.Namespace) -> int:
    """Print the forecast; 1 when a limit is exceeded."""
    known = machine.find_machine(arguments.machine, MACHINES)
    cores = arguments.cores or known.cores * (arguments.gpus if known.gpus else 1)
    found = forecast(plan, arguments.targets, known, arguments.gpus, cores, SIZES)
    if arguments.compare_finished:
        rows = calibration_report.compare_with_finished(found)
        _say(
            calibration_report.calibration_json(rows),
            f"{forecast_text.about(known)}\n\n{calibration_report.calibration_text(rows)}",
            arguments.json,
        )
        return 0
    return _forecast(plan, found, arguments.json)


def _forecast(plan: Plan, found: Forecast, as_json: bool) -> int:
    complaints = found.complaints(plan.config.limits)
    beyond = "".join(f"\nbeyond: {complaint}" for complaint in complaints)
    _say(
        forecast_text.forecast_json(found, complaints),
        forecast_text.forecast_text(found) + (f"\n{beyond}" if beyond else ""),
        as_json,
    )
    return 1 if complaints else 0


def calibrate(plan: Plan, arguments: argparse.Namespace) -> int:
    """Measure this machine at the run's shapes, and keep its profile."""
    from encore.commands.preflight import measuring

    measured = measuring.measure(plan, arguments.name, arguments.seconds, MACHINES, SIZES)
    path = machine.write_machine(measured)
    print(measuring.machine_text(measured))
    print(f"kept as {path}; `encore preflight` takes it from now on")
    return 0


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
