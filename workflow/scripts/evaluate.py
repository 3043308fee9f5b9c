"""Score a run, query by query, with two evaluators that must agree, and check a sample by trec_eval from the files."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.data.collection import Collection
from encore.data.runs import read_run
from encore.evaluation import judging, scores
from encore.evaluation.check_from_files import check_scores
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="splits, each with its measures by short name")
    parser.add_argument("--run", required=True, type=artifact, help="folder of the run")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    with record(args.output, stage="evaluate", spec=args.spec, inputs=[args.run, args.collection]) as facts:
        found = judging.judge(read_run(args.run), Collection(args.collection), args.spec)
        compared = check_scores(args.run, args.collection, args.spec, found)
        scores.write_scores(args.output, found)
        facts["results"] = summary = judging.summary(found)
    print(f"trec_eval judged {compared} queries from the files: the same values")
    for split, counts in summary.items():
        print(f"{split}: " + ", ".join(f"{name} {number}" for name, number in counts.items()))


if __name__ == "__main__":
    run(main)
