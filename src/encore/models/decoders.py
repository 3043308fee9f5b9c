"""Decoders that rebuild a text from its representation; used in pre-training only.

All attention runs through ``scaled_dot_product_attention`` with boolean masks (true: seen) that are built here. Every
row of a mask sees something, rows of padding too, so that nothing turns into NaN.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encore.models.config import EncoderConfig
from encore.models.heads import STANDARD_DEVIATION, initialise
from encore.models.transfer import to_device

SEED_EPSILON = 1e-5  # of SEED-Encoder's layer norms; the other decoders have BERT's


class Attention(nn.Module):
    """Multi-head attention of some states to others, with its output map."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads, self.rate = config.heads, config.dropout
        self.query, self.key, self.value, self.output = (nn.Linear(config.hidden, config.hidden) for _ in range(4))

    def forward(self, queries: Tensor, states: Tensor, seen: Tensor) -> Tensor:
        """queries [B, Q, H], states [B, L, H], seen bool broadcast to [B, heads, Q, L] -> [B, Q, H]."""
        query, key, value = (
            part(inputs).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part, inputs in ((self.query, queries), (self.key, states), (self.value, states))
        )
        rate = self.rate if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=seen, dropout_p=rate)
        out: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return out


class FeedForward(nn.Module):
    """Two linear maps with GELU between them."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.hidden, config.intermediate)
        self.outer = nn.Linear(config.intermediate, config.hidden)

    def forward(self, states: Tensor) -> Tensor:
        """States [..., H] -> [..., H]."""
        out: Tensor = self.outer(F.gelu(self.inner(states)))
        return out


class PostNormLayer(nn.Module):
    """BERT's layer, the queries of which may be other states than the keys and values."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(config.hidden, eps=config.epsilon)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.hidden, eps=config.epsilon)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, queries: Tensor, states: Tensor, seen: Tensor, residual: Tensor | None) -> Tensor:
        """Attend from some states to others, then transform each.

        Args:
            queries: [B, Q, H].
            states: [B, L, H], the keys and values.
            seen: bool, broadcast to [B, heads, Q, L].
            residual: [B, Q, H], added to what attention gives: in BERT, the queries; None for nothing.

        Returns:
            [B, Q, H].
        """
        attended = self.dropout(self.attention(queries, states, seen))
        attended = self.attention_norm(attended if residual is None else residual + attended)
        out: Tensor = self.feed_forward_norm(attended + self.dropout(self.feed_forward(attended)))
        return out


class PreNormLayer(nn.Module):
    """GPT-2's layer: each sublayer normalises what it reads and adds to it."""

    def __init__(self, config: EncoderConfig, epsilon: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.hidden, eps=epsilon)
        self.attention = Attention(config)
        self.feed_forward_norm = nn.LayerNorm(config.hidden, eps=epsilon)
        self.feed_forward = FeedForward(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, seen: Tensor, recalled: Tensor | None = None) -> Tensor:
        """Attend to the states themselves, then transform each.

        Args:
            states: [B, L, H].
            seen: bool, broadcast to [B, heads, L, L].
            recalled: [B, L, H], what cross-attention adds between the sublayers; None for nothing.

        Returns:
            [B, L, H].
        """
        normed = self.attention_norm(states)
        states = states + self.dropout(self.attention(normed, normed, seen))
        if recalled is not None:
            states = states + recalled
        out: Tensor = states + self.dropout(self.feed_forward(self.feed_forward_norm(states)))
        return out


class Memory(nn.Module):
    """Cross-attention to a memory of one state.

    A softmax over one key is 1: what the queries and the key are changes nothing and moves no gradient, so there are
    none, nor the norm in front of them. Dropout takes the state from a position's head, as it would with them.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads, self.rate = config.heads, config.dropout
        self.value, self.output = (nn.Linear(config.hidden, config.hidden) for _ in range(2))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, memory: Tensor, length: int) -> Tensor:
        """memory [B, H] -> [B, length, H], what every position adds to itself."""
        value = self.value(memory)[:, None]
        if self.training and self.rate:
            weights = F.dropout(value.new_ones(len(memory), length, self.heads, 1), self.rate)
            value = (weights * value.unflatten(-1, (self.heads, -1))).flatten(2)
        out: Tensor = self.dropout(self.output(value).expand(-1, length, -1))
        return out


class AutoEncodingDecoder(nn.Module):
    """BERT layers over ``[h, emb(t)_1, ...]``, attention in both directions (the BoW paper's released code)."""

    def __init__(self, config: EncoderConfig, layers: int) -> None:
        super().__init__()
        self.layer = nn.ModuleList(PostNormLayer(config) for _ in range(layers))
        initialise(self)

    def forward(self, h: Tensor, embedded: Tensor, mask: Tensor) -> Tensor:
        """h [B, H], embedded masked text [B, L, H], mask bool [B, L], true at real tokens -> [B, L, H]."""
        states, seen = with_bottleneck(h, embedded), to_device(mask, h.device)[:, None, None, :]
        for layer in self.layer:
            states = layer(states, states, seen, residual=states)
        return states


class AutoRegressionDecoder(nn.Module):
    """GPT-2 layers over ``[h, emb(t)_1, ...]``, dropout before and LayerNorm after (the BoW paper's released code)."""

    def __init__(self, config: EncoderConfig, layers: int) -> None:
        super().__init__()
        self.layer = nn.ModuleList(PreNormLayer(config, config.epsilon) for _ in range(layers))
        self.norm = nn.LayerNorm(config.hidden, eps=config.epsilon)
        self.dropout = nn.Dropout(config.dropout)
        initialise(self)
        for name, weight in self.named_parameters():
            if name.endswith(("output.weight", "outer.weight")):  # GPT-2: what is added starts smaller in deep stacks
                nn.init.normal_(weight, std=STANDARD_DEVIATION / math.sqrt(2 * layers))

    def forward(self, h: Tensor, embedded: Tensor, seen: Tensor) -> Tensor:
        """h [B, H], embedded text [B, L, H], seen bool [L, L] of ``causal`` -> [B, L, H]."""
        states = self.dropout(with_bottleneck(h, embedded))
        for layer in self.layer:
            states = layer(states, seen)
        normed: Tensor = self.norm(states)
        return normed


class SeedDecoder(nn.Module):
    """SEED-Encoder's weak decoder: pre-norm layers that see few tokens, and h through cross-attention.

    It has its own positions; the words' embeddings, also for the output, are the encoder's. Released settings
    (microsoft/SEED-Encoder): 3 layers, the hidden size of the encoder, an embedding norm and a last norm.
    """

    def __init__(self, config: EncoderConfig, layers: int) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(config.max_length, config.hidden) * STANDARD_DEVIATION)
        self.embedding_norm = nn.LayerNorm(config.hidden, eps=SEED_EPSILON)
        self.layer = nn.ModuleList(PreNormLayer(config, SEED_EPSILON) for _ in range(layers))
        self.memory = nn.ModuleList(Memory(config) for _ in range(layers))
        self.norm = nn.LayerNorm(config.hidden, eps=SEED_EPSILON)
        self.dropout = nn.Dropout(config.dropout)
        initialise(self)

    def forward(self, h: Tensor, words: Tensor, seen: Tensor) -> Tensor:
        """h [B, H], word embeddings of the text [B, L, H], seen bool [L, L] of ``causal`` -> [B, L, H]."""
        length = words.shape[1]
        states = self.dropout(self.embedding_norm(words + self.positions[:length]))
        for layer, memory in zip(self.layer, self.memory, strict=True):
            states = layer(states, seen, memory(h, length))
        normed: Tensor = self.norm(states)
        return normed


class EnhancedDecoder(nn.Module):
    """RetroMAE's decoder: one layer; each position asks for its token by only h and its place (Eq. 8 and 9)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.layer = PostNormLayer(config)
        initialise(self)

    def forward(
        self, h: Tensor, positions: Tensor, embedded: Tensor, seen: Tensor, query_residual: bool = True
    ) -> Tensor:
        """The rebuilt state of each position.

        Args:
            h: [B, H].
            positions: [L, H], the encoder's position embeddings.
            embedded: [B, L, H], the unmasked text.
            seen: bool [B, L, L] of ``word_masks.visible``.
            query_residual: the queries are added to what attention gives (released code), or not (Eq. 9).

        Returns:
            [B, L, H].
        """
        queries = h[:, None] + positions
        residual = queries if query_residual else None
        states: Tensor = self.layer(queries, with_bottleneck(h, embedded), seen[:, None], residual)
        return states


def with_bottleneck(h: Tensor, embedded: Tensor) -> Tensor:
    """Put the representation h [B, H] in the place of [CLS]: embedded text [B, L, H] -> [B, L, H]."""
    return torch.cat([h[:, None].to(embedded.dtype), embedded[:, 1:]], dim=1)


def causal(length: int, window: int | None, device: torch.device) -> Tensor:
    """bool [L, L]: a position sees itself, those before it, and position 0; with a window, of those the last few.

    Padding is at the end, where no real position looks.

    Args:
        window: how many of the last positions are seen, the position itself among them; None for all.
    """
    place = torch.arange(length, device=device)
    back = place[:, None] - place
    near = back >= 0 if window is None else (back >= 0) & (back < window)
    return near | (place == 0)
