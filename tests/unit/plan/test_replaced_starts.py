"""A released encoder in place of a pre-training: one line of a run's scale, and tables need no pre-training."""

from pathlib import Path

import pytest

from encore.config.run_file import read_run
from encore.config.validation import read_yaml
from encore.errors import EncoreError
from encore.plan.artifact import upstream
from encore.plan.plan import Plan
from encore.products.tables.plan import table_plan
from tests.support.small_reads import table_reads

PAPER = Path("config/paper.yaml")


def planned(catalogue, starts):
    run = read_yaml(PAPER)
    run["scale"] = {**(run.get("scale") or {}), "replace_prefix": starts}
    return Plan(read_run(PAPER, run), catalogue)


def lineages(plan, row):
    content = table_plan(plan, "costa/table1").dumped()
    return {cell["system"] for each in content["rows"] if each["id"] == row for cell in each["cells"].values()}


def test_a_table_row_needs_no_pre_training(catalogue):
    plan = planned(catalogue, {"bert-base+costa": "costa-released"})
    assert lineages(plan, "seed") == {"seed-released+marco-bm25", "seed-released+marco-bm25+marco-hn"}
    assert lineages(plan, "costa") == {"costa-released+marco-bm25", "costa-released+marco-bm25+marco-hn"}
    stages = [artifact.stage for artifact in upstream(table_reads(plan, "costa/table1"))]
    without = [artifact.stage for artifact in upstream(table_reads(planned(catalogue, {}), "costa/table1"))]
    assert "pretrain.costa" in without
    assert not {"pretrain.seed", "pretrain.costa"} & set(stages)
    assert "pretrain.ict" in stages


def test_seed_is_the_released_encoder_at_the_papers_scale_and_trained_below_it(catalogue):
    for table in ("costa/table1", "costa/table2", "cpdae/table1", "cpdae/table2", "cpdae/table3"):
        content = table_plan(Plan(read_run(PAPER), catalogue), table).dumped()
        rows = [row for row in content["rows"] if row["id"] == "seed"]
        systems = {cell["system"] for row in rows for cell in row["cells"].values() if cell.get("system")}
        assert systems
        assert all(system.startswith("seed-released+") for system in systems)
    small = Plan(read_run(Path("config/small.yaml")), catalogue)
    assert lineages(small, "seed") == {"mini+seed+marco-bm25", "mini+seed+marco-bm25+marco-hn"}
    alternative = planned(catalogue, {"seed-released": "bert-base+seed"})
    assert lineages(alternative, "seed") == {"bert-base+seed+marco-bm25", "bert-base+seed+marco-bm25+marco-hn"}


def test_the_longest_beginning_counts_and_overrides_are_another_beginning(catalogue):
    plan = planned(catalogue, {"bert-base": "retromae-released", "bert-base+costa": "costa-released"})
    assert str(plan.resolve.lineage("bert-base+costa+marco-bm25")) == "costa-released+marco-bm25"
    assert str(plan.resolve.lineage("bert-base+costa~temperature=0.05+marco-bm25")) == (
        "retromae-released+costa~temperature=0.05+marco-bm25"
    )
    assert str(plan.resolve.lineage("bert-base+marco-bm25")) == "retromae-released+marco-bm25"


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        (
            {"bert-bse+seed": "seed-released"},
            "scale.replace_prefix: 'bert-bse.seed': unknown name 'bert-bse'; did you mean",
        ),
        ({"bert-base+sed": "seed-released"}, "unknown name 'sed'; did you mean"),
        ({"bert-base+seed": "seed-relased"}, "unknown name 'seed-relased'; did you mean seed-released"),
    ],
)
def test_a_beginning_that_names_nothing_is_refused(catalogue, starts, message):
    with pytest.raises(EncoreError, match=message):
        planned(catalogue, starts)
