"""Train the T5 that writes queries for passages."""

from pathlib import Path
from typing import Any

from encore.config import checkpoints
from encore.config.systems import T5, parameters_of_t5
from encore.config.validation import checked
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import FP32, PROCESS, STATE, Needs, Size


class Spec(Fields):
    """What an entry of doc2query.yaml says of the training."""

    expansion: dict[str, Any]
    seed: int
    numerics: dict[str, Any]
    content: Any = None  # of the user's checkpoint
    sha256: dict[str, str] = {}  # of files of the checkpoint, by name


class Inputs(Roles):
    """Judged queries, and a vocabulary or the checkpoint to continue from."""

    collection: Path
    tokenizer: Path | None = None
    checkpoint: Path | None = None


class TrainDoc2Query(Stage[Spec, Inputs]):
    """A Hugging Face folder."""

    impl = 2
    devices = "one GPU"
    resumes = True
    does = "trains"

    def needs(self, size: Size) -> Needs:
        """Six operations for a parameter and token."""
        fields, weights = self.spec.expansion, parameters_of_t5(self.spec.expansion)
        tokens = fields["steps"] * fields["batch"] * (fields["length"] + fields["query_length"]) / 2
        on_gpu = FP32 * STATE * weights
        return Needs(PROCESS + 12 * weights, FP32 * weights, operations=6 * weights * tokens, gpu_memory=on_gpu)

    def make(self, job: Job) -> Facts:
        from encore.retrieval.doc2query.training import train

        spec, given = self.spec, self.inputs
        begun = checkpoints.given(spec.dumped(), given.checkpoint, job.source, job.state / "checkpoint")
        start = {"backbone": given.tokenizer.name} if given.tokenizer else {"checkpoint": str(begun)}
        entry = spec.expansion | {"kind": "t5", "collection": given.collection.name, "seed": spec.seed} | start
        expansion = checked(T5, entry, "expansion")
        places = (given.collection, given.tokenizer, job.output, job.state)
        return {"results": train(expansion, spec.numerics, *places, job.checkpoint_seconds, begun)}


STAGE = TrainDoc2Query
