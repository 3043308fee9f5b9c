"""``encore claims``: what each claim of the papers comes to on what was run."""

import argparse
from pathlib import Path

from encore.commands.plan import plan_of
from encore.errors import EncoreError
from encore.storage import typed


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("id", nargs="?", type=str.upper, help="one claim: what decides it, what of it is made: C48")


def answer(arguments: argparse.Namespace) -> int:
    """The page of the claims, which the workflow makes from the runs; or one claim."""
    if arguments.id:
        from encore.products.claims import deciding

        print(deciding.claim_text(plan_of(arguments), arguments.id, typed.called(arguments.config)))
        return 0
    page = Path("results/claims.md")
    if not page.is_file():
        make = typed.snakemake("results/claims.csv", run=typed.called(arguments.config))
        raise EncoreError(f"{page} is missing; make it with: {make}")
    print(page.read_text(encoding="utf-8"), end="")
    return 0
