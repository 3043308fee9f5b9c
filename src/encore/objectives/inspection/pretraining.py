"""What there is to say of a pre-training step: the pairs of texts it learns from, and how it predicts masked words."""

from pathlib import Path
from typing import Any

import numpy as np

from encore import objectives
from encore.config.entries import PretrainStep
from encore.data.tokens import TokenStore
from encore.models import checkpoint, embed
from encore.models.memory import MicroBatch, PartSize
from encore.storage.files import write_json
from encore.training import held_out, machine
from encore.training.gradients import TrainingModels
from encore.training.randomness import generator

PAIRS, LOSS = "pairs.json", "loss.json"
SPECIAL_TOKENS = 2  # [CLS] and [SEP], for which room is left


def count_pairs(step: Any, tokens: Path, output: Path) -> dict[str, Any]:
    """Write ``pairs.json``: ``pairs`` of an epoch, their ``tokens``, and the mean of a query's and of a document's.

    That is table 1 of Chang et al. 2020. Tokens are word pieces as the model reads them: cut to the step's lengths, a
    title with its passage, no special tokens. One pair is in memory at a time; its chance depends on its number alone.

    Args:
        step: of an objective of pairs (``objectives.fields``), with those fields that decide which there are.
    """
    objective: Any = objectives.load(step.objective)(step, TokenStore(tokens), None)
    queries = documents = 0
    for index in range(len(objective)):
        pair = objective.example(index, generator(0, "pairs", index))
        queries += min(len(pair.query), step.query_length - SPECIAL_TOKENS)
        documents += min(len(pair.document), step.length - SPECIAL_TOKENS) - bool(pair.title)
    found = {
        "pairs": len(objective),
        "tokens": queries + documents,
        "query_tokens": queries / len(objective),
        "document_tokens": documents / len(objective),
    }
    write_json(output / PAIRS, found)
    return found


def measure_masked_loss(
    step: PretrainStep, texts: int, numerics: dict[str, Any], tokens: Path, model: Path, output: Path
) -> dict[str, Any]:
    """Write ``loss.json``: ``loss``, a mean of batches' means over masked pieces, and the ``texts`` that it is over.

    It is MLM's loss (Devlin et al. 2019). A batch counts by its texts. Texts and masks depend on the collection alone,
    so they are the same for all models of one vocabulary. The loss is null where the model has no whole vocabulary
    head: none of its steps trained one.

    Args:
        step: of MLM (``objectives.fields``), which says how texts are masked.
        texts: the most that are read.
    """
    store = TokenStore(tokens)
    encoder = embed.load_for_tokens(model, store)
    objective = objectives.load(step.objective)(step, store, None)
    heads = objective.heads(encoder)
    chosen = generator(0, "masked loss").permutation(len(objective))[:texts]
    found: dict[str, Any] = {"loss": None, "texts": len(chosen)}
    if set(checkpoint.restore_heads(heads, model)) == set(heads.state_dict()):
        device = machine.prepare(numerics)
        for module in (encoder, heads):
            module.to(device).eval()
        models = TrainingModels(objective, encoder, heads, device, numerics)
        at_once = MicroBatch(PartSize(step.batch))
        terms = held_out.held_out_losses(models, np.sort(chosen), step.batch, at_once)
        found["loss"] = float(f"{terms['mlm']:.6g}")
    write_json(output / LOSS, found)
    return found
