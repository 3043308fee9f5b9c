"""Score what students will learn from with their teacher, once; or convert published scores to the same files."""

import argparse
import shutil
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="form, split and queries: a JSON file")
    parser.add_argument("--model", type=artifact, nargs="?", help="the teacher")
    parser.add_argument("--run", type=artifact, nargs="?", help="or the run whose scores teach")
    parser.add_argument("--tokens", required=True, type=artifact, help="token store of the students' collection")
    parser.add_argument("--collection", type=artifact, nargs="?", help="its queries and judgments")
    parser.add_argument("--negatives", type=artifact, nargs="?", help="what students bring to a batch, if anything")
    parser.add_argument("--source", type=Path, nargs="?", help="published scores, a file or a folder of files")
    parser.add_argument("--fetched", type=artifact, nargs="?", help="published scores, from the web")
    parser.add_argument("--state", type=Path, help="scores that are done so far, removed when all are written")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    teacher = args.model or args.run
    inputs = [folder for folder in (teacher, args.tokens, args.collection, args.negatives, args.fetched) if folder]
    with record(args.output, stage="teacher_scores", spec=args.spec, inputs=inputs) as facts:
        if args.spec["form"] == "published":
            from encore.finetuning.teachers.published import write_published_scores

            facts["results"] = write_published_scores(
                args.spec, str(args.source or args.fetched), args.tokens, args.output
            )
        else:
            from encore.finetuning.teachers.stage import write_teacher_outputs

            places = (teacher, args.tokens, args.collection, args.negatives, args.output, args.state)
            facts["results"] = write_teacher_outputs(args.spec, *places)
    if args.state:
        shutil.rmtree(args.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)
