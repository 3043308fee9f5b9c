"""Convert a dataset to the common form: corpus, queries, judgments, articles."""

import shutil
from pathlib import Path

from pydantic import ConfigDict

from encore.datasets import kinds
from encore.errors import EncoreError
from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields):
    """The kind of dataset, and what its fields resolve to (``CollectionFields.resolve``)."""

    model_config = ConfigDict(extra="allow")

    kind: str

    @property
    def variant(self) -> str:
        """The kind."""
        return self.kind


class Inputs(Roles):
    """What kinds are made from."""

    collection: Path | None = None  # the one that it is derived from
    fetched: Path | None = None  # what ir_datasets downloaded
    sources: dict[str, Path] = {}  # entries of sources.yaml, by name
    parts: list[Path] = []  # the collections that are joined


class Collection(Stage[Spec, Inputs]):
    """Each kind is a file in ``datasets/``, with a version of its own."""

    @classmethod
    def version(cls, variant: str) -> int:
        """That of the kind."""
        return kinds.load_kind(variant).impl

    @classmethod
    def modules(cls, variant: str) -> list[str]:
        """The stage's, and that of the kind."""
        return [cls.__module__, kinds.modules()[variant]]

    def make(self, job: Job) -> Facts:
        try:
            counts = kinds.build_collection(
                self.spec.kind,
                self.spec.dumped(),
                job.output,
                source=job.source,
                base=self.inputs.collection,
                data_root=job.data_root,
                sources=self.inputs.sources,
                parts=self.inputs.parts,
                processes=job.threads,
            )
        except EncoreError:
            shutil.rmtree(job.output)  # of what is refused nothing stays
            raise
        for name, count in counts.items():
            print(f"{name}: {count}")
        return {"results": counts}


STAGE = Collection
