"""Ask a model about a few texts, for figures and tables that show what it says."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="kind of inspection, its fields, numerics")
    parser.add_argument("--model", required=True, type=artifact)
    parser.add_argument("--tokens", required=True, type=artifact, help="token store of the collection")
    parser.add_argument("--head", type=artifact, nargs="?", help="the model whose vocabulary head is asked")
    parser.add_argument("--run", type=artifact, nargs="?", help="the run that candidates are taken from")
    parser.add_argument("--collection", type=artifact, nargs="?", help="what that run searched")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    given = (args.model, args.tokens, args.head, args.run, args.collection)
    with record(args.output, stage="inspect_model", spec=args.spec, inputs=[each for each in given if each]) as facts:
        from encore.evaluation.inspection import inspect_model

        places = (args.head, args.run, args.collection)
        facts["results"] = inspect_model(args.spec, args.model, args.tokens, args.output, *places)
    print(f"inspection of kind {args.spec['kind']} in {args.output}")


if __name__ == "__main__":
    run(main)
