"""Make the model that a lineage starts from: random, with embeddings of a corpus, a checkpoint's or a model's."""

import argparse
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

import torch

from encore.config import checkpoints
from encore.config.entries import Backbone
from encore.models import checkpoint as folder
from encore.models.start import start_model
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="backbone, seed, numerics")
    parser.add_argument("--tokenizer", required=True, type=artifact)
    parser.add_argument("--tokens", type=artifact, nargs="?", help="token store of the corpus, for `start: lsa`")
    parser.add_argument("--checkpoint", type=artifact, nargs="?", help="fetched files, for `start: checkpoint`")
    parser.add_argument("--source", type=Path, nargs="?", help="or the user's folder of them")
    parser.add_argument("--pretrained", type=artifact, nargs="?", help="the model, for `start: lineage`")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    backbone = Backbone.model_validate(args.spec["backbone"])
    torch.set_num_threads(int(args.spec.get("numerics", {}).get("threads", 1)))
    inputs = [made for made in (args.tokenizer, args.tokens, args.checkpoint, args.pretrained) if made]
    checkpoint = checkpoints.given(args.spec, args.checkpoint, args.source)
    with record(args.output, stage="start", spec=args.spec, inputs=inputs) as facts:
        found = (args.tokenizer, args.tokens, checkpoint, args.pretrained)
        encoder, heads = start_model(backbone, args.spec["seed"], *found)
        folder.save_model(encoder, heads, args.output, args.tokenizer, backbone.length, backbone.query_length)
        lacking = {checkpoints.NO_HEAD: 1} if backbone.start == "checkpoint" and not heads else {}
        lacking |= folder.without_head(args.pretrained) if args.pretrained else {}
        facts["results"] = lacking | {"parameters": sum(parameter.numel() for parameter in encoder.parameters())}


if __name__ == "__main__":
    run(main)
