"""Measure how well a model tells masked words of a collection's passages."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="step (how it masks), texts and numerics")
    parser.add_argument("--tokens", required=True, type=artifact, help="token store of the collection")
    parser.add_argument("--model", required=True, type=artifact)
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    with record(args.output, stage="masked_loss", spec=args.spec, inputs=[args.tokens, args.model]) as facts:
        from encore.evaluation.inspection.masked_loss import measure

        facts["results"] = measure(args.spec, args.tokens, args.model, args.output)
    print(f"masked loss {facts.get('results', {}) or 'measured'} in {args.output}")


if __name__ == "__main__":
    run(main)
