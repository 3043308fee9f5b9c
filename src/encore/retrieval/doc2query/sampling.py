"""Writing queries for every passage: top-k samples of a trained T5, block by block.

A block's chance comes from the seed and its number, and a finished block is kept in a file, so an interrupted run
resumes, and any number of processes ends, with the same queries.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encore.data.collection import Collection
from encore.models.memory import MicroBatch, PartSize
from encore.retrieval.doc2query import model as models
from encore.retrieval.doc2query.model import Doc2QueryTokenizer, filled
from encore.storage import sealed
from encore.training import distributed, machine
from encore.training.randomness import number

BLOCK = 1024  # passages
TOGETHER = 512  # sequences that are written at once


@dataclass(frozen=True)
class Sampling:
    """How queries are sampled."""

    per_passage: int
    top_k: int  # most probable tokens that each one is drawn from
    length: int  # tokens of a passage
    query_length: int
    seed: int
    numerics: dict[str, Any]


def sample(how: Sampling, folder: Path, collection: Path, state: Path) -> Iterator[tuple[str, list[str]]]:
    """Write the sampled queries of all blocks, and give each passage's, by id, in the corpus' order.

    With several processes each writes some of the blocks, on its own GPU; afterwards each can return all of them.

    Args:
        folder: of the model.
        state: the folder of finished blocks; left for the caller to remove once the result is safe.
    """
    passages = sum(1 for _ in Collection(collection).texts())
    paths = {first: state / f"block-{first:09d}.json" for first in range(0, passages, BLOCK)}
    missing = [first for first, path in paths.items() if not sealed.is_whole(path)]
    device = machine.prepare(how.numerics)
    with distributed.process_group(device) as group:
        group.largest(len(missing))  # no process writes before all have looked
        if mine := {first: paths[first] for first in missing[group.rank :: group.size]}:
            _write_blocks(mine, how, folder, Collection(collection), device)
    return (tuple(row) for path in paths.values() for row in json.loads(bytes(sealed.read(path))))


def _write_blocks(
    paths: dict[int, Path], how: Sampling, folder: Path, collection: Collection, device: torch.device
) -> None:
    """Write the samples of some blocks, each to its path, by the number of its first passage."""
    model, words = models.load_model(folder)
    model.to(device).eval()
    at_once = MicroBatch(PartSize(max(1, TOGETHER // how.per_passage)))
    texts, began, made = collection.texts(), time.monotonic(), 0
    for first in range(0, max(paths) + 1, BLOCK):
        block = list(islice(texts, BLOCK))
        if first not in paths:
            continue
        written = _write(model, words, [" ".join(text) for _, text in block], how, first, at_once)
        rows = [[name, queries] for (name, _), queries in zip(block, written, strict=True)]
        sealed.write(paths[first], json.dumps(rows, ensure_ascii=False).encode())
        made += 1
        left = (time.monotonic() - began) / made * (len(paths) - made)
        print(f"block {made} of {len(paths)}  {left:.0f} s left", flush=True)


def _write(
    model: Any, words: Doc2QueryTokenizer, texts: Sequence[str], how: Sampling, first: int, at_once: MicroBatch
) -> list[list[str]]:
    """Queries for the passages of a block; those of like length go together, which saves padding."""
    rows = words.rows(texts, how.length)
    places = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    size = at_once.size.examples
    found: list[list[str]] = [[] for _ in rows]
    for start in range(0, len(places), size):
        chosen = [rows[place] for place in places[start : start + size]]

        def written(part: range, start: int = start, chosen: Sequence[Sequence[int]] = chosen) -> list[str]:
            torch.manual_seed(number(how.seed, "expand", first, start + part.start))
            return _generate(model, words, [chosen[row] for row in part], how)

        parts = at_once.each(written, np.array([len(row) for row in chosen]))
        queries = [query for part in parts for query in part]
        for order, place in enumerate(places[start : start + size]):
            found[place] = queries[order * how.per_passage : (order + 1) * how.per_passage]
    return found


@torch.inference_mode()
def _generate(model: Any, words: Doc2QueryTokenizer, rows: Sequence[Sequence[int]], how: Sampling) -> list[str]:
    """``per_passage`` queries for each row, those of a row side by side."""
    with machine.precision(how.numerics, model.device):
        generated = model.generate(
            input_ids=filled(rows, words.pad).to(model.device),
            attention_mask=filled([[1] * len(row) for row in rows], 0).to(model.device),
            do_sample=True,
            num_beams=1,
            temperature=1.0,
            top_p=1.0,
            top_k=how.top_k,
            max_new_tokens=how.query_length,
            num_return_sequences=how.per_passage,
        )
    return words.texts(generated[:, 1:])
