"""Every measure of every judged query of a run, by two programs that share no code."""

from pathlib import Path

from encore.evaluation import EvaluationProtocol
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import LINES, PLAIN, Needs, Size


class Spec(Fields, EvaluationProtocol):
    """The measures of each split, and how its queries are judged."""


class Inputs(Roles):
    """A run, and the collection, which has the judgments."""

    run: Path
    collection: Path


class Evaluate(Stage[Spec, Inputs]):
    """``scores.parquet``: a row for each query and measure."""

    impl = 3

    def needs(self, size: Size) -> Needs:
        return Needs(PLAIN + 80 * size.lines, 21 * size.queries, core_seconds=size.lines / LINES)

    def make(self, job: Job) -> Facts:
        from encore.data.collection import Collection
        from encore.data.runs import read_run
        from encore.evaluation import judging, scores
        from encore.evaluation.check_from_files import check_scores

        spec, run, collection = self.spec, self.inputs.run, self.inputs.collection
        found = judging.judge(read_run(run), Collection(collection), spec)
        compared = check_scores(run, collection, spec, found)
        scores.write_scores(job.output, found)
        print(f"trec_eval judged {compared} queries from the files: the same values")
        summary = judging.summary(found)
        for split, counts in summary.items():
            print(f"{split}: " + ", ".join(f"{name} {number}" for name, number in counts.items()))
        return {"results": summary}


STAGE = Evaluate
