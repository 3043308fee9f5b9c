"""``encore convert``: files in any known form become a folder in BEIR's layout, which ``encore new --beir`` takes."""

import argparse
from pathlib import Path

from encore.datasets.foreign.conversion import convert
from encore.storage.typed import encore


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore convert``."""
    parser.add_argument("source", type=Path, help="a file, or a folder of files, in any form that is known")
    parser.add_argument("folder", type=Path, help="what is written; there must be none yet")
    parser.add_argument(
        "--drop",
        action="store_true",
        help="leave out empty texts, duplicate rows, and judgments of queries or passages that do not exist",
    )


def answer(arguments: argparse.Namespace) -> int:
    """Convert, and say what was taken for what."""
    said = convert(arguments.source, arguments.folder, drop=arguments.drop)
    print("\n".join([f"{arguments.folder} is written.", *said, "Now:"]))
    print(f"  {encore('new', 'NAME', '--beir', str(arguments.folder), run='')}")
    return 0
