"""Training queries: a query that is a document, too."""

import tracemalloc
from collections.abc import Sized
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from encore.data.judged import JudgedQuery
from encore.finetuning.contrastive import left_out
from encore.finetuning.negatives import mining
from encore.finetuning.queries import filled, in_rows
from encore.stages import finetune
from encore.storage.document_ids import DocIds


class Names:
    def __init__(self, names: list[str]) -> None:
        self.names = names

    def find(self, wanted: Any) -> dict[str, int]:
        return {name: self.names.index(name) for name in wanted if name in self.names}


@dataclass
class Named(Sized):
    names: DocIds

    def __len__(self) -> int:
        return len(self.names)


class Texts(list[int]):
    names = Names(["d0", "d1", "q0", "d3"])


@pytest.mark.parametrize(("excluded", "drawn"), [({}, {1, 2, 3}), ({"q0": {"q0", "gone"}}, {1, 3})])
def test_what_is_excluded_is_no_negative_drawn_or_in_a_batch(excluded: dict[str, set[str]], drawn: set[int]) -> None:
    import torch

    store: Any = SimpleNamespace(queries=SimpleNamespace(names=Names(["q0", "q1"])), passages=Texts(range(4)))
    given = {"q0": {"q0": 1, "d3": 2}, "q1": {"q0": 1}}
    judged = {q: JudgedQuery({d: 1}, {d}, excluded.get(q, set())) for q, d in (("q0", "d0"), ("q1", "d1"))}
    found = in_rows(judged, store, given)
    assert found[0].negatives == ((3,) if excluded else (2, 3))
    assert found[1].negatives == (2,), "it is another query's"
    assert set(filled(found[0], 3, 4).negatives) == drawn
    relevant = torch.tensor([sorted(found[0].relevant) + [-1] * (2 - len(found[0].relevant)), [1, -1]])
    ignored = left_out(torch.tensor([[0], [2]]), relevant)
    assert ignored.tolist() == [[False, bool(excluded)], [False, False]]


@pytest.mark.parametrize("kept", [30, 200])
def test_names_of_negatives_take_the_memory_that_is_forecast(kept: int, tmp_path: Path) -> None:
    """Of passages as many as negatives, which few queries share: the most that ids can take."""
    ids = [f"msmarco_passage_{number % 70:02d}_{number:09d}" for number in range(200 * kept)]
    negatives = {f"q{row}": {name: rank for rank, name in enumerate(ids[row::200])} for row in range(200)}
    mining.write_negatives(tmp_path, negatives, mining.statistics(negatives))
    judged = {name: JudgedQuery({ids[0]: 1}, {ids[0]}) for name in negatives}
    names = DocIds.of(judged), DocIds.of(ids)
    store: Any = SimpleNamespace(folder=tmp_path, queries=SimpleNamespace(names=names[0]), passages=Named(names[1]))
    in_rows(judged, store, {})  # what is imported once is none of it
    tracemalloc.start()
    try:
        queries = in_rows(judged, store, mining.read_negatives(tmp_path))
        peak = tracemalloc.get_traced_memory()[1] / len(ids)
    finally:
        tracemalloc.stop()
    assert sum(len(query.negatives) for query in queries) > 190 * kept
    assert finetune.NEGATIVE / 2 < peak < 2 * finetune.NEGATIVE
