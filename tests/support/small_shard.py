"""A shard of given vectors, or of a model's."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from encore.retrieval import encode
from encore.storage.manifest import MANIFEST, record
from encore.storage.sealed import SealedBlocks


def write_shard(
    folder: Path, documents: Sequence[str], dimension: int, blocks: Iterable[np.ndarray], precision: str = "fp32"
) -> None:
    """Write a shard from its first vector to its last."""
    with tempfile.TemporaryDirectory() as state:
        written = SealedBlocks(Path(state) / "index", "these vectors")
        encode.write_shard(folder, documents, dimension, blocks, written, precision)


def encode_all(spec: dict[str, Any], model: Path, tokens: Path, folder: Path) -> None:
    """Encode a collection in one shard, with a model and tokens that a test made without their programs."""
    for made in (model, tokens):
        if not (made / MANIFEST).is_file():
            with record(made, stage="start", spec={}, inputs=[]):
                pass
    with tempfile.TemporaryDirectory() as state:
        encode.make_shard(encode.Encoding(**spec), model, tokens, "000-of-001", folder, Path(state))
