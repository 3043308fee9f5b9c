"""Measure what one query takes in each stage of a system, and how large its index is."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.plan.index import read_entries
from encore.retrieval.kept_vectors import vectors_of
from encore.storage.manifest import record

ROLES = ("collection", "model", "tokens", "index", "indexes", "sparse", "dense", "first")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="kind, run (its spec), queries and warm_up")
    for role in ROLES:
        parser.add_argument(f"--{role}", type=artifact, nargs="*", default=[], help=f"what the system has as {role}")
    parser.add_argument("--parts", type=artifact, nargs="*", default=[], help="measurements of what it is made of")
    parser.add_argument("--memory-mb", type=int, default=1024, help="Java's heap")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    folders = {role: getattr(args, role) for role in ROLES}
    inputs = [folder for of_role in (*folders.values(), args.parts) for folder in of_role]
    with (
        vectors_of(args.indexes, read_entries),
        record(args.output, stage="measure_latency", spec=args.spec, inputs=inputs) as facts,
    ):
        from encore.evaluation.latency.measurement import measure_latency
        from encore.evaluation.latency.parts import RECORD, LatencyInputs

        spec = args.spec
        given = LatencyInputs(spec["run"], spec["queries"], spec["warm_up"], folders, args.parts, args.memory_mb)
        facts["results"] = measure_latency(spec["kind"], given, args.output)
    print((args.output / RECORD).read_text())


if __name__ == "__main__":
    run(main)
