"""``encore clean``: remove from results what can be made again; says first what that is, and how much."""

import argparse
import shutil
from pathlib import Path

from encore.errors import EncoreError
from encore.storage.lock import owners
from encore.storage.root import RESULTS

PRODUCTS = frozenset({"tables", "figures", "report", "plan", "logs", "benchmarks"})
KEPT = {"tables": PRODUCTS, "models": PRODUCTS | {"models", "tokenizers", "teachers"}}
LOCKS = Path(".snakemake/locks")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument(
        "--keep", required=True, choices=KEPT, help="tables, figures, claims and the report alone, or models as well"
    )
    parser.add_argument("--yes", action="store_true", help="remove the rest; without it, only say what that is")


def answer(arguments: argparse.Namespace) -> int:
    """Print each folder that goes with its bytes, and remove them under ``--yes``."""
    if not RESULTS.is_dir():
        raise EncoreError("there is no results/ here; run encore from the root of the repository")
    if arguments.yes and any(LOCKS.glob("*.lock")):
        raise EncoreError("a run is at work here; wait for its end (after a crash: `snakemake --unlock`), then repeat")
    for makes in owners(RESULTS) if arguments.yes else ():
        raise EncoreError(f"{makes}, perhaps for a run of another clone; wait for its end, then repeat")
    folders = [each for each in sorted(RESULTS.iterdir()) if each.is_dir() and each.name not in KEPT[arguments.keep]]
    for linked in (each for each in folders if each.is_symlink()):
        print(f"{linked} is a link and stays, with what it leads to")
    folders = [each for each in folders if not each.is_symlink()]
    sizes = {folder: _bytes(folder) for folder in folders}
    for folder, size in sizes.items():
        print(f"{size / 1e6:12,.1f} MB  {folder}", flush=True)
        if arguments.yes:
            shutil.rmtree(folder)
    total, stay = sum(sizes.values()) / 1e6, _bytes(RESULTS) / 1e6
    if arguments.yes:
        print(f"{total:,.1f} MB are gone, and {stay:,.1f} MB stay; snakemake makes again what a target needs,")
        print("and until then `encore audit` finds that what the tables were made from is missing")
    else:
        print(f"{total:,.1f} MB would go, and {stay - total:,.1f} MB stay; nothing was removed without --yes")
    return 0


def _bytes(folder: Path) -> int:
    found = (path.lstat() for path in folder.rglob("*") if not path.is_dir())
    return sum({(each.st_dev, each.st_ino): each.st_size for each in found}.values())  # a file of two names once
