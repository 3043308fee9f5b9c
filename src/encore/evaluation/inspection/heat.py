"""What a decoder of words says of each word of a text (CPDAE, table 4)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from encore.data.tokens import TokenStore
from encore.data.vocabulary import CONTINUES
from encore.errors import EncoreError
from encore.evaluation.inspection.examples import GivenTexts, example, representations, rounded
from encore.models import checkpoint
from encore.models.encoder import Encoder
from encore.models.heads import WordDecoder


def measure_heat(spec: dict[str, Any], encoder: Encoder, store: TokenStore, model: Path) -> dict[str, Any]:
    """The words of a text in order, each with the sum of its pieces' probabilities.

    Probabilities are the decoder's sigmoids divided by their sum over the vocabulary, as in the model's contrast.

    Raises:
        EncoreError: the model keeps no decoder.
    """
    ids = example(spec, store)[: spec["length"] - 2]
    heads = nn.ModuleDict({"decoder": WordDecoder(encoder.config, 0.0)})
    if set(checkpoint.restore_heads(heads, model)) != set(heads.state_dict()):
        raise EncoreError(f"{model} keeps no decoder of words; name a lineage that ends with CPDAE")
    (vectors,) = representations(encoder, GivenTexts([ids]), [0], spec["length"])
    decoder = heads["decoder"].to(vectors.device).eval()
    with torch.no_grad():
        probabilities = F.normalize(decoder(vectors).sigmoid(), p=1, dim=-1)[0].double().cpu().numpy()
    words = summed(ids, store.continues, probabilities)
    named = [
        {"word": joined([store.pieces[piece] for piece in pieces]), "probability": rounded(p)} for pieces, p in words
    ]
    return {"words": named}


def summed(
    ids: NDArray[np.int64], continues: NDArray[np.bool_], probabilities: NDArray[np.float64]
) -> list[tuple[list[int], float]]:
    """The pieces of each word of a text, and the sum of their probabilities.

    Args:
        ids: [S], the pieces of the text.
        continues: [V], whether a piece continues a word.
        probabilities: float64 [V].
    """
    starts = [place for place, piece in enumerate(ids) if place == 0 or not continues[piece]]
    words = [ids[first:end] for first, end in pairwise([*starts, len(ids)])]
    return [(word.tolist(), float(probabilities[word].sum())) for word in words]


def joined(pieces: list[str]) -> str:
    """A word from its pieces."""
    return "".join(piece.removeprefix(CONTINUES) for piece in pieces)
