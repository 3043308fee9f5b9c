"""What representations of texts say of the vocabulary: the pieces that they name, and a decoder's words.

Coverage and first pieces are of BoW (Algorithm 1, figures 2 to 5), words of a decoder of CPDAE (table 4).
"""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from encore.data import vocabulary
from encore.data.tokens import TokenStore
from encore.data.vocabulary import CONTINUES
from encore.errors import EncoreError
from encore.models import checkpoint
from encore.models.encoder import Encoder
from encore.models.heads import MlmHead, WordDecoder
from encore.objectives.inspection import Inspection
from encore.objectives.inspection.vectors import TOGETHER, representations, rounded, sample
from encore.objectives.parts.masked_texts import bags
from encore.training.randomness import generator


def projection(model: Path, device: torch.device) -> tuple[str, Callable[[Tensor], Tensor]]:
    """What gives a representation's logits (BoW, Eq. 11), [B, H] -> [B, V], and its name.

    It is the ``head`` of a model folder over its word embeddings; without a whole one, the ``embeddings`` alone.
    """
    encoder = checkpoint.load_encoder(model)
    heads = nn.ModuleDict({"mlm": MlmHead(encoder.config)}).requires_grad_(False)
    whole = set(checkpoint.restore_heads(heads, model)) == set(heads.state_dict())
    embeddings, head = encoder.word_embeddings.detach().to(device), heads["mlm"].to(device).eval()
    if whole:
        return "head", lambda vectors: head(vectors, embeddings)
    return "embeddings", lambda vectors: vectors @ embeddings.T


def measure_coverage(asked: Inspection, encoder: Encoder, store: TokenStore, head: Path) -> dict[str, Any]:
    """The means over texts for each of ``ks``: ``of_text`` and ``of_top``, and the standard error of the first.

    The algorithm divides the hits by the text's pieces, the caption of the paper's figure by k; both are kept. A text's
    pieces are those that the model reads of it, each once, special ones left out; a text without any is passed over.
    """
    rows = sample(len(store.passages), asked.texts, asked.sample)
    rows = rows[store.passages.lengths_of(rows) > 0]
    if not len(rows):
        raise EncoreError(f"none of {asked.texts} texts has a piece of the vocabulary; take more `texts`")
    (name, project), ks = projection(head, next(encoder.parameters()).device), sorted(asked.ks)
    texts = [store.passages[int(row)] for row in rows]
    kept = [text[: asked.length - 2] for text in texts]
    found: list[NDArray[np.int64]] = []
    sizes: list[NDArray[np.int64]] = []
    for place, vectors in enumerate(representations(encoder, texts, asked.length)):
        bag = bags(kept[place * TOGETHER : (place + 1) * TOGETHER], list(store.special))
        top = project(vectors).topk(min(ks[-1], store.vocabulary)).indices.cpu().numpy()
        found.append(hits(top, bag, ks))
        sizes.append((bag >= 0).sum(1))
    counts, pieces = np.concatenate(found), np.concatenate(sizes)
    counts, pieces = counts[pieces > 0], pieces[pieces > 0]
    values = [_value(k, counts[:, place], pieces) for place, k in enumerate(ks)]
    return {"texts": len(pieces), "pieces": rounded(pieces.mean()), "head": name, "values": values}


def hits(top: NDArray[np.int64], bag: NDArray[np.int64], ks: list[int]) -> NDArray[np.int64]:
    """How many of the first k pieces are in a text's bag: [B, len(ks)].

    Args:
        top: [B, K], best first.
        bag: [B, S], padded with -1.
    """
    inside = np.array([np.isin(row, own[own >= 0]) for row, own in zip(top, bag, strict=True)])
    upto = inside.cumsum(1)
    return upto[:, [min(k, top.shape[1]) - 1 for k in ks]]


def _value(k: int, counts: NDArray[np.int64], pieces: NDArray[np.int64]) -> dict[str, Any]:
    shares = counts / pieces
    error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
    means = {"of_text": shares.mean(), "of_top": (counts / k).mean(), "error": error}
    return {"k": k} | {name: rounded(float(value)) for name, value in means.items()}


def predict_words(asked: Inspection, encoder: Encoder, store: TokenStore, head: Path) -> dict[str, Any]:
    """The ``top`` pieces, best first, with their logits and whether the text has them; and the text as it was read."""
    ids = example(asked, store)
    name, project = projection(head, next(encoder.parameters()).device)
    (vectors,) = representations(encoder, [ids], asked.length)
    best = project(vectors)[0].topk(min(asked.top, store.vocabulary))
    inside = set(ids.tolist()) - set(store.special)
    found = [
        {"piece": store.pieces[piece], "hit": piece in inside, "logit": rounded(logit)}
        for piece, logit in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    text = vocabulary.load_tokenizer(store.tokenizer_folder).decode(ids.tolist(), skip_special_tokens=False)
    return {"text": text, "head": name, "pieces": found}


def measure_heat(asked: Inspection, encoder: Encoder, store: TokenStore, model: Path) -> dict[str, Any]:
    """The words of a text in order, each with the sum of its pieces' probabilities.

    Probabilities are the decoder's sigmoids divided by their sum over the vocabulary, as in the model's contrast.
    """
    ids = example(asked, store)
    heads = nn.ModuleDict({"decoder": WordDecoder(encoder.config, 0.0)})
    if set(checkpoint.restore_heads(heads, model)) != set(heads.state_dict()):
        raise EncoreError(f"{model} keeps no decoder of words; name a lineage that ends with CPDAE")
    (vectors,) = representations(encoder, [ids], asked.length)
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


def example(asked: Inspection, store: TokenStore) -> np.ndarray:
    """The pieces of the text to show, int64 [S], as many as the model reads."""
    if asked.text is not None:
        tokenizer = vocabulary.load_tokenizer(store.tokenizer_folder)
        ids = np.array(tokenizer.encode(asked.text, add_special_tokens=False).ids, dtype=np.int64)
        if not len(ids):
            raise EncoreError("the text of the figure has no word; write one")
        return ids[: asked.length - 2]
    lengths = store.passages.lengths
    fit = np.flatnonzero((lengths >= asked.shortest) & (lengths <= asked.longest))
    if not len(fit):
        raise EncoreError(f"no passage has {asked.shortest} to {asked.longest} pieces; change `shortest` and `longest`")
    chosen = generator(asked.sample, "example").permutation(len(fit))[0]
    return store.passages[int(fit[chosen])][: asked.length - 2].astype(np.int64)
