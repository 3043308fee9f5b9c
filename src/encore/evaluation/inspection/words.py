"""The first pieces that the representation of one text names, and which of them stand in it (BoW, figures 3 and 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from encore.data import vocabulary
from encore.data.tokens import TokenStore
from encore.evaluation.inspection.examples import GivenTexts, example, representations, rounded
from encore.evaluation.inspection.projecting import projection
from encore.models.encoder import Encoder


def predict_words(spec: dict[str, Any], encoder: Encoder, store: TokenStore, head: Path) -> dict[str, Any]:
    """The ``top`` pieces, best first, with their logits and whether the text has them; and the text as it was read."""
    ids = example(spec, store)[: spec["length"] - 2]
    project = projection(head, next(encoder.parameters()).device)
    (vectors,) = representations(encoder, GivenTexts([ids]), [0], spec["length"])
    best = project(vectors)[0].topk(min(spec["top"], store.vocabulary))
    inside = set(ids.tolist()) - set(store.special)
    found = [
        {"piece": store.pieces[piece], "hit": piece in inside, "logit": rounded(logit)}
        for piece, logit in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    text = vocabulary.load_tokenizer(store.tokenizer_folder).decode(ids.tolist(), skip_special_tokens=False)
    return {"text": text, "head": project.name, "pieces": found}
