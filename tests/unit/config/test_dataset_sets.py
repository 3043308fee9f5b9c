"""One entry of datasets.yaml for many sets of a kind: what each becomes, and every wrong use."""

from pathlib import Path

import pytest
import yaml

from encore.config.dataset_sets import read_datasets
from encore.errors import EncoreError

ROOT = Path(__file__).parents[3]
ENTRY = {
    "kind": "beir",
    "path": "{data_root}/{path}",
    "splits": {"test": {"role": "test", "measures": {"P": "P@{cut}"}}},
    "expected": {"passages": "{passages}", "list": ["{set}", "a {set} b"]},
    "vars": {"path": "of-{set}", "cut": 5},
    "sets": {"one": {"passages": 3}, "two": {"passages": 4, "path": "elsewhere", "cut": 9}},
}


def read(tmp_path: Path, entries: object) -> dict[str, object]:
    (tmp_path / "datasets.yaml").write_text(yaml.safe_dump(entries, sort_keys=False))
    return read_datasets(tmp_path / "datasets.yaml")


def test_each_set_is_an_entry_in_place_of_the_one_for_all(tmp_path: Path) -> None:
    found = read(tmp_path, {"first": {"kind": "a"}, "my-{set}": ENTRY, "last": {"kind": "{set}"}})
    assert list(found) == ["first", "my-one", "my-two", "last"]
    assert found["my-one"] == {
        "kind": "beir",
        "path": "{data_root}/of-one",
        "splits": {"test": {"role": "test", "measures": {"P": "P@5"}}},
        "expected": {"passages": 3, "list": ["one", "a one b"]},
    }
    two = found["my-two"]
    assert isinstance(two, dict)
    assert (two["path"], two["expected"]["passages"]) == ("{data_root}/elsewhere", 4)
    assert two["splits"]["test"]["measures"] == {"P": "P@9"}
    assert found["last"] == {"kind": "{set}"}, "only entries with sets have places"


def test_beir_has_its_thirty_sets_with_the_numbers_that_were_published() -> None:
    found = {name: entry for name, entry in read_datasets(ROOT / "config/datasets.yaml").items() if "beir-" in name}
    assert len(found) == 30
    assert found["beir-nq"]["id"] == found["beir-nq"]["splits"]["test"]["id"] == "beir/nq"
    assert found["beir-fever"]["splits"]["test"]["id"] == "beir/fever/test"
    assert found["beir-webis-touche2020"]["id"] == "beir/webis-touche2020/v2"
    assert found["beir-cqadupstack-tex"]["expected"] == {"passages": 68184, "queries.test": 2906}
    assert found["beir-robust04"]["path"] == "{data_root}/beir/robust04"


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (
            {"my-{set}": ENTRY | {"vars": {"path": "of-{set}"}, "sets": {"one": {"passages": 3}}}},
            "my-{set}.sets.one: {cut} has no value; give one here or under `vars`",
        ),
        ({"beir": ENTRY}, "beir: an entry with `sets` has the place of a set's name in its own, as beir-{set}"),
        ({"{a}-{b}": ENTRY}, "an entry with `sets` has the place of a set's name"),
        ({"my-{set}": ENTRY | {"sets": ["one"]}}, "my-{set}.sets: must be a mapping"),
        ({"my-{set}": ENTRY | {"vars": "x"}}, "my-{set}.vars: must be a mapping"),
        ({"my-{set}": ENTRY | {"sets": {"one": 3}}}, "my-{set}.sets.one: must be a mapping of values"),
        ({"my-{set}": ENTRY | {"sets": {"one": {"passage": 3}}}}, "my-{set}.sets.one: no field has {passage}"),
        ({"my-one": {"kind": "a"}, "my-{set}": ENTRY}, "my-one is there twice, once under `sets`; keep one of them"),
    ],
)
def test_a_wrong_entry_for_many_is_one_line(entries: object, says: str, tmp_path: Path) -> None:
    with pytest.raises(EncoreError) as refused:
        read(tmp_path, entries)
    assert str(refused.value).startswith(f"{tmp_path}/datasets.yaml: ")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
