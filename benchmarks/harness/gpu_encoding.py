"""The part of ``gpu.py`` that encodes: passages to vectors on the disk, and texts next to sentence-transformers."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encore.data import vocabulary
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import checkpoint, embed
from encore.models.encoder import Encoder
from encore.retrieval.encode import CollectionShard, encode, write_shard
from encore.storage.sealed import SealedBlocks
from encore.training import machine as numerics
from harness import texts, timing
from harness.figures import rounded
from harness.gpu_training import VOCABULARY, Facts, setting_of
from harness.setting import device

LENGTH = 144  # of an encoded passage, as the papers read MS MARCO
SHARE = 4  # one passage of so many is encoded by the peer too
APART = 0.05  # that a number of a vector may be, over the largest: bf16 here, fp16 there
TURNS = 2


def encoding(sizes: Facts) -> Facts:
    """Passages of MS MARCO's lengths through an encoder of the papers' shape, in bf16 on a GPU.

    Raises:
        EncoreError: sentence-transformers gives other vectors.
    """
    setting = setting_of(sizes, LENGTH, full=False)
    numerics.prepare(setting.numerics())
    with tempfile.TemporaryDirectory() as place, numerics.precision(setting.numerics(), device()):
        folder = Path(place)
        store, _ = texts.write_judged(folder / "store", sizes["texts"] // 2, LENGTH, 32, VOCABULARY, full=False)
        torch.manual_seed(0)
        encoder = Encoder(setting.shape(LENGTH)).eval()
        checkpoint.save_model(encoder, {}, folder / "model", store.tokenizer_folder, length=LENGTH)
        encoder = encoder.to(device())
        list(encode(encoder, store.passages, CollectionShard(0, 50), LENGTH))  # to warm up
        seconds = timing.time_of(lambda: _to_disk(encoder, store, folder))
        compared = _compared(encoder, store, folder) if find_spec("sentence_transformers") else {}
        found = {"passages_per_second": len(store.passages) / seconds.wall, "host_cores": seconds.cpu / seconds.wall}
        return {name: rounded(value) for name, value in found.items()} | compared


def _to_disk(encoder: Encoder, store: TokenStore, folder: Path) -> None:
    """Vectors of all passages as the stage ``encode`` stores them in fp16."""
    blocks = encode(encoder, store.passages, CollectionShard(0, 1), LENGTH)
    written = SealedBlocks(folder / "state", "a benchmark")
    write_shard(folder, store.passages.names, encoder.dimension, blocks, written, "fp16")


def _compared(encoder: Encoder, store: TokenStore, folder: Path) -> Facts:
    """Texts a second here, and in fp16 by sentence-transformers, in turns."""
    from sentence_transformers import SentenceTransformer  # seconds that no other part should take

    kind = {"dtype": torch.float16 if device().type == "cuda" else torch.float32}
    peer = SentenceTransformer(str(folder / "model"), device=str(device()), model_kwargs=kind)
    written = texts.as_text(store.passages, store.pieces)[::SHARE]
    tokenizer = vocabulary.load_tokenizer(store.tokenizer_folder)

    def ours() -> np.ndarray:
        ids = texts.tokenised(written, tokenizer, folder / "again")
        return embed.embed_texts(encoder, ids, np.arange(len(ids)), LENGTH)

    def theirs() -> np.ndarray:
        with torch.autocast(device().type, enabled=False):
            return np.asarray(peer.encode(written, batch_size=256, show_progress_bar=False), dtype=np.float32)

    first, second = ours(), theirs()
    if np.abs(first - second).max() > APART * np.abs(second).max():
        raise EncoreError("sentence-transformers gives other vectors; report it as a bug")
    readings: dict[Any, list[timing.Seconds]] = {ours: [], theirs: []}
    for _ in range(TURNS):
        for way, taken in readings.items():
            taken.append(timing.time_of(way))
    own, other = (len(written) / timing.best(taken, "wall") for taken in readings.values())
    return {
        "texts_per_second": rounded(own),
        "sentence_transformers_per_second": rounded(other),
        "speed_of_sentence_transformers": rounded(own / other),
    }
