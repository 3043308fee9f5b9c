"""Three scales, the same tables: every entry of the catalogue and every table plans at each, without a file."""

import copy
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from encore.commands.preflight import jobs as requested
from encore.commands.preflight.jobs import Requests
from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan.artifacts import doc2query
from encore.plan.artifacts.collections import named_collection
from encore.plan.catalogue import Catalogue, read_step
from encore.plan.lineage import Lineage
from encore.plan.plan import Plan
from encore.products.tables.entries import has_own_value
from encore.products.tables.plan import table_plan
from encore.products.targets import everything_declared, lineage_targets

ROOT = Path(__file__).parents[3]
SCALES = ("config", "small", "paper")
# What a step can come after: the first of these that it goes on from.
PARENTS = [
    "bert-base",
    "bert-base+bow+bow-ft-bm25",
    "bert-base+bow+bow-qa-1",
    "bert-base-tct+colbert",
    "bert-base-tct+colbert+tct",
    "bert-base-tct+colbert+tct+tct-doc",
    "two-tower",
]


@pytest.fixture(scope="module")
def plans(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Plan]]:
    """Each scale's plan, in a folder where there is nothing but the configuration."""
    root = tmp_path_factory.mktemp("bare")
    (root / "config").symlink_to(ROOT / "config")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        yield {name: Plan(RunConfig.model_validate(read(name)), catalogue) for name in SCALES}


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / f"config/{name}.yaml").read_text())
    return content


def test_the_scales_declare_the_same_tables() -> None:
    assert len({str(sorted(read(name)["tables"].items())) for name in SCALES}) == 1


@pytest.mark.parametrize("name", SCALES)
def test_every_declared_table_plans_with_all_its_rows_and_columns(plans: dict[str, Plan], name: str) -> None:
    plan = plans[name]
    assert everything_declared(plan)
    for table in plan.config.tables:
        made, entry = table_plan(plan, table).dumped(), plan.catalogue.tables[table]
        assert [row["id"] for row in made["rows"]] == [row.id for row in entry.rows]
        assert [column["id"] for column in made["columns"]] == [column.id for column in entry.columns]
        said = " ".join(made["notes"])
        for row, own in zip(entry.rows, made["rows"], strict=True):
            for column in (
                column for column in entry.columns if column.source == "measure" and has_own_value(row, column)
            ):
                shown = own["cells"][column.id]["reads"]
                reason = plan.resolve.datasets.absence(
                    own["cells"][column.id]["dataset"], own["cells"][column.id]["split"]
                )
                assert bool(shown) != bool(reason), f"{table}, {row.id}, {column.id}: a value, or why there is none"
                assert reason is None or reason in said
    assert not list(Path().glob("data*"))


@pytest.mark.slow
def test_the_three_have_the_same_trainings(plans: dict[str, Plan]) -> None:
    """Only names and numbers differ: as many models of each kind, whatever they start from and read."""
    trained = []
    for plan in (plans[name] for name in SCALES):
        everything_declared(plan)
        declared = {artifact.folder: artifact for artifact in _behind(plan)}
        models = (made for made in declared.values() if made.folder.startswith("results/models/"))
        own = (made for made in models if made.stage != "start" and "mlm-start" not in made.folder)
        trained.append(Counter(made.stage for made in own))
    assert trained[0] == trained[1] == trained[2]
    assert trained[0]["finetune"] > 50
    assert len([stage for stage in trained[0] if stage.startswith("pretrain.")]) >= 15


def _behind(plan: Plan) -> Iterator[Any]:
    for table in plan.config.tables:
        for row in table_plan(plan, table).dumped()["rows"]:
            for folder in {read["folder"] for cell in row["cells"].values() for read in cell["reads"]}:
                yield from plan.find(folder).ancestors()


@pytest.mark.parametrize("name", ["small", "paper"])
def test_every_step_plans_after_a_suitable_parent(plans: dict[str, Plan], name: str) -> None:
    plan = plans[name]
    for step, fields in plan.catalogue.steps.items():
        if fields["collection"] in plan.config.scale.absent:
            continue
        model = plan.model(_after(plan, step), plan.config.seeds[0])
        assert model.name.startswith(tuple(plan.catalogue.backbones)), step
        assert model.stage.partition(".")[0] == fields["kind"], step


def _after(plan: Plan, step: str) -> Lineage:
    complaints = []
    for parent in PARENTS:
        try:
            lineage = plan.resolve.lineage(f"{parent}+{step}")
            plan.model(lineage, plan.config.seeds[0])
            return lineage
        except EncoreError as error:
            complaints.append(str(error))
    raise AssertionError(f"{step} follows nothing: {complaints}")


def test_every_dataset_plans_and_says_what_it_is_made_of(plans: dict[str, Plan]) -> None:
    plan = plans["paper"]
    for name in plan.resolve.datasets:
        made = named_collection(plan, name)
        assert made.name.startswith(f"{name}-")
        fields = plan.resolve.own(name).fields
        kind = fields.kind
        if kind in ("ir-datasets", "subset", "concat", "with-titles"):
            assert made.inputs, f"{name} of kind {kind} is made of nothing"


def test_every_backbone_system_and_expansion_plans(plans: dict[str, Plan]) -> None:
    plan = plans["paper"]
    for backbone in plan.catalogue.backbones:
        assert plan.model(Lineage(backbone, ()), 0).stage == "start"
    for system in plan.catalogue.systems:
        scores = plan.scores(system, 0 if plan.resolve.has_chance(system) else None, "msmarco-passage", "test")
        assert scores.owner.startswith(system)
    for name in plan.catalogue.doc2query:
        assert doc2query.predicted_queries(plan, name, "msmarco-passage").stage.startswith("predict_queries")


def test_a_lineage_is_asked_what_the_tables_of_the_scale_are_about(plans: dict[str, Plan]) -> None:
    targets = lineage_targets(plans["paper"], "bert-base+ict~temperature=0.1+marco-bm25")
    datasets = {target.split("/")[3].partition(".")[0] for target in targets}
    assert {"msmarco-passage", "msmarco-document"} <= datasets
    assert not [name for name in datasets if name.startswith("beir-")]


def test_a_paper_s_value_is_what_the_catalogue_says(plans: dict[str, Plan]) -> None:
    scale = read("paper")["scale"]
    assert set(scale) == {"absent", "replace_prefix"}, "nothing is scaled"
    plan = plans["paper"]
    for name in ("costa", "bow", "ict", "cpdae", "marco-bm25", "tct"):
        (step,) = plan.resolve.lineage(f"bert-base+{name}").steps
        own = read_step(plan.catalogue.steps[name])
        assert plan.resolve.step(step).model_dump() == own.model_dump()


# Shards and what jobs ask for


def test_shards_may_be_given_by_dataset(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    def indexed(shards: Any) -> set[str]:
        content = copy.deepcopy(read("nano")) | {"execution": {"shards": shards}}
        plan = Plan(RunConfig.model_validate(content), catalogue)
        run = plan.scores("bert-base+marco-bm25", 0, "msmarco-passage", "test").inputs["run"]
        return {artifact.name for role, artifact in run.inputs.items() if role.startswith("shard")}

    assert indexed({"pydocs-stdlib": 2}) == indexed(2) == {"000-of-002", "001-of-002"}
    assert indexed({"pydocs": 2}) == {"000-of-001"}
    with pytest.raises(EncoreError, match=r"execution\.shards: unknown dataset 'pydoc'; did you mean pydocs"):
        indexed({"pydoc": 2})


def test_a_search_that_encodes_again_asks_for_the_time_of_both(
    plans: dict[str, Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requested, "SPARE_TIME", 300.0)  # so that whole hours tell them apart
    paper = plans["paper"]
    requests = Requests(paper)
    run = paper.scores("bert-base+marco-bm25", 0, "msmarco-passage", "test").inputs["run"]
    shards = [made for role, made in run.inputs.items() if role.startswith("shard")]
    alone, encoding = requests.minutes(run, 0), sum(requests.minutes(shard, 0) for shard in shards)
    indexes = [Path(shard.folder, "index") for shard in shards]
    for index in indexes:
        index.parent.mkdir(parents=True)
        index.write_bytes(b"vectors")
    assert requests.minutes(run, 0) == alone
    for index in indexes:
        index.write_bytes(b"")
    assert alone + encoding / 2 < requests.minutes(run, 0) <= alone + encoding
    shutil.rmtree("results")
