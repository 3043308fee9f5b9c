"""``encore export``: runs as TREC's text, the bytes that runs over reported queries have next to their matrices."""

import argparse
import gzip
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from encore.errors import EncoreError


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a folder of results/runs/")
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="write FOLDER/<system>/<queries>/run.trec.gz for each"
    )


def answer(arguments: argparse.Namespace) -> int:
    """Write one run to standard output, not packed, or any number below a folder."""
    if arguments.output is None and len(arguments.runs) > 1:
        raise EncoreError(f"{len(arguments.runs)} runs cannot share standard output; name a folder with --output")
    for run in arguments.runs:
        if arguments.output is None:
            with TemporaryDirectory() as place:
                path = _written(run, Path(place))
                with gzip.open(path) as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
        else:
            print(_written(run, arguments.output / Path(*run.resolve().parts[-2:])))
    return 0


def _written(run: Path, folder: Path) -> Path:
    from encore.data.runs import RUN, TEXT, read_header, read_run
    from encore.data.trec_runs import write_trec
    from encore.storage import manifest

    manifest.verify(run, [RUN])
    folder.mkdir(parents=True, exist_ok=True)
    write_trec(folder / TEXT, read_run(run), read_header(run))
    return folder / TEXT
