"""Take the answers to a split's queries out of a run that others made."""

from pathlib import Path

from encore.errors import EncoreError
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import LINES, PLAIN, Needs, Size

MOST_UNKNOWN = 0.5  # of the documents that a run ranks: above, it is of another collection


class Spec(Fields):
    """The run's file, and which queries."""

    content: dict[str, str] | None = None  # the digest of the user's file
    split: str
    depth: int
    queries: int | None
    sample: int
    system: str  # the run's tag


class Inputs(Roles):
    """The collection, and the folder of the file where it was fetched."""

    collection: Path
    fetched: Path | None = None


class TakeRun(Stage[Spec, Inputs]):
    """A run."""

    def needs(self, size: Size) -> Needs:
        return Needs(PLAIN + 400 * size.lines + 100 * size.passages, size.run_bytes, core_seconds=size.lines / LINES)

    def make(self, job: Job) -> Facts:
        from encore.data.collection import Collection, topics
        from encore.data.rankings import RunMatrices
        from encore.data.runs import describe, write_run
        from encore.data.trec_runs import read_trec
        from encore.storage.document_ids import DocIds

        spec, collection, path = self.spec, Collection(self.inputs.collection), self._file(job)
        run, asked = read_trec(path).cut(spec.depth), topics(collection, spec.split, spec.queries, spec.sample)
        found = RunMatrices.of({query: run[query] for query in asked if query in run})
        if not found:
            raise EncoreError(
                f"{path} answers no query of split {spec.split!r} ({', '.join(list(run)[:2]) or 'no line'}, for "
                f"{', '.join(asked[:2])}); name what it answers under `answers` of the system"
            )
        known = DocIds.of(row["_id"] for row in collection.corpus())
        unknown = int((known.rows(list(found.documents)) < 0).sum())
        if unknown > MOST_UNKNOWN * len(found.documents):
            raise EncoreError(
                f"{path}: {unknown:,} of the {len(found.documents):,} documents that it ranks are not in "
                f"{self.inputs.collection}; name a run over the same texts, by the same ids"
            )
        step = {"name": "taken", "method": "made by others", "file": path.name}
        header = describe(spec.system, collection=self.inputs.collection.name, split=spec.split, retrieval=[step])
        write_run(job.output, found, header)
        print(f"take_run: {len(found)} of {len(asked)} queries answered, {unknown} documents that the texts lack")
        return {"results": {"queries": len(asked), "answered": len(found), "unknown_documents": unknown}}

    def _file(self, job: Job) -> Path:
        """The file, which is the user's or was fetched."""
        from encore.data import unpacked
        from encore.datasets.source_files import content_of, refuse_changed

        if self.inputs.fetched:
            return unpacked.file(self.inputs.fetched, [""])
        assert job.source is not None
        refuse_changed(job.source, content_of(job.source, "sha256"), self.spec.content or {})
        return job.source


STAGE = TakeRun
