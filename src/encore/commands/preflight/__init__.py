"""``encore preflight``: its flags, and what a run needs."""

import argparse
import json

from encore.storage.program import positive


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore preflight``."""
    parser.add_argument(
        "targets",
        nargs="*",
        help="targets of Snakemake's, or tables and figures by name, declared or not; everything that the run declares "
        "without",
    )
    parser.add_argument("--machine", help="an entry of config/machines.yaml, for GPU-hours; the processor without")
    parser.add_argument(
        "--gpus", type=positive, default=1, help="models at work at once: their vectors and checkpoints need disk"
    )
    parser.add_argument(
        "--fetch-check", action="store_true", help="ask each address of what is fetched for its headers"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def answer(arguments: argparse.Namespace) -> int:
    """Print the forecast; 1 if a limit is exceeded. With ``--fetch-check`` the addresses; 1 if a file has none."""
    from encore.commands.plan import plan_of
    from encore.commands.preflight.forecast import forecast
    from encore.commands.preflight.forecast_text import forecast_json, forecast_text
    from encore.commands.preflight.machines import find_machine

    plan = plan_of(arguments)
    if arguments.fetch_check:
        from encore.commands.preflight.fetch_check import check_json, check_text, fetch_check, without

        answers = fetch_check(plan, arguments.targets)
        print(json.dumps(check_json(answers), indent=1) if arguments.json else check_text(answers))
        return 1 if without(answers) else 0
    found = forecast(plan, arguments.targets, find_machine(arguments.machine), arguments.gpus)
    complaints = found.complaints(plan.config.limits)
    if arguments.json:
        print(json.dumps(forecast_json(found, complaints), indent=1))
        return 1 if complaints else 0
    print(forecast_text(found, complaints))
    return 1 if complaints else 0
