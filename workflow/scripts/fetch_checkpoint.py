"""Fetch a checkpoint of Hugging Face's hub: show its terms, download into data_root, check digests."""

import argparse
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.datasets.download.checkpoint import fetch
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=spec_file, required=True, help="id and revision: a JSON file")
    parser.add_argument("--data-root", type=Path, required=True, help="where downloads are kept, or lie already")
    parser.add_argument("--output", type=artifact, required=True, help="results/checkpoints/<checkpoint>-<digest>")
    arguments = parser.parse_args()

    spec = arguments.spec
    with record(arguments.output, stage="fetch_checkpoint", spec=spec, inputs=[]) as facts:
        facts["results"] = fetch(spec["id"], spec["revision"], arguments.data_root, arguments.output)


if __name__ == "__main__":
    run(main)
