"""Convert a dataset to the common form: corpus, queries, judgments, articles."""

import shutil
from pathlib import Path

from pydantic import ConfigDict

from encore.datasets import kinds
from encore.errors import EncoreError
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import PLAIN, Needs, Size


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

    def needs(self, size: Size) -> Needs:
        texts, articles = size.collection, size.collection.article_tokens
        if kinds.load_kind(self.spec.kind).parallel:  # 116,000 tokens in each process, of small extracts of a dump
            memory = PLAIN + 120e6 * size.cores + 1.1 * articles
            return Needs(memory, articles, core_seconds=texts.tokens / 80e3, cores=size.cores)
        seconds = texts.tokens / 2.5e6  # 3.2 million: 8.8 million passages in 200 s; docs/scales.md
        return Needs(PLAIN + 48 * size.passages, 2 * texts.passages.tokens + articles, core_seconds=seconds)

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
