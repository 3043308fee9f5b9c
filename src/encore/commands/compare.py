"""``encore compare``: runs of anybody next to a baseline, as ``encore.compare`` gives them in Python."""

import argparse
from pathlib import Path

from encore.errors import EncoreError

MEASURES = ["RR@10", "nDCG@10", "R@1000"]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("qrels", help="judgments in TREC's or BEIR's form, or a collection's folder")
    parser.add_argument("runs", nargs="+", metavar="run", help="TREC runs, gzipped or not; the first is the baseline")
    parser.add_argument("--measure", nargs="+", default=MEASURES, help="for example RR@10 (the default: %(default)s)")
    parser.add_argument("--split", default="test", help="of a collection (%(default)s)")
    parser.add_argument("--json", action="store_true", help="as JSON")


def answer(arguments: argparse.Namespace) -> int:
    """Read all files and print a line for each measure and run."""
    from encore.products.data_frames import compare

    runs = {_called(path, arguments.runs): path for path in arguments.runs}
    if len(runs) < len(arguments.runs):
        raise EncoreError("a run is named twice; name each once")
    found = compare(runs, arguments.qrels, arguments.measure, split=arguments.split)
    as_json = {"orient": "records", "indent": 1, "double_precision": 15}
    print(found.to_json(**as_json) if arguments.json else found.round(4).to_string(index=False))
    return 0


def _called(path: str, paths: list[str]) -> str:
    """A run's name: its file's, or its path where two files have one name."""
    names = [Path(each).name for each in paths]
    return Path(path).name if names.count(Path(path).name) == 1 else path
