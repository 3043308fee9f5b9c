"""Let ir_datasets download what a dataset needs, after its terms were shown, and count its queries and judgments."""

from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import Needs, Size


class Spec(Fields):
    """Which datasets."""

    ids: list[str]  # of ir_datasets


class Inputs(Roles):
    """None: this comes from the network."""


class FetchIrDatasets(Stage[Spec, Inputs]):
    """Its folder is named after the dataset; ``details`` have its licence and terms."""

    does = "fetches"

    def needs(self, size: Size) -> Needs:
        return Needs(disk=size.download - size.here)

    def make(self, job: Job) -> Facts:
        from encore.datasets.download.ir_datasets import fetch
        from encore.datasets.download.source import print_terms

        print_terms(job.output.name.rpartition("-")[0], job.details["licence"], job.details["terms"])
        return {"results": fetch(self.spec.ids, job.data_root, job.details["terms"])}


STAGE = FetchIrDatasets
