"""Sample negatives for training queries from a run, never a judged document."""

from pathlib import Path
from typing import Literal

from encore.config.datasets import Ignored
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import LINES, PLAIN, Needs, Size

RECIPE = {"first_rank", "depth", "keep", "kept", "exclude_judged", "seed"}
WINDOW = {"first_rank", "depth"}


class Spec(Fields, Ignored):
    """The recipe of a fine-tuning step."""

    split: str
    depth: int  # ranks that are sampled from
    keep: int  # negatives of a query
    kept: Literal["random", "first"] = "random"
    exclude_judged: bool
    seed: int
    first_rank: int = 1
    answers: Literal["positives", "left out"] | None = None  # how passages that contain an answer are used
    negatives_below: float | None = None  # probability of being relevant


class Inputs(Roles):
    """A run over the split's queries and, where its order counts, the one that it ranked again; and the collection."""

    run: Path
    first: Path | None = None
    collection: Path


class Negatives(Stage[Spec, Inputs]):
    """A file of the negatives of each query."""

    def needs(self, size: Size) -> Needs:
        runs = 2 if self.spec.kept == "first" else 1
        memory = PLAIN + 12 * runs * size.lines + 105 * min(size.lines, size.passages)
        return Needs(memory, disk=180 * size.queries, core_seconds=size.lines / LINES)

    def make(self, job: Job) -> Facts:
        from encore.data.collection import Collection
        from encore.data.judged import no_negatives
        from encore.data.runs import read_run
        from encore.finetuning.negatives import mining

        spec, collection = self.spec, Collection(self.inputs.collection)
        answers = read_run(self.inputs.run)
        ranked = read_run(self.inputs.first) if self.inputs.first else answers
        ranking = mining.Candidates(ranked, no_negatives(collection, spec.split, spec))
        window = spec.model_dump(include=WINDOW, exclude_unset=True)
        right = mining.answering(ranking, collection, **window) if spec.answers else {}
        found = {query: set(documents) for query, documents in right.items()}
        if spec.negatives_below is not None:
            scored = mining.false_negatives(answers, spec.negatives_below)
            found = {query: found.get(query, set()) | scored[query] for query in scored}
        recipe = spec.model_dump(include=RECIPE, exclude_unset=True)
        drawn, counts = mining.mine(ranking, collection.qrels(spec.split), answering=found, **recipe)
        print(f"negatives: {counts.kept} for {counts.queries} queries, {counts.judged} judged left out")
        positives = right if spec.answers == "positives" else None
        return {"results": mining.write_negatives(job.output, drawn, counts, positives)}


STAGE = Negatives
