"""Download an entry of sources.yaml, check its digests, and unpack it."""

from typing import Any

from encore.config.sources import SourceEntry
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import Needs, Size


class Spec(Fields):
    """Which files an entry has."""

    files: Any  # names and digests: neither addresses nor licences decide anything


class Inputs(Roles):
    """None: this comes from the network."""


class FetchSource(Stage[Spec, Inputs]):
    """Its folder is named after the entry; ``details`` are the entry."""

    does = "fetches"

    def needs(self, size: Size) -> Needs:
        return Needs(disk=3 * size.download)

    def make(self, job: Job) -> Facts:
        from encore.datasets.download.source import fetch

        entry, name = SourceEntry.model_validate(job.details), job.output.name.rpartition("-")[0]
        return {"results": {"files": fetch(name, entry, job.data_root, job.output)}}


STAGE = FetchSource
