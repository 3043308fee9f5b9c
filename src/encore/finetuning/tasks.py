"""The task of a fine-tuning step, by its scorer, or by its loss if that compares vectors."""

from encore.config.finetuning import FinetuneStep
from encore.finetuning import distillation
from encore.finetuning.contrastive import Contrastive, LateInteraction, Pairwise, PairwiseInBatch
from encore.finetuning.cross_encoder import CrossEncoder
from encore.finetuning.retrieval_task import RetrievalTask
from encore.finetuning.whole_index import WholeIndex

SCORERS: dict[str, type[RetrievalTask]] = {"late-interaction": LateInteraction, "cross-encoder": CrossEncoder}
TASKS: dict[str, type[RetrievalTask]] = {
    "contrastive": Contrastive,
    "pairwise": Pairwise,
    "pairwise-in-batch": PairwiseInBatch,
    **distillation.TASKS,
}


def task_class(step: FinetuneStep) -> type[RetrievalTask]:
    """The class of a step's task."""
    return WholeIndex if step.negatives == "index" else SCORERS.get(step.scorer) or TASKS[step.loss]
