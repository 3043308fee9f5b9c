"""``encore claims``: what each claim of the papers says of their own numbers, and of what was run."""

import argparse
from pathlib import Path

from encore.commands.plan import plan_of
from encore.errors import EncoreError
from encore.products.catalogue import load_catalogue
from encore.storage import typed
from encore.storage.program_files import CATALOGUE


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("id", nargs="?", type=str.upper, help="one claim: what decides it, what of it is made: C48")
    parser.add_argument("--runs", action="store_true", help="of what was run instead: results/claims.md")


def answer(arguments: argparse.Namespace) -> int:
    """The page of the claims: made here from the printed numbers, or by the workflow from the runs; or one claim."""
    if arguments.id:
        from encore.products.claims import deciding

        print(deciding.claim_text(plan_of(arguments), arguments.id, typed.called(arguments.config)))
        return 0
    if not arguments.runs:
        from encore.products.claims import pages
        from encore.products.claims import printed_claims as claims

        lines = claims.judged_lines(CATALOGUE / "papers", load_catalogue())
        print(pages.of_printed(claims.COLUMNS, lines), end="")
        return 0
    page = Path("results/claims.md")
    if not page.is_file():
        make = typed.snakemake("results/claims.csv", run=typed.called(arguments.config))
        raise EncoreError(f"{page} is missing; make it with: {make}")
    print(page.read_text(encoding="utf-8"), end="")
    return 0
