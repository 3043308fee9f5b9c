"""Fuse two runs over the same queries: the sparse scores, weighted, plus the dense ones."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.data.runs import describe, read_run, write_run
from encore.evaluation import fusion_weights
from encore.retrieval.fusion import align, fuse
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="a JSON file: depth, split, collection, system")
    parser.add_argument("--sparse", required=True, type=artifact, help="folder of the run whose scores are weighted")
    parser.add_argument("--dense", required=True, type=artifact, help="folder of the other run")
    parser.add_argument("--weight", required=True, type=artifact, help="folder with the chosen weight")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    spec, inputs = args.spec, [args.sparse, args.dense, args.weight]
    with record(args.output, stage="fuse", spec=spec, inputs=inputs) as facts:
        sparse, dense = (read_run(folder) for folder in (args.sparse, args.dense))
        weight = fusion_weights.read_weight(args.weight)
        queries = list(dict.fromkeys([*dense, *sparse]))
        found = {query: fuse(align(sparse.get(query), dense.get(query)), weight, spec["depth"]) for query in queries}
        stages = [{"name": "fusion", "method": "weight * sparse + dense", "weight": weight}]
        header = describe(spec["system"], collection=spec["collection"], split=spec["split"], retrieval=stages)
        write_run(args.output, found, header)
        facts["results"] = {"answered": len(found), "weight": weight}
    print(f"fuse: {len(found)} queries, weight {weight:g}")


if __name__ == "__main__":
    run(main)
