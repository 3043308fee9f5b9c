"""BEIR's sets in datasets.yaml: all of them, with the numbers that were published."""

from pathlib import Path

from encore.config.validation import read_yaml

DATASETS = Path(__file__).parents[3] / "config/datasets.yaml"


def test_beir_has_its_thirty_sets_with_the_numbers_that_were_published() -> None:
    found = {name: entry for name, entry in read_yaml(DATASETS).items() if "beir-" in name}
    assert len(found) == 30
    shipped = {name: entry for name, entry in found.items() if entry["kind"] == "ir-datasets"}
    assert len(shipped) == 26
    for name, entry in shipped.items():
        own = name.removeprefix("beir-").replace("cqadupstack-", "cqadupstack/")
        assert entry["id"].removesuffix("/v2") == f"beir/{own}"
        assert entry["splits"]["test"].get("id", entry["id"]).removesuffix("/test") == entry["id"]
        assert set(entry["expected"]) == {"passages", "queries.test"}
    assert found["beir-fever"]["splits"]["test"]["id"] == "beir/fever/test"
    assert found["beir-webis-touche2020"]["id"] == "beir/webis-touche2020/v2"
    assert found["beir-cqadupstack-tex"]["expected"] == {"passages": 68184, "queries.test": 2906}
    assert found["beir-robust04"]["path"] == "{data_root}/beir/robust04"
