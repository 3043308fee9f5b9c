"""Training queries: a query that is a document, too."""

from types import SimpleNamespace
from typing import Any

import pytest

from encore.data.judged import JudgedQuery
from encore.finetuning.contrastive import left_out
from encore.finetuning.queries import filled, in_rows


class Names:
    def __init__(self, names: list[str]) -> None:
        self.names = names

    def find(self, wanted: Any) -> dict[str, int]:
        return {name: self.names.index(name) for name in wanted if name in self.names}


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
