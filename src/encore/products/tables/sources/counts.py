"""Columns of counts, the same under every seed: of collections, of texts in word pieces, of pre-training's pairs."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.slices import Unit
from encore.products.tables.grid import CellRequest, Column, Grid
from encore.products.tables.sources.base import CountSource, last_pretrained, lineage_of, number_in, optional

STATISTICS = "statistics.json"


class PairCounts(CountSource):
    """How many pairs of texts one epoch of a pre-training step has, or how long they are."""

    field = optional(
        Literal["pairs", "tokens", "query_tokens", "document_tokens"],
        "the number of pairs, or mean tokens, in an epoch of the last pre-training step, which learns from pairs of "
        "texts.",
    )
    needs = ("system",)
    name = "{value} of an epoch"

    def reads(self, plan: Plan, request: CellRequest) -> CellRequest:
        """The pairs that the system's last pre-training step learns from; nothing where it has none."""
        last = last_pretrained(plan, request)
        return request.reading([(None, plan.pairs(last))]) if last else request

    def counted(self, folder: Path, name: str) -> float:
        """A number of ``pairs.json``."""
        return number_in(folder / "pairs.json", name)

    def notes(self, own: Sequence[Column], grid: Grid) -> list[str]:
        """Which pairs are counted, and what counts as a word piece."""
        labels = ", ".join(dict.fromkeys(column.label for column in own))
        about = "of one epoch of the step, whose chance is that of seed 0; word pieces as the model reads them, titles "
        return [f"{labels}: {about}among them and special tokens not."] if labels else []


class Statistic(CountSource):
    """A number of a collection's ``statistics.json``."""

    field = optional(str, "a number of the dataset's statistics.json, its keys joined by full stops.")
    needs = ("dataset",)
    files = (STATISTICS,)
    name = "statistic {value}"

    def reads(self, plan: Plan, request: CellRequest) -> CellRequest:
        """The collection, whose statistics the cell shows."""
        collection = plan.collection(request.dataset)
        return request.reading([(None, collection)], collection)

    def counted(self, folder: Path, name: str) -> float:
        """The number, named by its keys with full stops between them."""
        path = folder / STATISTICS
        found = dict(_numbers(json.loads(path.read_text())))
        if name not in found:
            raise EncoreError(f"{path} has no number {name!r}{nearest(name, found)}")
        return found[name]


class Tokens(CountSource):
    """The mean length of all passages, or all queries, in word pieces, before any is cut."""

    field = optional(
        Literal["passages", "queries"],
        "the mean length of the dataset's texts in word pieces of the system's vocabulary.",
    )
    needs = ("system", "dataset")
    files = ("passages.offsets.npy", "queries.offsets.npy")
    name = "tokens of {value}"
    amounts = "word pieces"

    def reads(self, plan: Plan, request: CellRequest) -> CellRequest:
        """The dataset's texts in the vocabulary of the lineage's backbone; nothing for other systems."""
        lineage = lineage_of(plan, request)
        if lineage is None:
            return request
        tokens = plan.tokens(request.dataset, plan.resolve.backbone(lineage))
        return request.reading([(None, tokens)], plan.collection(request.dataset))

    def counted(self, folder: Path, name: str) -> float | None:
        """The mean of a token store's texts, special tokens not included; None for a store without texts."""
        import numpy as np

        offsets = np.load(folder / f"{name}.offsets.npy", mmap_mode="r")
        return int(offsets[-1]) / (len(offsets) - 1) if len(offsets) > 1 else None

    def shown(self, value: float, unit: Unit) -> str:
        """A mean, so always with two digits after the point."""
        return f"{value:,.2f}"


def _numbers(content: dict[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """Every number with its keys, joined by full stops."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{above}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{above}{key}", float(value)
