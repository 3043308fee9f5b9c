"""Write queries for the passages of a collection with a T5, or read published ones."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from encore.config.systems import content, parameters_of_t5
from encore.errors import EncoreError
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import FP32, PROCESS, Needs, Size


class Spec(Fields):
    """How queries are sampled; of published ones the content of the user's file, and which samples."""

    kind: Literal["t5", "published"]
    content: Any = None
    samples: Any = None
    top_k: int = 0
    per_passage: int = 0
    length: int = 0  # tokens of a passage
    query_length: int = 0
    seed: int = 0
    numerics: dict[str, Any] = {}

    @property
    def variant(self) -> str:
        """The kind."""
        return self.kind


class Inputs(Roles):
    """The passages, and the model, or fetched predictions."""

    collection: Path
    doc2query_model: Path | None = None
    fetched: Path | None = None


class PredictQueries(Stage[Spec, Inputs]):
    """Queries by passage, in the corpus' order."""

    devices = "GPUs"
    resumes = True

    @property
    def is_shared(self) -> bool:
        """Published queries are read by one process."""
        return self.spec.kind == "t5"

    def needs(self, size: Size) -> Needs:
        """A T5 takes two operations for a parameter and token, read or written."""
        disk, spec = 600 * size.passages, self.spec
        if spec.kind == "published":
            return Needs(disk=disk)
        weights = parameters_of_t5(size.given["doc2query_model"]["expansion"])
        tokens = size.passages * (spec.per_passage * spec.query_length + size.passage_tokens(spec.length))
        return Needs(PROCESS + FP32 * weights, disk, operations=2 * weights * tokens, gpu_memory=FP32 * weights)

    def make(self, job: Job) -> Facts:
        from encore.retrieval.doc2query import predictions
        from encore.training import launch

        queries = self._predicted(job)
        if not launch.leads():
            return {}
        counts = predictions.write_predicted_queries(job.output, queries)
        print(f"predict_queries: {counts['queries']} queries for {counts['passages']} passages")
        return {"results": counts}

    def _predicted(self, job: Job) -> Iterable[Any]:
        if self.spec.kind == "t5":
            from encore.retrieval.doc2query.sampling import Sampling, sample

            assert self.inputs.doc2query_model is not None
            spec = self.spec
            how = Sampling(
                per_passage=spec.per_passage,
                top_k=spec.top_k,
                length=spec.length,
                query_length=spec.query_length,
                seed=spec.seed,
                numerics=spec.numerics,
            )
            return sample(how, self.inputs.doc2query_model, self.inputs.collection, job.state)
        from encore.data.collection import Collection
        from encore.retrieval.doc2query import predictions

        place = self.inputs.fetched or job.source
        assert place is not None
        if not self.inputs.fetched and content(place) != self.spec.content:
            raise EncoreError(f"{place} has changed since it was planned with; run snakemake again")
        names = (row["_id"] for row in Collection(self.inputs.collection).corpus())
        return predictions.predicted(place, names, self.spec.samples)


STAGE = PredictQueries
