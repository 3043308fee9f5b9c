"""How well a model predicts masked words: its MLM loss (Devlin et al. 2019) on passages, one mask for all models."""

from pathlib import Path
from typing import Any

import numpy as np

from encore import objectives
from encore.data.tokens import TokenStore
from encore.models import checkpoint, embed
from encore.models.memory import MicroBatch, PartSize
from encore.storage.files import write_json
from encore.training import held_out, machine
from encore.training.gradients import TrainingModels
from encore.training.randomness import generator

FILE = "loss.json"


def measure(spec: dict[str, Any], tokens: Path, model: Path, output: Path) -> dict[str, Any]:
    """Write ``loss.json``: ``loss``, a mean of batches' means over masked pieces, and the ``texts`` that it is over.

    A batch counts by its texts. Texts and masks depend on the collection alone, so they are the same for all models of
    one vocabulary. The loss is null where the model has no whole vocabulary head: none of its steps trained one.

    Args:
        spec: ``step``, fields of an MLM step that say how texts are masked, ``texts``, how many, and ``numerics``.
    """
    step, store = objectives.fields(spec["step"]), TokenStore(tokens)
    encoder = embed.load_for_tokens(model, store)
    objective = objectives.load(step.objective)(step, store, None)
    heads = objective.heads(encoder)
    chosen = generator(0, "masked loss").permutation(len(objective))[: spec["texts"]]
    found: dict[str, Any] = {"loss": None, "texts": len(chosen)}
    if set(checkpoint.restore_heads(heads, model)) == set(heads.state_dict()):
        device = machine.prepare(spec["numerics"])
        for module in (encoder, heads):
            module.to(device).eval()
        models = TrainingModels(objective, encoder, heads, device, spec["numerics"])
        at_once = MicroBatch(PartSize(step.batch))
        terms = held_out.held_out_losses(models, np.sort(chosen), step.batch, at_once)
        found["loss"] = float(f"{terms['mlm']:.6g}")
    write_json(output / FILE, found)
    return found
