"""Bring a source of texts and judgments into the common form of a collection."""

import argparse
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.datasets import kinds
from encore.errors import EncoreError
from encore.storage.manifest import record


@contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    """Of a collection that is refused nothing stays."""
    try:
        yield
    except EncoreError:
        shutil.rmtree(folder)
        raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--spec", type=spec_file, required=True, help="what the collection's fields resolve to: a JSON file"
    )
    parser.add_argument(
        "--source", type=Path, nargs="?", help="kinds read from your own files: the file, or the folder of files"
    )
    parser.add_argument(
        "--collection", type=artifact, nargs="?", help="kinds derived from another collection: that one"
    )
    parser.add_argument(
        "--fetched", type=artifact, nargs="?", help="kinds that ir_datasets downloads: what it downloaded"
    )
    parser.add_argument(
        "--sources", type=artifact, nargs="*", default=[], help="kinds read from entries of sources.yaml"
    )
    parser.add_argument("--parts", type=artifact, nargs="*", default=[], help="kinds joined from collections: those")
    parser.add_argument("--data-root", type=Path, help="kinds that ir_datasets downloads: where to")
    parser.add_argument("--output", type=artifact, required=True)
    parser.add_argument("--processes", type=int, default=1, help="kinds that several processes read: their number")
    arguments = parser.parse_args()

    spec = arguments.spec
    kind = spec.get("kind")
    made_of = (arguments.collection, arguments.fetched, *arguments.sources, *arguments.parts)
    inputs = [folder for folder in made_of if folder]
    with record(arguments.output, stage=f"collection.{kind}", spec=spec, inputs=inputs) as facts:
        with nothing_left(arguments.output):
            counts = kinds.build_collection(
                kind,
                spec,
                arguments.output,
                source=arguments.source,
                base=arguments.collection,
                data_root=arguments.data_root,
                sources={folder.name.rpartition("-")[0]: folder for folder in arguments.sources},
                parts=arguments.parts,
                processes=arguments.processes,
            )
        facts["results"] = counts
    for name, count in counts.items():
        print(f"{name}: {count}")


if __name__ == "__main__":
    run(main)
