"""Encoding of passages next to sentence-transformers, on the processor; see README.md."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread, as all else here

from encore.storage.program import run

import numpy as np
import torch
from harness import comparison, figures, machine, record, texts
from harness.setting import SHAPES, Setting
from sentence_transformers import SentenceTransformer

from encore.data import vocabulary
from encore.data.tokens import Sequences
from encore.errors import EncoreError
from encore.models import checkpoint, embed
from encore.models.encoder import Encoder

STORED, FROM_TEXTS, PEER = "Encore, from its token store", "Encore, from texts", "sentence-transformers, batches of {}"
PEERS_BATCHES = (16, 32)  # 32 is what it takes by itself
APART = 1e-5  # that a number of a vector may be
FASTER, VOCABULARY = 1.3, 30522


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    before = machine.load()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        setting = Setting(options.model, VOCABULARY, options.length, 16, False, "fp32", 1, "cpu", options.turns, 1)
        store, _ = texts.write_judged(
            folder / "store", options.passages // 2, options.length, 32, VOCABULARY, full=False
        )
        written = texts.as_text(store.passages, store.pieces)
        torch.manual_seed(0)
        encoder = Encoder(setting.shape(options.length)).eval()
        checkpoint.save_model(encoder, {}, folder / "model", store.tokenizer_folder, length=options.length)
        tokenizer = vocabulary.load_tokenizer(store.tokenizer_folder)
        peer = SentenceTransformer(str(folder / "model"), device="cpu")
        ids = texts.tokenised(written, tokenizer, folder / "ids")
        ways: dict[str, Callable[[], np.ndarray]] = {
            PEER.format(batch): lambda batch=batch: peer.encode(written, batch_size=batch, show_progress_bar=False)
            for batch in PEERS_BATCHES
        }
        ways[FROM_TEXTS] = lambda: encoded(
            encoder, texts.tokenised(written, tokenizer, folder / "again"), options.length
        )
        ways[STORED] = lambda: encoded(encoder, ids, options.length)
        vectors, seconds = comparison.in_turns(ways, options.turns)
    apart = max(float(np.abs(found - vectors[STORED]).max()) for found in vectors.values())
    if apart > APART:
        raise EncoreError(f"vectors are {apart:g} apart; report it as a bug")
    best = min((name for name in ways if name.startswith("sentence")), key=seconds.__getitem__)
    rows = comparison.rows(seconds, options.passages, "passages", base=best)
    contents = {
        "setting": setting.to_json() | {"passages": options.passages},
        "agreement": f"numbers of all vectors are at most {apart:.0e} apart",
        "rows": rows,
        "goals": [
            figures.goal(
                "encoding from texts, speed relative to sentence-transformers",
                seconds[best] / seconds[FROM_TEXTS],
                FASTER,
            )
        ],
    }
    record.write(options.output, options.name, contents, before, ("sentence-transformers",))
    print("\n".join([*record.table(rows), contents["agreement"]]))


def encoded(encoder: Encoder, sequences: Sequences, length: int) -> np.ndarray:
    """The vectors of all texts."""
    return embed.embed_texts(encoder, sequences, np.arange(len(sequences)), length)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=SHAPES, default="mini")
    parser.add_argument("--passages", type=int, default=1024)
    parser.add_argument("--length", type=int, default=144, help="tokens of the longest, [CLS] and [SEP] included")
    parser.add_argument("--turns", type=int, default=3, help="of which the best counts")
    record.add_flags(parser, "encoding")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
