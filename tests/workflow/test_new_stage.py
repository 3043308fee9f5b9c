"""The page about a new stage, followed to the letter."""

import json
import re

import pytest

from tests.support.clones import REPOSITORY, Clone

PAGE = (REPOSITORY / "docs/add-a-stage.md").read_text()
STAGE, RULE, PLANNING = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def added(clone: Clone) -> Clone:
    """A clone with the page's file, its rule, and the lines that plan its folder."""
    (path,) = re.findall(r"The\s+file\s+is\s+`([\w/.]+)`", PAGE)
    assert not (clone.root / path).exists()
    (clone.root / path).write_text(STAGE)
    (rules,) = re.findall(r"Append\s+the\s+rule\s+to\s+`([\w/.]+)`", PAGE)
    with (clone.root / rules).open("a") as file:
        file.write(f"\n\n{RULE}")
    (planning,) = re.findall(r"own\s+name\s+is\s+planned\s+in\s+`([\w/.]+)`", PAGE)
    function = (clone.root / planning).read_text().partition("def _plan_texts(")[2].partition("\n\n\n")[0]
    clone.replace(planning, function, f"{function}\n{PLANNING.rstrip()}")
    return clone


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 70


@pytest.mark.slow
def test_a_stage_of_one_file_and_one_rule_makes_its_folder(added: Clone) -> None:
    guess = re.search(r"snakemake (.*results/lengths/\S+)`", PAGE)
    assert guess
    said = added.snakemake(*guess[1].split(), "--configfile", "config/nano.yaml").error()
    target = re.search(r"did you mean (results/lengths/pydocs-stdlib-[0-9a-f]{8})", said)
    assert target, said
    added.nano(f"{target[1]}/manifest.json").succeeded()
    made = json.loads((added.root / target[1] / "manifest.json").read_text())
    collection = added.folder("collections", "pydocs-stdlib")
    assert (made["stage"], made["spec"]["collection"]) == ("passage_lengths", collection.name)
    assert made["results"]["passages"] == json.loads((collection / "statistics.json").read_text())["passages"]
    longer = json.loads((added.root / target[1] / "longer.json").read_text())
    assert made["results"]["passages"] > longer["20"] > longer["40"] > longer["80"] > 0
