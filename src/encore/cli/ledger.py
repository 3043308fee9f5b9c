"""``encore ledger``: where the values of steps and objectives come from."""

import argparse

from encore.cli.plan import plan_of
from encore.commands import ledger
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.products.catalogue import CATALOGUE


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("--paper", help="one paper's ledger: a folder of config/papers")


def answer(arguments: argparse.Namespace) -> int:
    """A line for each value with its source and the reason; checked first."""
    catalogue = plan_of(arguments).catalogue
    ledger.check(catalogue, CATALOGUE)
    entries = ledger.read(CATALOGUE)
    papers = {entry.paper for entry in entries}
    if arguments.paper is not None and arguments.paper not in papers:
        raise EncoreError(f"there is no ledger of {arguments.paper!r}{nearest(arguments.paper, papers)}")
    shown = [entry for entry in entries if arguments.paper in (None, entry.paper)]
    print(ledger.table(shown, catalogue, CATALOGUE))
    return 0
