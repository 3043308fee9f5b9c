"""Ids by row and rows by id, for millions of ids: against a list and a dictionary, and in bounded memory."""

import random
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from encore.storage.document_ids import DocIds

ODD = ["", "a", "ab", "b", "ba", "é", "\U0001f600", "\u2028", "x" * 300, "7", "70", "07", "a b", "\x85", "\t", "\uffff"]


def many(count: int) -> list[str]:
    drawn = random.Random(0)
    return [f"{drawn.choice(['doc', 'D', 'ü', 'https://'])}{number}" for number in drawn.sample(range(10**9), count)]


@pytest.fixture(params=[0, 1, 20, 3000])
def names(request: pytest.FixtureRequest) -> list[str]:
    return (ODD + many(3000))[: request.param]


def test_rows_are_those_of_a_list(names: list[str], tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_bytes("".join(f"{name}\n" for name in names).encode())
    for found in (
        DocIds.of(names),
        DocIds.open(tmp_path / "names.txt"),
        DocIds.joined([names[:7], DocIds.of(names[7:])]),
    ):
        assert list(found) == names == found[:]
        assert found == names
        assert len(found) == len(names)
        assert found[3:-2] == names[3:-2]
        assert found[::-1] == names[::-1]
        assert [found[row] for row in range(-min(len(names), 5), min(len(names), 5))] == [
            names[row] for row in range(-min(len(names), 5), min(len(names), 5))
        ]
        with pytest.raises(IndexError):
            found[len(names)]


def test_rows_of_ids_are_those_of_a_dictionary(names: list[str]) -> None:
    found, known = DocIds.of(names), {name: row for row, name in enumerate(names)}
    asked = [*reversed(names), "none", "doc", "a\nb", "\n", "\ud800", "a", *names[:3]]
    assert found.rows(asked).tolist() == [known.get(name, -1) for name in asked]
    assert found.find(iter(asked)) == {name: known[name] for name in dict.fromkeys(asked) if name in known}
    assert [name in found for name in asked] == [name in known for name in asked]


def test_no_copy_of_the_ids_is_held_to_look_them_up(tmp_path: Path) -> None:
    names = [f"msmarco_passage_{number:012d}" for number in random.Random(1).sample(range(10**9), 50_000)]
    (tmp_path / "names.txt").write_text("".join(f"{name}\n" for name in names))
    found, before = DocIds.open(tmp_path / "names.txt"), pa.total_allocated_bytes()
    assert found.rows(names[:9]).tolist() == list(range(9))
    assert pa.total_allocated_bytes() - before < 50_000
    assert found._bounds.nbytes == 4 * 50_001


def test_places_are_those_of_sorted_ids(names: list[str]) -> None:
    places = np.empty(len(names), dtype=np.int64)
    places[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    assert np.array_equal(DocIds.of(names).places(), places)


@pytest.mark.parametrize("names", [[str(number) for number in range(5, 3000, 7)], ["7", "007"], ODD])
def test_rows_of_arrow_s_ids_are_those_of_a_dictionary(names: list[str]) -> None:
    known = {name: row for row, name in enumerate(names)}
    for asked in (names[::-1], ["5", "12", "6", "7", "4000", "-5"], ["none", "7", "a"]):
        assert DocIds.of(names).rows_of(pa.array(asked)).tolist() == [known.get(name, -1) for name in asked]


def test_a_repeated_id_is_found_at_its_first_row() -> None:
    assert DocIds.of(["b", "a", "b", "a"]).rows(["a", "b"]).tolist() == [1, 0]


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ODD + many(200)
    monkeypatch.setattr("encore.storage.document_ids.BLOCK", 7)
    monkeypatch.setattr("encore.storage.document_ids.PART", 7)
    monkeypatch.setattr("encore.storage.document_ids.ASKED", 5)
    found = DocIds.of(names)
    assert found.rows(names).tolist() == found.rows(found).tolist() == list(range(len(names)))
    assert list(found) == names


def test_ids_of_more_than_two_gigabytes_are_found() -> None:
    """By Arrow's type for them."""
    names, found = ODD + many(200), DocIds.of(ODD + many(200))
    found._bounds = found._bounds.astype(np.int64)
    assert found.rows([*names, "none"]).tolist() == [*range(len(names)), -1]
    assert found.take(np.array([3, 1])) == [names[3], names[1]]


def test_an_id_takes_little_more_than_its_text_and_12_bytes_where_its_row_is_looked_up(tmp_path: Path) -> None:
    """A list of these ids takes 65 bytes each, a dictionary 80 more."""
    count = 400_000
    path = tmp_path / "names.txt"
    path.write_text("".join(f"D{number}\n" for number in range(10**6, 10**6 + count)))
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    names = DocIds.open(path)
    assert names.rows(["D1000007", "D0"]).tolist() == [7, -1]
    assert names[count - 1] == f"D{10**6 + count - 1}"
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept + pa.total_allocated_bytes() - before < (9 + 12 + 1) * count
