"""``encore show``: whether the table that is there is this run's."""

import json
import shutil
from pathlib import Path

import pytest

from encore.commands.show import TABLES, of_another_plan
from encore.products.claims.plan import claims_plan
from encore.products.figures.plan import curves_plan, figure_plan
from encore.products.known_numbers import checks_plan
from encore.products.tables.plan import table_plan
from encore.products.tables.table import write_table
from encore.products.targets import is_of_another_plan
from encore.storage.files import canonical
from tests.support import inside, small_table
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
    title = "Pre-training objectives under one fine-tuning recipe [config/nano.yaml]"
    assert said.startswith(f"results/tables/table1.json is {title!r} on pydocs")
    assert said.endswith("--configfile config/mine.yaml` makes this run's")


def test_a_table_of_another_run_is_never_printed(bare: Path) -> None:
    content = table_plan(planned(), "table1").dumped()
    TABLES.mkdir(parents=True)
    MADE.write_text(json.dumps({"spec": json.loads(canonical(content))}))
    made = small_table.table_of(small_table.plan(bare / "scores", title=content["title"]))
    write_table(TABLES / "table1.json", made)
    shutil.copyfile("config/nano.yaml", "config/mine.yaml")
    own, other = (inside.encore("show", "--config", f"config/{run}.yaml") for run in ("nano", "mine"))
    assert own.stdout.startswith(f"{content['title']}\n")
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr.startswith("error: results/tables/table1.json is ")
    assert "made of another plan than config/mine.yaml's" in other.stderr


def test_every_product_of_a_run_that_is_not_the_default_names_its_file_in_its_title(bare: Path) -> None:
    """All runs write to the same folders; the default's titles, and so their bytes, have no such name."""
    slices = [
        lambda plan: table_plan(plan, "table1"),
        lambda plan: figure_plan(plan, "label_efficiency"),
        curves_plan,
        claims_plan,
        checks_plan,
    ]
    few = {"tables": {"table1": ["bm25", "ict"]}, "claims": ["C01"]}
    own, default = (planned(Path(f"config/{run}.yaml"), **few) for run in ("nano", "config"))
    assert all(sliced(own).title.endswith(" [config/nano.yaml]") for sliced in slices)
    assert all("[" not in sliced(default).title for sliced in slices)
    assert all("title" not in sliced(default).dumped() for sliced in (curves_plan, claims_plan)), (
        "its bytes are as before"
    )


@pytest.mark.parametrize("content", [None, "{}"])
def test_a_table_without_its_plan_is_shown_as_it_is(bare: Path, content: str | None) -> None:
    TABLES.mkdir(parents=True)
    if content:
        MADE.write_text(content)
    assert not is_of_another_plan(planned(), MADE)
