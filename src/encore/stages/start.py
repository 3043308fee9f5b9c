"""Make the model that a lineage starts from: random weights, LSA embeddings, a checkpoint, or a trained model."""

from pathlib import Path
from typing import Any

from encore.config import checkpoints
from encore.config.entries import Backbone
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import FP32, PROCESS, Needs, Size


class Spec(Fields):
    """The backbone, and the content of the user's checkpoint."""

    backbone: dict[str, Any]
    seed: int
    numerics: dict[str, Any]
    content: Any = None
    sha256: dict[str, str] = {}  # of files of the checkpoint, by name


class Inputs(Roles):
    """The vocabulary, and what the weights come from."""

    tokenizer: Path
    tokens: Path | None = None  # for ``start: lsa``
    checkpoint: Path | None = None  # fetched, for ``start: checkpoint``
    pretrained: Path | None = None  # for ``start: lineage``


def refuse_markers(backbone: Backbone, tokenizer_folder: Path) -> None:
    """Refuse a backbone whose markers its tokenizer reads as more pieces than it can count."""
    from encore.models.config import read_shape

    read_shape(backbone, tokenizer_folder)


class Start(Stage[Spec, Inputs]):
    """A Hugging Face folder."""

    def needs(self, size: Size) -> Needs:
        return Needs(PROCESS + 8 * size.parameters, disk=FP32 * size.parameters)

    def make(self, job: Job) -> Facts:
        import torch

        from encore.models import checkpoint as folder
        from encore.models.start import start_model

        backbone, given = Backbone.model_validate(self.spec.backbone), self.inputs
        torch.set_num_threads(int(self.spec.numerics.get("threads", 1)))
        checkpoint = checkpoints.given(self.spec.dumped(), given.checkpoint, job.source, job.state / "checkpoint")
        encoder, heads = start_model(
            backbone, self.spec.seed, given.tokenizer, given.tokens, checkpoint, given.pretrained
        )
        folder.save_model(encoder, heads, job.output, given.tokenizer, backbone.length, backbone.query_length)
        lacking: dict[str, float] = {checkpoints.NO_HEAD: 1} if backbone.start == "checkpoint" and not heads else {}
        lacking |= folder.without_head(given.pretrained) if given.pretrained else {}
        return {"results": lacking | {"parameters": sum(each.numel() for each in encoder.parameters())}}


STAGE = Start
