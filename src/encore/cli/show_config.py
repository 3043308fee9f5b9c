"""``encore show-config``: each value of a lineage, and where it comes from."""

import argparse

from encore.cli.plan import plan_of
from encore.commands.show_config import config_text
from encore.products.catalogue import CATALOGUE


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument(
        "lineage", help="for example bert-base+costa~temperature=0.05+marco-bm25, with or without @hnsw"
    )


def answer(arguments: argparse.Namespace) -> int:
    """The resolved backbone, steps and index."""
    print(config_text(plan_of(arguments), arguments.lineage, CATALOGUE))
    return 0
