"""The resolved configuration of a lineage names the place of each value."""

from pathlib import Path

import pytest

from encore.commands.show_config import config_text
from encore.errors import EncoreError
from encore.products.catalogue import load_plan
from tests.support import inside

NANO = "config/nano.yaml"
LINEAGE = "bert-base+costa~temperature=0.05+marco-bm25@hnsw~ef_search=64"


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, tuple[str, str]]]:
    """Value and place of each field, by the first two words of its paragraph."""
    found = {}
    for paragraph in config_text(load_plan(Path(NANO)), LINEAGE).split("\n\n")[1:]:
        title, *lines = paragraph.splitlines()
        split = (line.split(maxsplit=1) for line in lines)
        found[" ".join(title.partition(":")[0].split()[:2])] = {key: tuple(rest.rsplit("  ", 1)) for key, rest in split}
    return {title: {key: (v.strip(), w.strip()) for key, (v, w) in each.items()} for title, each in found.items()}


def test_each_step_is_told_with_the_backbone_and_the_index(told: dict[str, dict[str, tuple[str, str]]]) -> None:
    parts = ["backbone tiny", "step costa~temperature=0.05", "step marco-bm25", "index hnsw~ef_search=64"]
    assert list(told) == parts


@pytest.mark.parametrize(
    ("part", "field", "value", "place"),
    [
        ("backbone tiny", "layers", "2", "config/backbones.yaml"),
        ("step costa~temperature=0.05", "temperature", "0.05", "the lineage's name"),
        ("step costa~temperature=0.05", "steps", "10", f"{NANO}: scale.pretrain"),
        ("step costa~temperature=0.05", "min_tokens", "24", f"{NANO}: scale.steps.costa"),
        ("step costa~temperature=0.05", "collection", "pydocs-stdlib", f"{NANO}: scale.datasets"),
        ("step costa~temperature=0.05", "warmup", "0.1", "default"),
        ("step marco-bm25", "negatives", "bm25", "config/steps.yaml"),
        ("index hnsw~ef_search=64", "ef_search", "64", "the lineage's name"),
        ("index hnsw~ef_search=64", "m", "32", "config/indexes.yaml"),
    ],
)
def test_a_value_comes_from_the_last_place_that_sets_it(
    told: dict[str, dict[str, tuple[str, str]]], part: str, field: str, value: str, place: str
) -> None:
    assert told[part][field] == (value, place)


def test_what_the_scale_replaces_is_said_first() -> None:
    text = config_text(load_plan(Path(NANO)), "bert-base+costa")
    assert text.startswith(f"{NANO}: `scale:` makes tiny+costa of bert-base+costa\n\nbackbone tiny: ours; ")


def test_a_backbone_of_the_runs_own_file_is_told_with_that_file(tmp_path: Path) -> None:
    run = tmp_path / "own.yaml"
    run.write_text(f"extends: {Path(NANO).absolute()}\nbackbones: {{mine: {{start: random, layers: 1}}}}\n")
    lines = config_text(load_plan(run), "mine+mlm").splitlines()
    told = [line.split(maxsplit=2) for line in lines if line.startswith(("  layers ", "  hidden "))]
    assert told == [["layers", "1", f"{run}: backbones.mine"], ["hidden", "768", "default"]]


def test_a_lineage_that_is_wrong_is_refused_by_name() -> None:
    with pytest.raises(EncoreError, match="unknown step 'costar'; did you mean"):
        config_text(load_plan(Path(NANO)), "bert-base+costar")
    assert "is a system" in inside.encore("show-config", "bm25", "--config", NANO).stderr
