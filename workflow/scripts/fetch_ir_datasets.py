"""Let ir_datasets download what a dataset needs, after its terms were shown, and count its queries and judgments."""

import argparse
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.datasets.download.ir_datasets import fetch
from encore.datasets.download.source import print_terms
from encore.products.catalogue import load_plan
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=spec_file, required=True, help="the ids that are read: a JSON file")
    parser.add_argument("--config", type=Path, required=True, help="the run, which knows the dataset's terms")
    parser.add_argument("--data-root", type=Path, required=True, help="where downloads are kept, or lie already")
    parser.add_argument("--output", type=artifact, required=True, help="results/ir_datasets/<dataset>-<digest>")
    arguments = parser.parse_args()

    name = arguments.output.name.rpartition("-")[0]
    fields = load_plan(arguments.config).resolve.own(name).fields
    print_terms(name, fields.licence, fields.terms)
    with record(arguments.output, stage="fetch_ir_datasets", spec=arguments.spec, inputs=[]) as facts:
        facts["results"] = fetch(arguments.spec["ids"], arguments.data_root, fields.terms)


if __name__ == "__main__":
    run(main)
