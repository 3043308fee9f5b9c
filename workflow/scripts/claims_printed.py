"""Judge every claim by the papers' own printed numbers: one line a claim, without any run."""

import argparse
from pathlib import Path

from encore.cli_support import run

from encore.claims import ledger
from encore.project import CATALOGUE, load_catalogue


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, help="digest of claims, tables and printed numbers")
    parser.add_argument("--output", required=True, type=Path, help="folder of its files")
    arguments = parser.parse_args()
    verdicts = ledger.make_printed(arguments.output, CATALOGUE / "papers", load_catalogue().tables, arguments.spec)
    print(", ".join(f"{verdict}: {count}" for verdict, count in verdicts.items()))


if __name__ == "__main__":
    run(main)
