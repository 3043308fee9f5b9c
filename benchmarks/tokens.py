"""Tokenising of texts into files, and reading of batches from them, next to Hugging Face's ways; see README.md."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread, as all else here
os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = os.environ["HF_HUB_OFFLINE"] = "1"

from encore.storage.program import run

import numpy as np
from datasets import Dataset
from harness import comparison, figures, machine, record, texts
from transformers import PreTrainedTokenizerFast

from encore.data import vocabulary
from encore.data.tokens import Sequences, TokenStore, _Writer
from encore.errors import EncoreError
from encore.models import inputs

VOCABULARY, BATCH = 30522, 64
RAW, OURS = "tokenizers, ids in memory", "Encore, a token store"
PADDED, READ = "Transformers, lists padded", "Encore, rows of its token store"
AS_FAST, TEXTS = 0.9, 500_000  # goals: next to the bare tokenizer, and texts a second


def main() -> None:
    options = _options()
    before = machine.load()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        store, _ = texts.write_judged(
            folder / "texts", options.passages // 2, options.length, 32, VOCABULARY, full=False
        )
        written = texts.as_text(store.passages, store.pieces)
        made, tokenising = comparison.in_turns(_tokenising(written, store, folder), options.turns)
        if wrong := [name for name, ids in made.items() if not _equal(ids, made[RAW])]:
            raise EncoreError(f"{wrong[0]}: other ids than those of {RAW}; report it as a bug")
        batches, reading = comparison.in_turns(_reading(made, store, options.length), options.turns)
    for theirs, own in zip(batches[PADDED], batches[READ], strict=True):
        if not all(np.array_equal(one, other) for one, other in zip(theirs, own, strict=True)):
            raise EncoreError("a batch has other ids than Transformers pads; report it as a bug")
    count = len(written)
    speed, read = tokenising[RAW] / tokenising[OURS], count / reading[READ]
    contents: dict[str, Any] = {
        "setting": {name: getattr(options, name) for name in ("passages", "length", "turns")} | {"batch": BATCH},
        "agreement": "all ways give the same ids, and both the same padded batches",
        "rows": comparison.rows(tokenising, count, "texts", base=RAW),
        "reading": comparison.rows(reading, count, "texts", base=PADDED),
        "goals": [
            figures.goal("tokenising to files, speed relative to the bare tokenizer", speed, AS_FAST),
            figures.goal("reading of padded batches, texts a second", read, TEXTS),
        ],
    }
    record.write(options.output, options.name, contents, before, ("datasets",))
    print("\n".join([*record.table(contents["rows"]), "", *record.table(contents["reading"]), contents["agreement"]]))


def _tokenising(written: list[str], store: TokenStore, folder: Path) -> dict[str, Callable[[], Any]]:
    """Ways from texts to ids; the last two leave them in files."""
    bare = vocabulary.load_tokenizer(store.tokenizer_folder)
    wrapped = PreTrainedTokenizerFast.from_pretrained(store.tokenizer_folder)
    rows = Dataset.from_dict({"text": written})
    kept: dict[str, Any] = {"remove_columns": ["text"], "cache_file_name": str(folder / "ids.arrow")}

    def encoded(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        return {"ids": wrapped(batch["text"], add_special_tokens=False)["input_ids"]}

    return {
        RAW: lambda: [each.ids for each in bare.encode_batch(written, add_special_tokens=False)],
        "Transformers, ids in memory": lambda: encoded({"text": written})["ids"],
        "datasets, an Arrow file": lambda: rows.map(encoded, batched=True, load_from_cache_file=False, **kept)["ids"],
        OURS: lambda: _stored(written, store, folder / "store"),
    }


def _stored(written: list[str], store: TokenStore, folder: Path) -> Sequences:
    """The passages of a token store, with their names, as the stage ``tokens`` writes them."""
    vocabulary.copy_tokenizer(store.tokenizer_folder, folder / "tokenizer")
    _Writer(folder, 1).write_named("passages", ((str(row), (text,)) for row, text in enumerate(written)))
    return Sequences(folder, "passages")


def _reading(made: dict[str, Any], store: TokenStore, length: int) -> dict[str, Callable[[], Any]]:
    """Ways to all texts in padded batches, ids and mask [B, L], in one random order."""
    tokenizer, special = PreTrainedTokenizerFast.from_pretrained(store.tokenizer_folder), store.special
    rows = np.array_split(np.random.default_rng(0).permutation(len(made[OURS])), -(-len(made[OURS]) // BATCH))

    def padded(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        wrapped = [[special.cls, *made[RAW][row][: length - 2], special.sep] for row in chosen.tolist()]
        found = tokenizer.pad({"input_ids": wrapped}, return_tensors="np")
        return found["input_ids"], found["attention_mask"].astype(bool)

    return {
        PADDED: lambda: [padded(chosen) for chosen in rows],
        READ: lambda: [inputs.read_inputs(made[OURS], chosen.tolist(), length, special) for chosen in rows],
    }


def _equal(ids: Any, expected: list[list[int]]) -> bool:
    return len(ids) == len(expected) and all(map(np.array_equal, ids, expected))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--length", type=int, default=144, help="tokens of the longest, [CLS] and [SEP] included")
    parser.add_argument("--turns", type=int, default=3, help="of which the best counts")
    record.add_flags(parser, "tokens")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
