"""Fine-tune a model on judged queries."""

import argparse
import shutil
from pathlib import Path

from torch import nn

from encore.cli_support import json_object, run
from encore.collections.common import Collection
from encore.config import FinetuneStep
from encore.finetuning import contrastive, negatives, validation
from encore.modeling import folder
from encore.provenance.manifest import record
from encore.tokens import TokenStore
from encore.training.loop import train
from encore.training.progress import write_curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json_object, help="step, seed, numerics")
    parser.add_argument("--tokens", required=True, type=Path)
    parser.add_argument("--collection", required=True, type=Path)
    parser.add_argument("--weights", required=True, type=Path, help="folder of the model to start from")
    parser.add_argument("--negatives", required=True, type=Path)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--state", required=True, type=Path, help="where an interrupted training goes on from")
    args = parser.parse_args()
    step, seed, numerics = FinetuneStep.model_validate(args.spec["step"]), args.spec["seed"], args.spec["numerics"]
    inputs = [args.tokens, args.collection, args.weights, args.negatives]
    with record(args.output, stage="finetune", spec=args.spec, inputs=inputs) as facts:
        collection, store = Collection(args.collection), TokenStore.open(args.tokens)
        queries = contrastive.training_queries(step, collection, store, negatives.read(args.negatives))
        task, encoder = contrastive.Contrastive(step, queries, store), folder.load(args.weights)
        validate = None
        if step.validate_every:
            validate = validation.Validation(step, validation.validation_pool(step, collection, store), store)
        done = train(task, encoder, nn.ModuleDict(), step, seed, args.state, numerics, validate, step.validate_every)
        folder.save(encoder, nn.ModuleDict(), args.output, store.tokenizer_folder, step.length, step.query_length)
        write_curve(args.output / "losses.tsv", done.losses)
        validation.write_record(args.output / "validation.tsv", done.validations)
        facts["results"] = {"steps": done.steps, "examples": done.examples, "operations": done.operations}
        facts["results"] |= {"queries": len(queries), "best_step": done.best_step}
    shutil.rmtree(args.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)
