"""The attention of a model's [CLS] to each text of a collection, block by block: a separate artifact.

A GPU is used if there is one. A written block is not computed again after an interruption, and several processes
share the blocks. On CPU one thread in fp32 gives equal bytes. On a GPU, in fp32 too and without TF32, attention is the
same to about 1e-4 of itself, as it is when a text is batched with others.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from encore.config.validation import Positive
from encore.models.inputs import pad
from encore.objectives.parts.chunks import Blocks, PackingFields, text_chunks
from encore.storage import sealed

if TYPE_CHECKING:
    from torch import Tensor

    from encore.data.tokens import TokenStore
    from encore.models.encoder import Encoder

TOGETHER = 64  # texts that the model reads at once, those of like length
NUMERICS = {"precision": "fp32", "threads": 1}


class AttendedTexts(PackingFields):
    """The texts of a collection that are read: all, however short."""

    length: Positive


class Attention:
    """Attention to the pieces of texts, by block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, block: int) -> Path:
        """The file of a block."""
        return self._folder / f"attention-{block:06d}.f4"

    def of(self, block: int) -> np.ndarray:
        """The attention to each piece of the block's texts, one after another, float32."""
        return np.frombuffer(sealed.read(self.path(block)), dtype="<f4")


def attend(texts: AttendedTexts, store: TokenStore, weights: Path, output: Path, state: Path) -> dict[str, int]:
    """Read texts with a model and write its attention to them; of several processes each reads some blocks.

    Args:
        weights: the model's folder.
        output: the folder of the blocks, once all are read; the first process moves them there.
        state: the folder of the blocks that are read so far, for the caller to remove.

    Returns:
        Counts for the manifest.
    """
    from encore.training import distributed, machine

    chunks, usable = text_chunks(store, texts.length, texts)
    blocks, read = Blocks(chunks, usable), Attention(state)
    device = machine.prepare(NUMERICS)
    with distributed.process_group(device) as group:
        _read(read, weights, blocks, range(group.rank, len(blocks), group.size), texts.length, device)
    if group.lead:
        output.mkdir(parents=True, exist_ok=True)
        for number in range(len(blocks)):
            shutil.move(read.path(number), Attention(output).path(number))  # over files of an earlier attempt
    return {"texts": len(usable), "pieces": int(chunks.lengths[usable].sum()), "blocks": len(blocks)}


def _read(attention: Attention, weights: Path, blocks: Blocks, mine: range, length: int, device: Any) -> None:
    from encore.models import checkpoint

    missing = [number for number in mine if not sealed.is_whole(attention.path(number))]
    if not missing:
        return
    encoder = checkpoint.load_encoder(weights).to(device).eval()
    for number in missing:
        values = np.concatenate(text_attention(encoder, blocks[number].texts, length))
        sealed.write(attention.path(number), values.astype("<f4").tobytes())
        print(f"block {number + 1} of {len(blocks)}: the model has read it", flush=True)


def text_attention(encoder: Encoder, sequences: list[np.ndarray], length: int) -> list[np.ndarray]:
    """Attention of [CLS] to each piece of each text, float32."""
    import torch

    from encore.models.memory import MicroBatch, PartSize

    device = next(encoder.parameters()).device
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    order = np.argsort(lengths, kind="stable")
    found: list[np.ndarray] = [np.zeros(0, dtype=np.float32)] * len(sequences)

    def read(part: range) -> None:
        rows = order[part]
        ids, mask = pad([sequences[row] for row in rows], length, encoder.config)
        inputs = [torch.from_numpy(array).to(device) for array in (ids, mask)]
        attention = cls_attention(encoder, *inputs).float().cpu().numpy()
        for row, values in zip(rows, attention, strict=True):
            found[row] = values[1 : 1 + len(sequences[row])].copy()  # a view would keep the batch in memory

    with torch.inference_mode():
        MicroBatch(PartSize(TOGETHER)).each(read, lengths[order])
    return found


def cls_attention(encoder: Encoder, ids: Tensor, mask: Tensor) -> Tensor:
    """Probabilities [B, L] with which [CLS] attends to each token in the last layer, averaged over the heads."""
    import torch

    visible = mask[:, None, None, :]
    states = encoder.encoder.before_last(encoder.embeddings(ids), visible)
    last: Any = encoder.encoder.layer[-1]
    attention = last.attention.self
    query = attention.query(states[:, :1]).unflatten(-1, (attention.heads, -1)).transpose(1, 2)
    key = attention.key(states).unflatten(-1, (attention.heads, -1)).transpose(1, 2)
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    probabilities = torch.softmax(scores.masked_fill(~visible, float("-inf")), dim=-1)
    return probabilities.mean(dim=1)[:, 0]
