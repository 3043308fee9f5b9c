"""``encore show``: whether the table that is there is this run's."""

import json
from pathlib import Path

import pytest

from encore.commands.show import TABLES, of_another_plan
from encore.products.tables.plan import table_plan
from encore.products.targets import is_of_another_plan
from encore.storage.files import canonical
from tests.support.small_forecast import planned

MADE = TABLES / "table1.manifest.json"


def test_a_table_that_another_run_made_is_told(bare: Path) -> None:
    """``bare`` has no results: what is written here is all that a finished table says of its plan."""
    own, other = planned(), planned(seeds=[1])
    TABLES.mkdir(parents=True)
    made = {"spec": json.loads(canonical(table_plan(own, "table1").dumped()))}
    MADE.write_text(json.dumps(made))
    assert not is_of_another_plan(own, MADE)
    assert is_of_another_plan(other, MADE)
    assert of_another_plan(own, "table1", "") is None
    said = of_another_plan(other, "table1", "config/mine.yaml") or ""
    assert said.startswith("NOT THIS RUN'S: results/tables/table1.json was made of another plan, on pydocs")
    assert said.endswith("--configfile config/mine.yaml` makes this run's.")


@pytest.mark.parametrize("content", [None, "{}"])
def test_a_table_without_its_plan_is_shown_as_it_is(bare: Path, content: str | None) -> None:
    TABLES.mkdir(parents=True)
    if content:
        MADE.write_text(content)
    assert not is_of_another_plan(planned(), MADE)
