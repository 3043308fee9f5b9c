"""``encore preflight``: its flags, and what a run needs."""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

from encore.storage.program import positive

from encore.cli.plan import plan_of
from encore.commands.preflight import finished, forecast_text
from encore.commands.preflight.forecast import forecast
from encore.commands.preflight.machine import MACHINES, find_machine
from encore.commands.preflight.rates import OWN, read_rates
from encore.commands.preflight.sizes import SIZES
from encore.products.claims.entries import CLAIMS


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore preflight``."""
    parser.add_argument(
        "targets",
        nargs="*",
        help="targets of Snakemake's, or tables and figures by name, declared or not; everything that the run declares "
        "without",
    )
    parser.add_argument("--machine", help="an entry of config/machines.yaml; the processor without")
    parser.add_argument("--gpus", type=positive, default=1, help="GPUs side by side, on a machine that has some")
    parser.add_argument(
        "--cores", type=positive, help="cores side by side; without, the machine's, as many for each GPU"
    )
    parser.add_argument("--rates", type=Path, help=f"a table of `encore calibrate`; without, {OWN}, if it is there")
    parser.add_argument(
        "--compare-finished", action="store_true", help="compare estimates with what finished jobs took"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def answer(arguments: argparse.Namespace) -> int:
    """Print the forecast; 1 when a limit is exceeded."""
    plan = plan_of(arguments)
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
        from encore.products.claims.seeds import seeds_text

        text += f"\n\n{seeds_text(plan)}"
    _say(content, text, arguments.json)
    return 1 if complaints else 0


def _say(content: Any, text: str, as_json: bool) -> None:
    print(json.dumps(content, indent=1) if as_json else text)
