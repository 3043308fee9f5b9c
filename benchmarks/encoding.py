"""Encoding of passages next to sentence-transformers, on the processor; see README.md."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread, as all else here

from encore.storage.program import run

import numpy as np
import torch
from harness import comparison, figures, machine, record, texts, timing
from harness.setting import SHAPES, Setting
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from encore.data import vocabulary
from encore.data.tokens import Sequences
from encore.errors import EncoreError
from encore.models import checkpoint, embed, flops
from encore.models.encoder import Encoder

STORED, FROM_TEXTS, PEER = "Encore, from its token store", "Encore, from texts", "sentence-transformers, batches of {}"
PEERS_BATCHES = (16, 32)  # 32 is what it takes by itself
APART = 1e-5  # that a number of a vector may be
VOCABULARY = 30522
MISSING = [name for name in ("onnx", "onnxruntime", "openvino") if not find_spec(name)]  # of two more peers
# Tokens of the longest text, [CLS] and [SEP] included; whether all are so long; the speed that is asked for.
TEXTS = {"queries": (16, False, None), "passages": (144, False, 1.5), "abstracts": (256, True, 1.15)}


def main() -> None:
    """Measure each kind of texts, print and record."""
    options = _options()
    torch.set_num_threads(1)
    before, peak = machine.load(), timing.peak("cpu", "fp32")
    parts = [measured(kind, options, peak) for kind in options.texts]
    setting = {"model": options.model, **SHAPES[options.model], "vocabulary": VOCABULARY, "peak_gflops": peak / 1e9}
    contents = {
        "setting": setting | {"precision": "fp32", "threads": 1, "texts": options.count, "turns": options.turns},
        "agreement": f"numbers of all vectors are at most {max(part.pop('apart') for part in parts):.0e} apart",
        "parts": parts,
        "goals": [goal for part in parts for goal in part.pop("goals")],
    }
    if MISSING:
        contents["left_out"] = [f"ONNX Runtime and OpenVINO, which need {' and '.join(MISSING)}"]
    installed = ("sentence-transformers", *(() if MISSING else ("onnxruntime", "openvino")))
    record.write(options.output, options.name, contents, before, installed)
    for part in parts:
        print("\n".join([f"{part['texts']}:", *record.table(part["rows"])]))
    print(contents["agreement"])


def measured(kind: str, options: argparse.Namespace, peak: float) -> dict[str, Any]:
    """Texts of a kind in every way.

    Raises:
        EncoreError: the ways' vectors differ.
    """
    length, full, aim = TEXTS[kind]
    setting = Setting(options.model, VOCABULARY, length, 16, full, "fp32", 1, "cpu", options.turns, 1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        store, _ = texts.write_judged(folder / "store", options.count // 2, length, 32, VOCABULARY, full)
        written = texts.as_text(store.passages, store.pieces)
        torch.manual_seed(0)
        encoder = Encoder(setting.shape(length)).eval()
        checkpoint.save_model(encoder, {}, folder / "model", store.tokenizer_folder, length=length)
        tokenizer = vocabulary.load_tokenizer(store.tokenizer_folder)
        ids = texts.tokenised(written, tokenizer, folder / "ids")
        ways = peers(folder / "model", written, tokenizer, length, store.special.pad)
        ways[FROM_TEXTS] = lambda: encoded(encoder, texts.tokenised(written, tokenizer, folder / "again"), length)
        ways[STORED] = lambda: encoded(encoder, ids, length)
        vectors, seconds = comparison.in_turns(ways, options.turns)
    apart = max(float(np.abs(found - vectors[STORED]).max()) for found in vectors.values())
    if apart > APART:
        raise EncoreError(f"vectors are {apart:g} apart; report it as a bug")
    best = min((name for name in ways if name.startswith("sentence")), key=seconds.__getitem__)
    operations = sum(flops.embedding(encoder.config, 1, min(size + 2, length)) for size in ids.lengths.tolist())
    rows = comparison.rows(seconds, options.count, "texts", base=best)
    for row in rows:
        row["share_of_peak"] = figures.rounded(timing.utilisation(operations, row["cpu_seconds"], peak))
    what = f"encoding of {kind} from texts, {options.model}, speed relative to sentence-transformers"
    goals = [figures.goal(what, seconds[best] / seconds[FROM_TEXTS], aim)] if aim else []
    mean = figures.rounded(float(ids.lengths.mean()) + 2)
    return {"texts": f"{kind}, {mean} tokens in the mean", "rows": rows, "apart": apart, "goals": goals}


def peers(
    folder: Path, written: list[str], tokenizer: Tokenizer, length: int, pad: int
) -> dict[str, Callable[[], np.ndarray]]:
    """The ways of others, by name, from texts; each on one thread."""
    model = SentenceTransformer(str(folder), device="cpu")
    ways: dict[str, Callable[[], np.ndarray]] = {
        PEER.format(batch): lambda batch=batch: model.encode(written, batch_size=batch, show_progress_bar=False)
        for batch in PEERS_BATCHES
    }
    if MISSING:
        return ways
    from harness import exported

    exported.write_graph(model, folder / "model.onnx")
    for name, graph in exported.opened(folder / "model.onnx").items():
        ways[name] = lambda graph=graph: exported.encoded(graph, written, tokenizer, length, pad)
    return ways


def encoded(encoder: Encoder, sequences: Sequences, length: int) -> np.ndarray:
    """The vectors of all texts."""
    return embed.embed_texts(encoder, sequences, np.arange(len(sequences)), length)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=SHAPES, default="minilm")
    parser.add_argument("--texts", choices=TEXTS, nargs="+", default=list(TEXTS))
    parser.add_argument("--count", type=int, default=64, help="of the texts of each kind")
    parser.add_argument("--turns", type=int, default=3, help="of which the best counts")
    record.add_flags(parser, "encoding")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
