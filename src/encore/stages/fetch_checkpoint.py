"""Download the files of a model of Hugging Face's hub, all of one commit."""

from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields):
    """Which model."""

    id: str
    revision: str | None  # a commit; without, the first that is downloaded stays


class Inputs(Roles):
    """None: this comes from the network."""


class FetchCheckpoint(Stage[Spec, Inputs]):
    """The files stay in ``data_root``, with a record of their digests in the folder."""

    does = "fetches"

    def make(self, job: Job) -> Facts:
        from encore.datasets.download.checkpoint import fetch

        return {"results": fetch(self.spec.id, self.spec.revision, job.data_root, job.output)}


STAGE = FetchCheckpoint
