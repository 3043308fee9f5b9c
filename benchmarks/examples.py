"""How fast one process makes examples of every objective, next to Transformers' collators; see README.md."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from encore.storage.program import run

import numpy as np
import torch
from harness import comparison, figures, machine, record, texts
from harness.ours import load, step_of
from harness.setting import Setting
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

from encore import objectives
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.objectives.base import Objective
from encore.training.randomness import generator

VOCABULARY = 30522
MLM, PEERS = "mlm", {"Transformers, in torch": "pt", "Transformers, in NumPy": "np"}
MASKED, DEVIATIONS = 0.15, 4  # the share of pieces that are masked, and how far it may be off by chance
AIM, PER_RANK = 1.0, {144: 6500, 512: 1300}  # relative to a peer; what one H100 should train with, a second


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    before = machine.load()
    parts = [measure(length, options) for length in options.lengths]
    contents = {
        "setting": {name: getattr(options, name) for name in ("batch", "lengths", "turns")},
        "agreement": f"all three ways of MLM mask {100 * MASKED:.0f} % of pieces, as near as chance allows",
        "parts": parts,
        "goals": [goal for part in parts for goal in _goals(part)],
        "left_out": ["bprop: its examples are made of what a trained model attends to"],
    }
    record.write(options.output, options.name, contents, before)
    for part in parts:
        print("\n".join(["", f"{part['length']} tokens", "", *record.table(part["rows"])]))


def measure(length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Batches of full texts of a length, one way after the other.

    Raises:
        EncoreError: one of the ways of MLM masks another share of the pieces.
    """
    setting = Setting("nano", VOCABULARY, length, options.batch, True, "fp32", 1, "cpu", options.turns, 1)
    with tempfile.TemporaryDirectory() as folder:
        store = texts.write(Path(folder), 2 * options.batch, length, VOCABULARY, full=True)
        tasks = {name: task for name in objectives.names() if (task := _task(name, setting, store)) is not None}
        documents = [tasks[MLM].example(row, generator(0, row)).ids for row in range(options.batch)]
        ways: dict[str, Callable[[], Any]] = {name: _theirs(kind, documents, store) for name, kind in PEERS.items()}
        ways |= {name: _ours(task, options.batch) for name, task in tasks.items()}
        made, seconds = comparison.in_turns(ways, options.turns)
    pieces = sum(map(len, documents))
    shares = {name: int((np.asarray(made[name]["labels"]) >= 0).sum()) / pieces for name in (*PEERS, MLM)}
    deviation = (MASKED * (1 - MASKED) / pieces) ** 0.5
    if wrong := {name: share for name, share in shares.items() if abs(share - MASKED) > DEVIATIONS * deviation}:
        raise EncoreError(f"shares of pieces that are masked are not {MASKED}: {wrong}; report it as a bug")
    peer = min(PEERS, key=seconds.__getitem__)
    return {
        "length": length,
        "rows": comparison.rows(seconds, options.batch, "examples", base=peer),
        "relative_to_peer": figures.rounded(seconds[peer] / seconds[MLM]),
    }


def _goals(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Of texts of a length: MLM relative to its peer, and what the slowest objective makes in a second."""
    length = part["length"]
    what = f"examples of MLM, {length} tokens, speed relative to Transformers' collator"
    found = [figures.goal(what, part["relative_to_peer"], AIM)]
    slowest = min((row for row in part["rows"] if row["way"] not in PEERS), key=lambda row: row["speed"])
    if length in PER_RANK:
        what = f"examples of {slowest['way']}, the slowest, {length} tokens, a second in one process"
        found.append(figures.goal(what, slowest["examples_per_second"], PER_RANK[length]))
    return found


def _task(name: str, setting: Setting, store: TokenStore) -> Objective[Any] | None:
    """An objective with its own defaults, MLM as Transformers has it; None where it prepares with a trained model."""
    fields = {"min_tokens": 1} if "min_tokens" in objectives.load(name).Fields.model_fields else {}
    try:
        return load(step_of(name, fields, setting), store)
    except NotImplementedError:
        return None


def _ours(task: Objective[Any], batch: int) -> Callable[[], Any]:
    """The sizes of a batch's examples, by which batches are dealt, and its arrays."""
    rows, chance = np.arange(batch) % len(task), partial(generator, 0, "example")

    def made() -> Any:
        task.sizes(rows, chance)
        return task.collate([task.example(row, chance(row)) for row in rows.tolist()])

    return made


def _theirs(kind: str, documents: Sequence[np.ndarray], store: TokenStore) -> Callable[[], Any]:
    """A collator with all that can be prepared for it: ids with [CLS] and [SEP], and which pieces are special."""
    tokenizer, special = PreTrainedTokenizerFast.from_pretrained(store.tokenizer_folder), store.special
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=MASKED, return_tensors=kind)
    rows = [
        {"input_ids": [special.cls, *ids.tolist(), special.sep], "special_tokens_mask": [1, *[0] * len(ids), 1]}
        for ids in documents
    ]
    return lambda: collator(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--lengths", type=int, nargs="+", default=[144, 512], help="tokens, [CLS] and [SEP] included")
    parser.add_argument("--turns", type=int, default=5, help="of which the best counts")
    record.add_flags(parser, "examples")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
