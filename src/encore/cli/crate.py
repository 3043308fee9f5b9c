"""``encore crate``: what was made, with all that it was made from, as an RO-Crate."""

import argparse
from pathlib import Path

from encore.cli.plan import plan_of


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("folder", type=Path, help="a new folder; `encore audit FOLDER` verifies it")


def answer(arguments: argparse.Namespace) -> int:
    """The place of the crate, and how many files it has."""
    from encore.commands.crate import METADATA, write_crate

    title = plan_of(arguments).config.title
    files = write_crate(title, arguments.config, arguments.folder)
    print(f"{arguments.folder / METADATA} describes {files} files; verify them with `encore audit {arguments.folder}`")
    return 0
