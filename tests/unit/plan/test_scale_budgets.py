"""No training that a table or figure of the catalogue asks for was left at its paper's size, by counts alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from encore.config.entries import PretrainStep
from encore.config.run_file import read_run
from encore.plan.catalogue import Catalogue
from encore.plan.lineage import StepName
from encore.plan.plan import Plan
from tests.support.small_forecast import needs_of
from tests.support.small_reads import figure_reads, table_reads

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
BUDGETS = {"config": 3.0e11, "small": 1.0e16}  # operations of a pre-training, as each configuration says
MOST = 1.4  # budgets of a pre-training; the lengths of texts are assumed here, so counts are off by a few tenths
LEAST = 0.5  # of one that starts from the scale's BERT; the two-tower paper's smaller shapes have their steps, not more
MOST_LEARNT = 2.5  # budgets of a fine-tuning: the control spends one more than plain fine-tuning, documents are long
NOT_HERE = ("real/",)  # tables of data that these configurations do not declare


@pytest.fixture(params=BUDGETS, scope="module")
def scale(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def plan(scale: str, catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plan]:
    """The plan of a scale, with every table, every figure and every pre-training step of the catalogue in it."""
    root = tmp_path_factory.mktemp("bare")
    for folder in ("config", "benchmarks"):
        (root / folder).symlink_to(ROOT / folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        planned = Plan(read_run(Path(f"config/{scale}.yaml")), catalogue)
        for table in (name for name in catalogue.tables if not name.startswith(NOT_HERE)):
            table_reads(planned, table)
        for figure in catalogue.figures:
            figure_reads(planned, figure)
        for name in catalogue.steps:
            if isinstance(planned.resolve.step(StepName(name)), PretrainStep):
                planned.model(planned.resolve.lineage(f"bert-base+{name}"), 0)
        yield planned


def flops(plan: Plan, kind: str) -> dict[str, float]:
    """What each training of a kind costs, by the name of its model."""
    found = [made for made in list(plan.made.values()) if made.stage.partition(".")[0] == kind]
    return {made.name: needs.operations for made, needs in zip(found, needs_of(plan, *found), strict=True)}


def test_every_pre_training_has_the_budget_of_its_scale(plan: Plan, scale: str) -> None:
    costs, budget = flops(plan, "pretrain"), BUDGETS[scale]
    start = {name: costs.pop(name) for name in list(costs) if "mlm-start" in name}
    assert {name: cost for name, cost in start.items() if cost > 2 * MOST * budget} == {}, "it has two, for all rows"
    assert len(costs) > 40
    assert {name: cost for name, cost in costs.items() if cost > MOST * budget} == {}
    common = {
        name: cost for name, cost in costs.items() if name.startswith(f"{plan.resolve.backbone_name('bert-base')}+")
    }
    assert len(common) > 30
    assert {name: cost for name, cost in common.items() if cost < LEAST * budget} == {}


def test_no_fine_tuning_was_left_at_the_papers_size(plan: Plan, scale: str) -> None:
    costs = flops(plan, "finetune")
    assert len(costs) > 150
    assert {name: cost for name, cost in costs.items() if cost > MOST_LEARNT * BUDGETS[scale]} == {}
