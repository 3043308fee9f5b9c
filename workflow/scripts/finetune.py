"""Fine-tune a model on judged queries."""

import argparse
import shutil
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.plan.index import read_entries
from encore.retrieval.kept_vectors import vectors_of
from encore.storage.manifest import record
from encore.training import launch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="step, seed and numerics: a JSON file")
    parser.add_argument("--tokens", required=True, type=artifact, help="token store of the step's collection")
    parser.add_argument("--collection", required=True, type=artifact, help="its queries and judgments")
    parser.add_argument("--weights", required=True, type=artifact, help="model to go on from")
    parser.add_argument("--negatives", nargs="?", type=artifact, help="none where only the batch has some")
    parser.add_argument("--teachers", type=artifact, nargs="*", default=[], help="what each teacher scored")
    parser.add_argument("--indexes", type=artifact, nargs="*", default=[], help="shards that queries are searched in")
    parser.add_argument("--clusterer", nargs="?", type=artifact, help="whose vectors of queries are clustered")
    parser.add_argument("--output", required=True, type=artifact, help="folder of the new model")
    parser.add_argument("--state", required=True, type=Path, help="checkpoints, removed when the model is written")
    parser.add_argument("--processes", type=int, default=1, help="that train together, one a GPU, under torchrun")
    parser.add_argument("--workers", type=int, default=0, help="that make the batches of each of these")
    parser.add_argument("--checkpoint-seconds", type=float, default=120, help="between two checkpoints")
    args = parser.parse_args()
    launch.start_processes(args.processes)

    inputs = [args.tokens, args.collection, args.weights]
    read = [*inputs, *(each for each in (args.negatives, args.clusterer) if each), *args.teachers, *args.indexes]
    recorded = record(args.output, stage="finetune", spec=args.spec, inputs=read)
    with vectors_of(args.indexes, read_entries), recorded if launch.leads() else nullcontext({}) as facts:
        from encore.finetuning.step import finetune
        from encore.retrieval.dense import vectors_by_row

        index = partial(vectors_by_row, args.indexes) if args.indexes else None
        places = (*inputs, args.negatives, args.output, args.state)
        how = args.checkpoint_seconds, args.teachers, args.workers, index, args.clusterer
        done = finetune(args.spec, *places, *how)
        facts["results"] = done.results
        facts["results"] |= {"best_step": done.best_step} if done.validations else {}
        facts |= done.facts
    if launch.leads():
        shutil.rmtree(args.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)
