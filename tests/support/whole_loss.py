"""The loss of a batch that goes through the models at once."""

from torch import Tensor, nn

from encore.models.encoder import Encoder
from encore.training.task import Task, weighted


def whole_loss(task: Task, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The scalar terms of a whole batch by name, and under ``"loss"`` the sum that the first step minimises."""
    output = task.forward(encoder, heads, batch)
    terms = output.losses | task.batch_loss(output.embeddings)
    return {"loss": weighted(terms, task.loss_weights(0.0)), **terms}
