"""Enhanced decoding's masks next to a collator that makes them row by row, as published ones do (Xiao et al. 2022)."""

from __future__ import annotations

import copy
import random
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encore.errors import EncoreError
from encore.models import word_masks
from encore.objectives.enhanced import Enhanced
from encore.training.randomness import generator
from harness import texts, timing
from harness.figures import goal, rounded
from harness.ours import load, step_of
from harness.setting import Setting, device

Order = Callable[[list[list[int]]], list[list[int]]]
AIMS = {144: 40, 512: 60}  # times as fast as row by row, by tokens of a text
TEXTS = 8
REPETITIONS = 15


def compare(setting: Setting, lengths: Sequence[int] = tuple(AIMS)) -> list[dict[str, Any]]:
    """Time a text's collation on both sides, the encoder's own masking included, and compare what they make.

    A loop makes the decoder's masks there; ours draws them in the step, on its device (``drawing_ms``).

    Raises:
        EncoreError: from the same orders of words they make different masks.
    """
    return [_compare(setting, length) for length in lengths]


def goals(compared: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        goal(f"enhanced decoding, collation of {row['tokens']} tokens, speed relative to row by row", row["ratio"], aim)
        for row in compared
        if (aim := AIMS.get(row["tokens"]))
    ]


def _compare(setting: Setting, length: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store = texts.write(Path(folder), TEXTS, length, setting.vocabulary, full=True)
        sized = setting.resized(length)
        objective = load(step_of("enhanced", {}, sized), store)
        assert isinstance(objective, Enhanced)
        for index in range(TEXTS):
            _check(objective, index)
        batch = _batch(objective, range(TEXTS))
        timed = {
            "row_by_row": lambda: _row_by_row(objective, 0),
            "ours": lambda: _batch(objective, range(TEXTS)),
            "drawing": lambda: _drawn(objective, batch),
        }
        readings: dict[str, list[timing.Seconds]] = {name: [] for name in timed}
        for _ in range(REPETITIONS):
            for name, work in timed.items():
                readings[name].append(timing.time_of(work))
    best = {name: timing.best(seconds, setting.clock) for name, seconds in readings.items()}
    return {
        "tokens": length,
        "row_by_row_ms": rounded(1e3 * best["row_by_row"]),
        "ours_ms": rounded(1e3 * best["ours"] / TEXTS),
        "drawing_ms": rounded(1e3 * best["drawing"] / TEXTS),
        "ratio": rounded(best["row_by_row"] / (best["ours"] / TEXTS)),
    }


def _batch(objective: Enhanced, indices: Sequence[int]) -> dict[str, torch.Tensor]:
    """What collation makes, on the device."""
    arrays = objective.collate([objective.example(index, generator(0, index)) for index in indices])
    return {name: torch.from_numpy(array).to(device()) for name, array in arrays.items()}


def _drawn(objective: Enhanced, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """What each position sees, as the decoder draws it in a step."""
    words, numbers, budgets, mask = (batch[name] for name in ("words", "numbers", "budgets", "mask"))
    return word_masks.visible(words, numbers, budgets, mask, objective.fields.visible_masks)


def _row_by_row(objective: Enhanced, index: int) -> torch.Tensor:
    """The same from Python lists, with its own chance: [n + 2, n + 2] int64, 1 where a position sees another."""
    chance = random.Random(index)
    tokens = _tokens(objective, objective.chunks[objective.usable[index]])

    def shuffled(words: list[list[int]]) -> list[list[int]]:
        chance.shuffle(words)
        return words

    _mask(tokens, objective.fields.mask_ratio, shuffled)  # the encoder's own
    count = min(len(tokens), objective.fields.visible_masks)
    masks = [_mask(tokens, objective.fields.decoder_mask_ratio, shuffled) for _ in range(count)]
    return _rows(masks, [chance.randrange(count) for _ in tokens])


def _check(objective: Enhanced, index: int) -> None:
    """Make a text's masks row by row from the very orders that ours come from."""
    one = objective.example(index, generator(0, index))
    tokens, ratio = _tokens(objective, one.ids), objective.fields.decoder_mask_ratio
    count = min(len(tokens), objective.fields.visible_masks)
    number = torch.tensor([one.number])
    orders = word_masks.orders(number, count, int(one.words[-1]) + 1)[0].tolist()
    picks = word_masks.picked(number, torch.tensor([count]), len(tokens))[0].tolist()
    masks = [_mask(tokens, ratio, partial(_in_order, order)) for order in orders]
    if not torch.equal(_rows(masks, picks).bool(), _drawn(objective, _batch(objective, [index]))[0].cpu()):
        raise EncoreError(f"the masks of text {index} are other ones than those made row by row: fix that first")


def _in_order(order: list[int], words: list[list[int]]) -> list[list[int]]:
    return [words[word] for word in order]


def _tokens(objective: Enhanced, ids: np.ndarray) -> list[str]:
    pieces = objective.store.pieces
    return ["[CLS]", *(pieces[piece] for piece in ids.tolist()), "[SEP]"]


def _mask(tokens: list[str], ratio: float, ordered: Order) -> list[int]:
    """Words in an order until the budget is spent, 1 where a token is hidden; tokens become words anew each time."""
    words: list[list[int]] = []
    for place, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if words and token.startswith("##"):
            words[-1].append(place)
        else:
            words.append([place])
    room = max(1, round(len(tokens) * ratio))
    hidden: set[int] = set()
    for word in ordered(words):
        if len(hidden) >= room:
            break
        if len(hidden) + len(word) > room:
            continue
        if any(place in hidden for place in word):  # it never is, but the published loops look
            continue
        for place in word:
            hidden.add(place)
    return [1 if place in hidden else 0 for place in range(len(tokens))]


def _rows(masks: list[list[int]], picks: list[int]) -> torch.Tensor:
    """One list a position, a deep copy of the mask that it picked, the position itself hidden too."""
    rows = []
    for place, pick in enumerate(picks):
        row = copy.deepcopy(masks[pick])
        row[place] = 1
        rows.append(row)
    return 1 - torch.tensor(rows)
