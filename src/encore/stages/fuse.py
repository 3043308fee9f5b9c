"""Rank passages by the weighted sparse score plus the dense one."""

from pathlib import Path

from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import LINES, PLAIN, Needs, Size


class Spec(Fields):
    """Which queries, how deep, and the name of the collection's folder."""

    split: str
    depth: int
    queries: int | None
    sample: int
    system: str  # the run's tag
    collection: str


class Inputs(Roles):
    """Two runs over the same queries, and the chosen weight."""

    sparse: Path
    dense: Path
    weight: Path


class Fuse(Stage[Spec, Inputs]):
    """A run."""

    impl = 2

    def needs(self, size: Size) -> Needs:
        return Needs(PLAIN + 400 * size.lines, size.run_bytes, core_seconds=size.lines / LINES)

    def make(self, job: Job) -> Facts:
        from encore.data.runs import describe, read_run, write_run
        from encore.retrieval.fusion import align, fuse
        from encore.stages.tune_fusion import read_weight

        spec, weight = self.spec, read_weight(self.inputs.weight)
        sparse, dense = read_run(self.inputs.sparse), read_run(self.inputs.dense)
        queries = list(dict.fromkeys([*dense, *sparse]))
        found = {query: fuse(align(sparse.get(query), dense.get(query)), weight, spec.depth) for query in queries}
        step = {"name": "fusion", "method": "weight * sparse + dense", "weight": weight}
        header = describe(spec.system, collection=spec.collection, split=spec.split, retrieval=[step])
        write_run(job.output, found, header)
        print(f"fuse: {len(found)} queries, weight {weight:g}")
        return {"results": {"answered": len(found), "weight": weight}}


STAGE = Fuse
