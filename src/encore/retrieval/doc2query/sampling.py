"""Writing queries for every passage: top-k samples of a trained T5, block by block.

A block's chance comes from the seed and its number, and a finished block is kept in a file, so an interrupted run
resumes and ends with the same queries.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from encore.data.collection import Collection
from encore.retrieval.doc2query import model as models
from encore.retrieval.doc2query.model import Doc2QueryTokenizer, filled
from encore.storage import sealed
from encore.training import machine
from encore.training.randomness import number

BLOCK = 1024  # passages
TOGETHER = 512  # sequences that are written at once


def sample(spec: dict[str, Any], folder: Path, collection: Path, state: Path) -> Iterator[tuple[str, list[str]]]:
    """The sampled queries of each passage, by id, in the corpus' order.

    Args:
        spec: ``per_passage``, ``top_k``, ``length``, ``query_length``, ``seed``, ``numerics``.
        state: the folder of finished blocks; left for the caller to remove once the result is safe.
    """
    device = machine.prepare(spec["numerics"])
    model, words = models.load_model(folder)
    model.to(device).eval()
    texts = [(name, " ".join(text)) for name, text in Collection(collection).texts()]
    blocks, began = range(0, len(texts), BLOCK), time.monotonic()
    made = 0
    for count, first in enumerate(blocks, 1):
        path = state / f"block-{first:09d}.json"
        block = texts[first : first + BLOCK]
        if not sealed.is_whole(path):
            written = _write(model, words, [text for _, text in block], spec, first)
            rows = [[name, queries] for (name, _), queries in zip(block, written, strict=True)]
            sealed.write(path, json.dumps(rows, ensure_ascii=False).encode())
            made += 1
            left = (time.monotonic() - began) / made * (len(blocks) - count)
            print(f"block {count}/{len(blocks)}  {left:.0f} s left", flush=True)
        yield from map(tuple, json.loads(bytes(sealed.read(path))))


def _write(
    model: Any, words: Doc2QueryTokenizer, texts: Sequence[str], spec: dict[str, Any], first: int
) -> list[list[str]]:
    """Queries for the passages of a block; those of like length go together, which saves padding."""
    rows = words.rows(texts, spec["length"])
    places = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    size = max(1, TOGETHER // spec["per_passage"])
    found: list[list[str]] = [[] for _ in rows]
    for start in range(0, len(places), size):
        chosen = places[start : start + size]
        torch.manual_seed(number(spec["seed"], "expand", first, start))
        queries = _generate(model, words, [rows[place] for place in chosen], spec)
        for order, place in enumerate(chosen):
            found[place] = queries[order * spec["per_passage"] : (order + 1) * spec["per_passage"]]
    return found


@torch.inference_mode()
def _generate(model: Any, words: Doc2QueryTokenizer, rows: Sequence[Sequence[int]], spec: dict[str, Any]) -> list[str]:
    """``per_passage`` queries for each row, those of a row side by side."""
    with machine.precision(spec["numerics"], model.device):
        generated = model.generate(
            input_ids=filled(rows, words.pad).to(model.device),
            attention_mask=filled([[1] * len(row) for row in rows], 0).to(model.device),
            do_sample=True,
            num_beams=1,
            temperature=1.0,
            top_p=1.0,
            top_k=spec["top_k"],
            max_new_tokens=spec["query_length"],
            num_return_sequences=spec["per_passage"],
        )
    return words.texts(generated[:, 1:])
