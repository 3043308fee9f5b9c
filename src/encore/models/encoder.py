"""A compact BERT whose parameters are named as Hugging Face's ``BertModel`` names them, and the vector of a text.

Architecture: Devlin et al. (2019), post-norm layers, exact GELU, learned positions. Attention runs through PyTorch's
own kernels; ``packing.py`` says which, and how a batch of texts of different lengths is laid out in memory.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encore.errors import EncoreError
from encore.models.config import EncoderConfig
from encore.models.heads import projector
from encore.models.packing import Layout, Visible, attend, layout
from encore.models.residual import branch, rejoin
from encore.models.transfer import to_device


class Embeddings(nn.Module):
    """Sum of word, position and segment embeddings, normalised."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.word_embeddings = _rows(config.vocabulary, config.hidden, padding=config.pad)
        self.position_embeddings = _rows(config.max_length, config.hidden)
        self.token_type_embeddings = _rows(config.segments, config.hidden)
        self.LayerNorm = nn.LayerNorm(config.hidden, eps=config.epsilon)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: Tensor, segments: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """ids int64 [B, L] -> [B, L, H], or [T] -> [T, H] with the ``positions`` [T].

        Without ``segments`` (of the shape of ``ids``) all tokens are of segment 0; without ``positions`` a row's tokens
        have the positions 0 to L - 1.
        """
        kinds = self.token_type_embeddings.weight[0] if segments is None else self.token_type_embeddings(segments)
        first = self.position_embeddings.weight[: ids.shape[-1]]
        places = first if positions is None else self.position_embeddings(positions)
        total = self.word_embeddings(ids) + (places + kinds)
        normed: Tensor = self.dropout(self.LayerNorm(total))
        return normed


class SelfAttention(nn.Module):
    """Queries, keys and values of all heads, and their attention."""

    joined: Tensor | None  # weight [3H, H] of all three, where one product does
    joined_bias: Tensor | None  # [3H]

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads, self.rate = config.heads, config.dropout
        self.query = nn.Linear(config.hidden, config.hidden)
        self.key = nn.Linear(config.hidden, config.hidden)
        self.value = nn.Linear(config.hidden, config.hidden)
        for name in ("joined", "joined_bias"):
            self.register_parameter(name, None)

    def forward(self, states: Tensor, hidden: Tensor, visible: Visible) -> tuple[Tensor, Tensor]:
        """``states`` [..., H] look at ``hidden`` -> [..., H], and the states; ``visible`` as in ``packing.attend``."""
        weight, bias, width = self.joined, self.joined_bias, states.shape[-1]
        if weight is None or bias is None:
            query, key, value = self.query(states), self.key(hidden), self.value(hidden)
        elif states is hidden:
            mapped, states = branch(states, weight, bias)
            query, key, value = mapped.chunk(3, -1)
        else:
            query = F.linear(states, weight[:width], bias[:width])
            key, value = F.linear(hidden, weight[width:], bias[width:]).chunk(2, -1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)) for part in (query, key, value))
        return attend(query, key, value, visible, self.rate if self.training else 0.0).flatten(-2), states


class Output(nn.Module):
    """A linear map, added to what the sublayer was given, normalised."""

    def __init__(self, width: int, config: EncoderConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(width, config.hidden)
        self.LayerNorm = nn.LayerNorm(config.hidden, eps=config.epsilon)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, residual: Tensor) -> Tensor:
        """states [..., width], residual [..., H] -> [..., H]."""
        rate = self.dropout.p if self.training else 0.0
        normed: Tensor = self.LayerNorm(rejoin(residual, states, self.dense, rate=rate))
        return normed


class Attention(nn.Module):
    """BERT's attention sublayer: self-attention, then the output map, residual and LayerNorm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.self = SelfAttention(config)
        self.output = Output(config.hidden, config)

    def forward(self, states: Tensor, hidden: Tensor, visible: Visible) -> Tensor:
        """``states`` [..., H] look at ``hidden`` -> [..., H]; ``visible`` as in ``packing.attend``."""
        attended: Tensor = self.output(*self.self(states, hidden, visible))
        return attended


class Intermediate(nn.Module):
    """The inner linear map of the feed-forward network, and GELU."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.intermediate)

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """hidden [..., H] -> [..., I], I the width of the feed-forward network, and hidden."""
        mapped, hidden = branch(hidden, self.dense.weight, self.dense.bias)
        return F.gelu(mapped), hidden


class Layer(nn.Module):
    """Attention, then the feed-forward network."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Intermediate(config)
        self.output = Output(config.intermediate, config)

    def forward(self, states: Tensor, hidden: Tensor, visible: Visible = None) -> Tensor:
        """The next states of some tokens.

        Args:
            states: [B, Q, H], of the tokens; packed, [T, H], or [B, H] of the first.
            hidden: [B, L, H], all that they may look at; packed, [T, H].
            visible: as in ``packing.attend``.

        Returns:
            As ``states``.
        """
        attended = self.attention(states, hidden, visible)
        transformed: Tensor = self.output(*self.intermediate(attended))
        return transformed


class Stack(nn.Module):
    """The encoder's layers, one after another."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.layers))

    def forward(self, hidden: Tensor, visible: Visible) -> Tensor:
        """hidden [..., H] -> [..., H], the last layer's states; ``visible`` as in ``packing.attend``."""
        hidden = self.before_last(hidden, visible)
        states: Tensor = self.layer[-1](hidden, hidden, visible)
        return states

    def before_last(self, hidden: Tensor, visible: Visible) -> Tensor:
        """hidden [..., H] -> [..., H], the states that the last layer reads."""
        *layers, _ = self.layer
        for layer in layers:
            hidden = layer(hidden, hidden, visible)
        return hidden

    def first(self, hidden: Tensor, texts: Layout) -> Tensor:
        """The last layer's states of only the first tokens, [B, H]; no other is computed there."""
        hidden = self.before_last(hidden, texts.visible)
        states: Tensor = self.layer[-1](texts.first(hidden), hidden, texts.visible_to_first)
        return states.flatten(0, -2)


class Encoder(nn.Module):
    """BERT without its pooler, and with the pooling, projector, head and normalisation that make a text's vector.

    All parameters but ``projector.*`` and ``head.*`` have the names of Hugging Face's ``BertModel``.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = Stack(config)
        self.projector = projector(config.projector, config.hidden)
        self.head = nn.Linear(config.hidden, config.projection_dim) if config.projection_dim else None
        self.query_encoder: Encoder | None = None  # of two towers; this is then the one of passages

    @property
    def dimension(self) -> int:
        """Numbers in a text's vector."""
        return self.config.dimension

    @property
    def query_tower(self) -> "Encoder":
        """The encoder of queries: the encoder itself, unless it has a second tower for them."""
        return self if self.query_encoder is None else self.query_encoder

    @property
    def word_embeddings(self) -> Tensor:
        """The embeddings of all word pieces, [V, H], which prediction heads share."""
        return self.embeddings.word_embeddings.weight

    @property
    def row_length(self) -> float:
        """Length of a word embedding that a start gives."""
        return 1.0

    def forward(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None = None) -> Tensor:
        """Contextual states of all tokens.

        Args:
            ids: int64 [B, L].
            mask: bool [B, L], true at real tokens, of which every row has one; None when all are real. On the host it
                spares a wait for the device.
            segments: int64 [B, L]; None when all tokens are of segment 0.

        Returns:
            [B, L, H]; states at padding mean nothing.
        """
        texts, embedded = self._embedded(ids, mask, segments)
        return texts.spread(self.encoder(embedded, texts.visible))

    def early_and_late(self, ids: Tensor, mask: Tensor | None, early: int | None = None) -> tuple[Tensor, Tensor]:
        """The states of all tokens behind a layer and behind the last, [B, L, H] each; arguments as in ``forward``.

        Args:
            early: the number of layers before the early states; half of the layers, rounded down, if None.
        """
        early = self.config.layers // 2 if early is None else early
        if early > self.config.layers:
            raise EncoreError(f"`early_layers` is {early}, and the encoder has {self.config.layers} layers; lower it")
        texts, hidden = self._embedded(ids, mask, None)
        states = [hidden]
        for layer in self.encoder.layer:
            states.append(layer(states[-1], states[-1], texts.visible))
        return texts.spread(states[early]), texts.spread(states[-1])

    def embed(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None = None) -> Tensor:
        """Vectors [B, D] of texts; arguments as in ``forward``."""
        return self.vectors(self.representations(ids, mask, segments))

    def joined(self, parts: list[tuple[Tensor, ...]]) -> list[tuple[Tensor, ...]]:
        """Texts in parts of like length as they are read fastest: as one part on a GPU, where no padding is read.

        With few texts a GPU ends an operation before its host has begun the next.

        Args:
            parts: of each the arguments of ``forward``.
        """
        if parts[0][0].device.type == "cpu":
            return parts
        longest, fillings = max(ids.shape[1] for ids, *_ in parts), (self.config.pad, 0, 0)
        return [
            tuple(
                torch.cat([F.pad(part, (0, longest - part.shape[1]), value=filling) for part in column])
                for column, filling in zip(zip(*parts, strict=True), fillings, strict=False)
            )
        ]

    def representations(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None = None) -> Tensor:
        """The pooled states of texts, [B, H]; arguments as in ``forward``.

        For the state at [CLS] the last layer computes no other, which saves half the time of an encoder of two layers,
        and 7 % of one of twelve.
        """
        if self.config.pooling != "cls":
            return self.pooled(self(ids, mask, segments), ids, mask)
        texts, embedded = self._embedded(ids, mask, segments)
        return self.encoder.first(embedded, texts)

    def pool(self, hidden: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Vectors [B, D] of texts from their states; arguments as in ``pooled``."""
        return self.vectors(self.pooled(hidden, ids, mask))

    def vectors(self, pooled: Tensor) -> Tensor:
        """Representations [B, H] -> vectors [B, D]: projector and head; length 1 for cosine."""
        found: Tensor = self.projector(pooled)
        if self.head is not None:
            found = self.head(found)
        return F.normalize(found, dim=-1) if self.config.similarity == "cosine" else found

    def pooled(self, hidden: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Only the pooling, without projector, head and normalisation.

        Args:
            hidden: [B, L, H], the states of ``forward``.
            ids: int64 [B, L].
            mask: bool [B, L], true at real tokens; None when all are real.

        Returns:
            [B, H].
        """
        if self.config.pooling == "cls":
            return hidden[:, 0]
        if self.config.pooling == "content":
            mask = content(ids, self.config)
        return hidden.mean(1) if mask is None else mean(hidden, mask)

    def _embedded(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None) -> tuple[Layout, Tensor]:
        """The layout of the texts in memory, and their embeddings in it."""
        if ids.shape[1] > self.config.max_length:
            raise EncoreError(
                f"texts of {ids.shape[1]} tokens are too long for an encoder of {self.config.max_length} positions; "
                "lower the step's `length` or take a backbone with a larger `max_length`"
            )
        texts = layout(mask, ids.device)
        kinds = None if segments is None else texts.take(segments)
        return texts, self.embeddings(texts.take(ids), kinds, texts.positions)


def content(ids: Tensor, config: EncoderConfig) -> Tensor:
    """True for tokens of a text's content: neither [CLS], a marker, [SEP] nor padding; a query's augmentation counts.

    Args:
        ids: int64 [B, L].

    Returns:
        bool [B, L].
    """
    inside = torch.arange(ids.shape[-1], device=ids.device) >= config.prefix
    return (ids != config.cls) & (ids != config.sep) & (ids != config.pad) & inside


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Mean of the states [B, L, H] where ``mask`` [B, L] is true: [B, H]; zero where it nowhere is."""
    weights = to_device(mask, hidden.device).to(hidden.dtype)
    with torch.autocast(hidden.device.type, enabled=False):  # which would round the sum to half precision
        total = torch.einsum("blh,bl->bh", hidden, weights)
    return total / weights.sum(1, keepdim=True).clamp(min=1)


def _rows(count: int, width: int, padding: int | None = None) -> nn.Embedding:
    """An embedding of normal rows.

    ``nn.Embedding`` draws the same, but where nothing is to be drawn, on the meta device, torch imports its compiler to
    do so, which takes longer than encoding a thousand texts.
    """
    rows = torch.empty(count, width)
    return nn.Embedding.from_pretrained(rows if rows.is_meta else rows.normal_(), freeze=False, padding_idx=padding)
