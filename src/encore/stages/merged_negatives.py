"""Merge BM25's negatives with those that a model mined."""

from pathlib import Path

from pydantic import Field

from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields):
    """The systems of both."""

    owners: list[str] = Field(alias="from")


class Inputs(Roles):
    """Two sets of negatives of the same queries."""

    bm25: Path
    mined: Path


class MergedNegatives(Stage[Spec, Inputs]):
    """Further positives are those of the mined."""

    def make(self, job: Job) -> Facts:
        from encore.finetuning.negatives import mining

        both = mining.merge(mining.read_negatives(self.inputs.bm25), mining.read_negatives(self.inputs.mined))
        counts = mining.statistics(both)
        positives = mining.read_positives(self.inputs.mined) or None
        print(f"negatives: {counts.kept} for {counts.queries} queries")
        return {"results": mining.write_negatives(job.output, both, counts, positives)}


STAGE = MergedNegatives
