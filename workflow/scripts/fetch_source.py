"""Fetch an entry of sources.yaml: show its terms, download into data_root, check digests, unpack."""

import argparse
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.datasets.download.source import fetch
from encore.errors import EncoreError
from encore.products.catalogue import load_plan
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=spec_file, required=True, help="what the entry resolves to: a JSON file")
    parser.add_argument("--config", type=Path, required=True, help="the run, which may have sources of its own")
    parser.add_argument("--data-root", type=Path, required=True, help="where downloads are kept, or lie already")
    parser.add_argument("--output", type=artifact, required=True, help="results/sources/<entry>-<digest>")
    arguments = parser.parse_args()

    name = arguments.output.name.rpartition("-")[0]
    source = load_plan(arguments.config).catalogue.sources.get(name)
    if source is None or source.identity() != arguments.spec["files"]:
        raise EncoreError(f"{name} of sources.yaml, or of the run, is not what was planned with; run snakemake again")
    with record(arguments.output, stage="fetch_source", spec=arguments.spec, inputs=[]) as facts:
        facts["results"] = {"files": fetch(name, source, arguments.data_root, arguments.output)}


if __name__ == "__main__":
    run(main)
