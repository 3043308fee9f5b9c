"""Encoding of passages next to sentence-transformers, on the processor; see README.md."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
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
from encore.training import machine as training_machine

STORED, FROM_TEXTS, PEER = "Encore, from its token store", "Encore, from texts", "sentence-transformers, batches of {}"
# As under `numerics: {precision: bf16}`, for sentence-transformers by the same autocast of torch.
BF16, PEER_IN_BF16 = "Encore, from texts, in bf16", f"{PEER.format(16)}, in bf16"
ROUNDED = (BF16, PEER_IN_BF16)
PEERS_BATCHES = (16, 32)  # 32 is what it takes by itself
APART, APART_IN_BF16 = 1e-5, 0.02  # that a number of a vector may be from that of the stored tokens
VOCABULARY = 30522
MISSING = [name for name in ("onnx", "onnxruntime", "openvino") if not find_spec(name)]  # of two more peers
# Tokens of the longest text, [CLS] and [SEP] included; whether all are so long; the speed that is asked for; how many
# are encoded: more where lengths differ, so that neither batches nor a program's start decide.
TEXTS = {"queries": (16, False, None, 512), "passages": (144, False, 1.5, 512), "abstracts": (256, True, 1.15, 64)}


def main() -> None:
    """Measure each kind of texts, print and record."""
    options = _options()
    torch.set_num_threads(1)
    before, peaks = machine.load(), {precision: timing.peak("cpu", precision) for precision in precisions()}
    parts = [measured(kind, options, peaks) for kind in options.texts]
    setting = {"model": options.model, **SHAPES[options.model], "vocabulary": VOCABULARY}
    setting |= {f"peak_gflops_{precision}": peak / 1e9 for precision, peak in peaks.items()}
    contents = {
        "setting": setting | {"threads": 1, "texts": counts_of(options), "turns": options.turns},
        "agreement": agreement([part.pop("apart") for part in parts]),
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


def counts_of(options: argparse.Namespace) -> str:
    """How many texts of each kind are encoded, in words."""
    return ", ".join(f"{options.count or TEXTS[kind][-1]} {kind}" for kind in options.texts)


def precisions() -> list[str]:
    """Those in which the processor multiplies by itself: an older one only imitates bf16, slowly."""
    return ["fp32", "bf16"] if "avx512_bf16" in Path("/proc/cpuinfo").read_text() else ["fp32"]


def agreement(apart: list[dict[str, float]]) -> str:
    """How far numbers of vectors are from those of the stored tokens, in all parts."""
    exact = max(far for part in apart for name, far in part.items() if name not in ROUNDED)
    rounded = [far for part in apart for name, far in part.items() if name in ROUNDED]
    return f"numbers of all vectors are at most {exact:.0e} apart" + (
        f", in bf16 {max(rounded):.0e}" if rounded else ""
    )


def measured(kind: str, options: argparse.Namespace, peaks: dict[str, float]) -> dict[str, Any]:
    """Texts of a kind in every way.

    Raises:
        EncoreError: the ways' vectors differ.
    """
    length, full, aim, usual = TEXTS[kind]
    count = options.count or usual
    setting = Setting(options.model, VOCABULARY, length, 16, full, "fp32", 1, "cpu", options.turns, 1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        store, _ = texts.write_judged(folder / "store", count // 2, length, 32, VOCABULARY, full)
        written = texts.as_text(store.passages, store.pieces)
        torch.manual_seed(0)
        encoder = Encoder(setting.shape(length)).eval()
        checkpoint.save_model(encoder, {}, folder / "model", store.tokenizer_folder, length=length)
        tokenizer = vocabulary.load_tokenizer(store.tokenizer_folder)
        ids = texts.tokenised(written, tokenizer, folder / "ids")
        ways = peers(folder / "model", written, tokenizer, length, store.special.pad)
        ways[FROM_TEXTS] = lambda: encoded(encoder, texts.tokenised(written, tokenizer, folder / "again"), length)
        ways[STORED] = lambda: encoded(encoder, ids, length)
        if "bf16" in peaks:
            ways[BF16] = lambda: in_bf16(ways[FROM_TEXTS])
            ways[PEER_IN_BF16] = lambda: in_bf16(ways[PEER.format(16)])
        vectors, seconds = comparison.in_turns(ways, options.turns)
    apart = {name: float(np.abs(found - vectors[STORED]).max()) for name, found in vectors.items()}
    for name, far in apart.items():
        if far > (APART_IN_BF16 if name in ROUNDED else APART):
            raise EncoreError(f"vectors of {name} are {far:g} from those of the stored tokens; report it as a bug")
    best = min(map(PEER.format, PEERS_BATCHES), key=seconds.__getitem__)
    operations = sum(flops.embedding(encoder.config, 1, min(size + 2, length)) for size in ids.lengths.tolist())
    rows = comparison.rows(seconds, count, "texts", base=best)
    for row in rows:
        peak = peaks["bf16" if row["way"] in ROUNDED else "fp32"]
        row["share_of_peak"] = figures.rounded(timing.utilisation(operations, row["cpu_seconds"], peak))
    what = f"encoding of {kind} from texts, {options.model}{{}}, speed relative to {{}}"
    pairs = {"": (best, FROM_TEXTS), ", both in bf16": (PEER_IN_BF16, BF16)}
    goals = [
        figures.goal(what.format(how, peer.removesuffix(", in bf16")), seconds[peer] / seconds[way], aim)
        for how, (peer, way) in pairs.items()
        if aim is not None and way in ways
    ]
    mean = figures.rounded(float(ids.lengths.mean()) + 2)
    return {"texts": f"{kind}, {mean} tokens in the mean", "rows": rows, "apart": apart, "goals": goals}


def peers(
    folder: Path, written: list[str], tokenizer: Tokenizer, length: int, pad: int
) -> dict[str, Callable[[], np.ndarray]]:
    """The ways of others, by name, from texts; each on one thread."""
    model = SentenceTransformer(str(folder), device="cpu")
    ways: dict[str, Callable[[], np.ndarray]] = {
        PEER.format(batch): partial(model.encode, written, batch_size=batch, show_progress_bar=False)
        for batch in PEERS_BATCHES
    }
    if MISSING:
        return ways
    from harness import exported

    exported.write_graph(model, folder / "model.onnx")
    for name, graph in exported.opened(folder / "model.onnx").items():
        ways[name] = partial(exported.encoded, graph, written, tokenizer, length, pad)
    return ways


def in_bf16(way: Callable[[], np.ndarray]) -> np.ndarray:
    """What a way gives where models compute in bf16."""
    with training_machine.precision({"precision": "bf16"}, torch.device("cpu")):
        return way()


def encoded(encoder: Encoder, sequences: Sequences, length: int) -> np.ndarray:
    """The vectors of all texts."""
    return embed.embed_texts(encoder, sequences, np.arange(len(sequences)), length)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=SHAPES, default="minilm")
    parser.add_argument("--texts", choices=TEXTS, nargs="+", default=list(TEXTS))
    parser.add_argument("--count", type=int, help="of the texts of each kind; without: 512, of abstracts 64")
    parser.add_argument("--turns", type=int, default=2, help="of which the best counts")
    record.add_flags(parser, "encoding")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
