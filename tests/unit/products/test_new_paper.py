"""A new paper is a new folder: what the documentation says to write is a table and a claim, with nothing else."""

import re
import shutil
from pathlib import Path

import pytest

from encore.config.run_file import read_run
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.products.claims.entries import read_claims
from encore.products.claims.plan import all_shapes, cells_of
from encore.products.tables.plan import table_plan

ROOT = Path(__file__).parents[3]


def test_the_folder_of_the_documentation_is_a_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = (ROOT / "config/README.md").read_text().split("## A new paper")[1]
    blocks = re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    mine = Path("config/papers/mine")
    (mine / "reported").mkdir(parents=True)
    for name, block in zip(("tables.yaml", "reported/table1.csv", "claims.yaml"), blocks, strict=True):
        assert name in section
        (mine / name).write_text(block)
    catalogue = load_catalogue(Path("config"))
    content = table_plan(Plan(read_run(Path("config/nano.yaml")), catalogue), "mine/table1").dumped()
    assert (content["paper"], content["reported"]) == ("mine", "config/papers/mine/reported/table1.csv")
    assert len(content["rows"][2]["cells"]["mrr10"]["reads"]) == 1
    assert content["significance"]["printed"] == {"*": "bert"}
    for name in ("My-Paper", "mine.2"):
        mine.rename(mine.with_name(name))
        with pytest.raises(EncoreError, match=rf"{name}/tables.yaml: '{name}' is part of a target; name it with"):
            load_catalogue(Path("config"))
        mine.with_name(name).rename(mine)
    paper, claim = read_claims(mine.parent)["C1001"]
    assert paper == "mine"
    assert cells_of("C1001", claim, all_shapes(catalogue))
