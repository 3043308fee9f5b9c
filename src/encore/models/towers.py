"""Encoders of one tower or two, BERT's or a bag of words (Chang et al., ICLR'20; DPR): new ones, and changed ones."""

import copy
import math
from collections.abc import Mapping
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encore.errors import EncoreError
from encore.models.config import EncoderConfig, Pooling, Projector, Similarity
from encore.models.encoder import Encoder, content
from encore.models.heads import projector

QUERY = "query_encoder."  # how the parameters of the query tower begin
PROJECTOR = "projector."  # and those of a projector that was trained before


class BowMlp(Encoder):
    """BoW-MLP: an encoder that knows a text's words but not their order (Chang et al., ICLR'20, section 4.2).

    The vector of a text is ``W2 tanh(W1 m + b1) + b2``, m being the mean of its word pieces' embeddings; special tokens
    are no words. The paper gives the parts and 128M parameters; 30,522 embeddings of 4,096, 512 inner and 512 outer
    dimensions are our reading of that (127.4M a tower). It makes and compares vectors as other encoders do, and has no
    states of tokens.

    ``hidden`` of its shape is the width of an embedding, ``intermediate`` that of the inner layer, ``head`` that of a
    vector.
    """

    def __init__(self, config: EncoderConfig) -> None:
        nn.Module.__init__(self)  # none of a transformer's parts
        self.config = config
        self.query_encoder = None
        self.words = nn.Embedding.from_pretrained(torch.randn(config.vocabulary, config.hidden), freeze=False)
        self.projector = nn.Identity()
        self.inner = nn.Linear(config.hidden, config.intermediate)
        self.head = nn.Linear(config.intermediate, config.dimension)

    @property
    def word_embeddings(self) -> Tensor:
        """The embeddings of all word pieces, [V, H]."""
        return self.words.weight

    @property
    def row_length(self) -> float:
        """Entries of deviation 1, as the random start has them: a mean of many would be nearly 0 otherwise."""
        return math.sqrt(self.config.hidden)

    def forward(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None = None) -> Tensor:
        """Refuse: a bag of words has no states of tokens."""
        raise EncoreError(
            "a bag of words (architecture bow-mlp) has no states of tokens, which this step learns from; "
            "pre-train it with ict, bfs, wlp or ict-bfs-wlp"
        )

    def representations(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None = None) -> Tensor:
        """The means [B, H] of the texts' pieces (Chang et al. 2020, section 4.2).

        Args:
            ids: int64 [B, L].
            mask, segments: not read; padding is known by its id.
        """
        counted = content(ids, self.config).to(self.words.weight.dtype)
        total = F.embedding_bag(ids, self.words.weight, mode="sum", per_sample_weights=counted)
        return total / counted.sum(1, keepdim=True).clamp(min=1)

    def vectors(self, pooled: Tensor) -> Tensor:
        """[B, H] -> [B, D]: the layers behind the mean; length 1 for cosine."""
        assert self.head is not None
        found: Tensor = self.head(torch.tanh(self.inner(pooled)))
        return F.normalize(found, dim=-1) if self.config.similarity == "cosine" else found


def build_encoder(config: EncoderConfig) -> Encoder:
    """A new encoder of a shape; with separate encoders, that of passages, which holds the one of queries."""
    kind = BowMlp if config.architecture == "bow-mlp" else Encoder
    encoder = kind(config)
    if config.encoders == "separate":
        encoder.query_encoder = kind(replace(config, encoders="shared"))
    return encoder


def separate_encoders(encoder: Encoder) -> Encoder:
    """Two towers, both with the weights of ``encoder``."""
    towers = build_encoder(replace(encoder.config, encoders="separate"))
    own = encoder.state_dict()
    towers.load_state_dict(own | {QUERY + name: tensor for name, tensor in own.items()})
    return towers


def query_tower_alone(encoder: Encoder) -> Encoder:
    """Two towers, of which that of queries can learn and that of passages cannot."""
    apart = encoder if encoder.query_encoder is not None else separate_encoders(encoder)
    apart.requires_grad_(False)
    apart.query_tower.requires_grad_(True)
    return apart


def project(encoder: Encoder, kind: Projector, heads: Mapping[str, Tensor], chance: int) -> None:
    """Give each tower of an encoder a projector, unless it has that one already or none is asked for.

    Args:
        heads: what was trained besides the encoder; a projector of this kind among them gives the weights, without one
            they are drawn.
        chance: the seed of what is drawn.
    """
    present = encoder.config.projector
    if kind in ("none", present):
        return
    if present != "none":
        raise EncoreError(
            f"the model has a {present} projector, the step wants a {kind} one; write `projector: {present}`"
        )
    torch.manual_seed(chance)
    made = projector(kind, encoder.config.hidden)
    trained = {name.removeprefix(PROJECTOR): tensor for name, tensor in heads.items() if name.startswith(PROJECTOR)}
    own = made.state_dict()
    if own.keys() == trained.keys() and all(tensor.shape == own[name].shape for name, tensor in trained.items()):
        made.load_state_dict(trained)
    for tower in {encoder, encoder.query_tower}:
        tower.projector = copy.deepcopy(made)
        tower.config = replace(tower.config, projector=kind)


def set_pooling_and_similarity(encoder: Encoder, pooling: Pooling | None, similarity: Similarity | None) -> None:
    """Change how each tower pools states to a vector and compares vectors; what is None stays."""
    for tower in {encoder, encoder.query_tower}:
        own = tower.config
        tower.config = replace(own, pooling=pooling or own.pooling, similarity=similarity or own.similarity)


def follow(encoder: Encoder, parent: Encoder) -> None:
    """After training: two towers that were one in the ``parent`` stay one if no query was read, as with MLM.

    A tower that embedded nothing has no gradient, so its weights are the parent's to the bit.
    """
    query, before = encoder.query_tower, passage_weights(parent)
    if _equal(before, parent.query_tower) and _equal(before, query):
        query.load_state_dict(passage_weights(encoder))


def passage_weights(encoder: Encoder) -> dict[str, Tensor]:
    """The weights of the passage tower."""
    return {name: tensor for name, tensor in encoder.state_dict().items() if not name.startswith(QUERY)}


def _equal(weights: dict[str, Tensor], tower: Encoder) -> bool:
    return all(torch.equal(weights[name], tensor.cpu()) for name, tensor in tower.state_dict().items())
