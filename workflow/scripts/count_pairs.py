"""Count the pairs of texts that a pre-training step learns from, and their tokens."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="step: the fields that decide which pairs")
    parser.add_argument("--tokens", required=True, type=artifact, help="token store of the collection")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    stage = f"count_pairs.{args.spec['step']['objective']}"
    with record(args.output, stage=stage, spec=args.spec, inputs=[args.tokens]) as facts:
        from encore.evaluation.inspection.pair_counts import count

        facts["results"] = count(args.spec, args.tokens, args.output)
    print(f"pairs {facts.get('results', {}) or 'counted'} in {args.output}")


if __name__ == "__main__":
    run(main)
