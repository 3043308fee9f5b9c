"""Choose the weight of the sparse scores in a fusion, on queries that no table reports."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.data.collection import Collection, topics
from encore.data.runs import read_run
from encore.evaluation import fusion_weights, measures
from encore.storage.manifest import record

SPEC = "weights, measure, tuned_on, splits, queries and sample: a JSON file"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help=SPEC)
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--train", type=artifact, nargs="*", default=[], help="sparse and dense run over train")
    parser.add_argument("--held-out", type=artifact, nargs="*", default=[], help="the same over held-out queries")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    spec, collection = args.spec, Collection(args.collection)
    given = {"train": args.train, "held-out": args.held_out}
    inputs = [args.collection, *args.train, *args.held_out]
    with record(args.output, stage="tune_fusion", spec=spec, inputs=inputs) as facts:
        measure, tried = measures.parse_measure(spec["measure"]), {}
        for name, split in spec["splits"].items():
            judged = collection.qrels(split)
            grades = {query: judged[query] for query in topics(collection, split, spec["queries"], spec["sample"])}
            sparse, dense = (read_run(folder) for folder in given[name])
            tried[name] = fusion_weights.attempt(sparse, dense, grades, measure, spec["weights"])
        fusion_weights.write_weights(args.output, spec["tuned_on"], tried)
        facts["results"] = {name: each.summary() for name, each in tried.items()}
    for name, each in tried.items():
        print(f"tune_fusion: weight {each.best:g} is best on {each.queries} queries ({name})")


if __name__ == "__main__":
    run(main)
