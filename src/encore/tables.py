"""Slices of the plan: which scores stand in a table's cells, which models in the figure of the pre-training steps.

Each is written to ``results/plan/<name>.json``.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from encore import lineage as naming
from encore.catalogue import explained, nearest
from encore.config import Column, PretrainStep, Row, Table
from encore.errors import EncoreError
from encore.growth import GROWING, growing_plan
from encore.lineage import Lineage
from encore.plan import Plan
from encore.planning.artifact import Artifact
from encore.storage import canonical, sha256, write_text

PLANS = Path("results/plan")
PAPERS = Path("config/papers")
OWN = "encore"  # the folder of our own tables, whose targets drop it
CURVES = "pretraining"  # the figure of the pre-training steps of all tables


def table_plan(plan: Plan, name: str) -> dict[str, Any]:
    """Rows with the folders of their scores, columns with their collections, and the design of the tests.

    Raises:
        EncoreError: the table, a row, a lineage, a dataset, a split or a measure is unknown.
    """
    table = _table(plan, name)
    rows = _chosen(plan, name, table)
    columns = [explained(lambda column: _column(plan, column), column, f"table {name!r}") for column in table.columns]
    return {
        "name": name.rsplit("/", 1)[-1],
        "paper": name.split("/")[0] if "/" in name else OWN,
        "title": table.title,
        "rows": [explained(lambda row: _row(plan, table, row), row, f"table {name!r}, row {row.id!r}") for row in rows],
        "columns": columns,
        "dataset_labels": {column["dataset"]: plan.dataset_name(column["dataset"]) for column in columns},
        "significance": _design(table, rows),
        **_reported(name, table),
        "notes": [*table.notes, *_absences(plan, table)],
        "stand_in": plan.config.stand_in,
    }


def table_scores(plan: Plan, name: str) -> list[Artifact]:
    """Every folder of scores that a table reads, once, in the order of its rows."""
    folders = [seed["scores"] for row in table_plan(plan, name)["rows"] for seed in row["seeds"]]
    return [plan.find(folder) for folder in dict.fromkeys(folders)]


def table_latencies(plan: Plan, name: str) -> list[Artifact]:
    """Every measurement of latency and size that a table reads, once."""
    folders = [row["efficiency"] for row in table_plan(plan, name)["rows"] if row.get("efficiency")]
    return [plan.find(folder) for folder in dict.fromkeys(folders)]


def curves_plan(plan: Plan) -> dict[str, Any]:
    """Every pre-training step of the declared tables, in their order, with its models; no rows where there is none.

    A step is known by the lineage that ends with it. It is called as the table calls it; where rows disagree, by the
    step's name; and by its lineage where two steps would be called alike.
    """
    labels = _labels_of_steps(plan)
    titles = {last: next(iter(given)) if len(given) == 1 else str(last.steps[-1]) for last, given in labels.items()}
    times = Counter(titles.values())
    rows = [
        {
            "label": title if times[title] == 1 else str(last),
            "step": str(last.steps[-1]),
            "lineage": str(last),
            "seeds": [{"seed": seed, "model": plan.model(last, seed).folder} for seed in plan.config.seeds],
        }
        for last, title in titles.items()
    ]
    return {"name": CURVES, "rows": rows, "stand_in": plan.config.stand_in}


def curves_models(plan: Plan) -> list[Artifact]:
    """Every model whose curves the figure of the pre-training steps shows."""
    return [plan.find(seed["model"]) for row in curves_plan(plan)["rows"] for seed in row["seeds"]]


def declared(plan: Plan) -> dict[str, dict[str, Any]]:
    """The slices of all that the configuration declares, by name."""
    tables = {name: table_plan(plan, name) for name in plan.config.tables}
    curves = curves_plan(plan)
    growing = growing_plan(plan)
    figures = {each["name"]: each for each in (curves, growing) if each["rows"]}
    return tables | figures


def plan_file(name: str) -> Path:
    """Where a slice of the plan lies."""
    return PLANS / f"{name}.json"


def write_plans(plan: Plan) -> None:
    """Write all declared slices; a file whose bytes would be the same is not touched."""
    for name, content in declared(plan).items():
        path, text = plan_file(name), canonical(content) + "\n"
        if not path.is_file() or path.read_text() != text:
            write_text(path, text)


def _labels_of_steps(plan: Plan) -> dict[Lineage, set[str]]:
    """What rows call each pre-training step: a row's label is about the last of its steps, if about any."""
    labels: dict[Lineage, set[str]] = {}
    for row in (row for name in plan.config.tables for row in table_plan(plan, name)["rows"]):
        if row["system"] in plan.catalogue.systems:
            continue
        last, (lineage, index) = None, naming.split_index(row["system"])
        for last in _pretrained(plan, naming.parse(lineage)):
            labels.setdefault(last, set())
        if last is not None and index is None:  # a row about an index is not called after the step
            labels[last].add(row["label"])
    return labels


def _pretrained(plan: Plan, lineage: Lineage) -> Iterator[Lineage]:
    """The beginnings of a lineage that end with a pre-training step."""
    for count, step in enumerate(lineage.steps, 1):
        if isinstance(plan.step(step), PretrainStep):
            yield Lineage(lineage.backbone, lineage.steps[:count])


def _table(plan: Plan, name: str) -> Table:
    if name in (CURVES, GROWING):
        raise EncoreError(f"tables.{name}: a figure that is no table's has that name; rename the table")
    if name not in plan.catalogue.tables:
        raise EncoreError(f"tables.{name}: no such table in config/papers{nearest(name, plan.catalogue.tables)}")
    return plan.catalogue.tables[name]


def _chosen(plan: Plan, name: str, table: Table) -> list[Row]:
    """The rows that the run builds, in the table's order: all, or those listed by ``id`` or by ``setting: id``."""
    wanted = plan.config.tables.get(name, "all")
    if wanted == "all":
        return table.rows
    known = {key for row in table.rows for key in _keys(row)}
    for row in wanted:
        if row not in known:
            raise EncoreError(f"tables.{name}: no row {row!r}{nearest(row, known)}")
    return [row for row in table.rows if _keys(row) & set(wanted)]


def _design(table: Table, rows: list[Row]) -> dict[str, Any] | None:
    """The tests, against those comparators that the run builds."""
    if table.significance is None:
        return None
    built = {row.id for row in rows}
    design = table.significance.model_dump()
    return design | {"comparators": [row for row in table.significance.comparators if row in built]}


def _reported(name: str, table: Table) -> dict[str, Any]:
    """The file of the paper's printed numbers, and its digest, so that a corrected number makes the table again."""
    if table.reported is None:
        return {}
    path = PAPERS / (name.split("/")[0] if "/" in name else OWN) / table.reported
    if not path.is_file():
        raise EncoreError(f"table {name!r}: the reported numbers {path} are missing; correct `reported:`")
    return {"reported": str(path), "reported_sha256": sha256(path)}


def _keys(row: Row) -> set[str]:
    return {row.id, f"{row.setting}: {row.id}"}


def _row(plan: Plan, table: Table, row: Row) -> dict[str, Any]:
    """A row with its scores under every seed; a system without chance in it has one entry, whose seed is null."""
    reads = dict.fromkeys(
        _read(plan, column) for column in table.columns if _present(plan, column) and not column.efficiency
    )
    if len(reads) > 1:
        raise EncoreError("its columns need several runs of one system; give each dataset a table of its own")
    ((dataset, topics),) = reads
    seeds: list[int | None] = list(plan.config.seeds) if plan.has_chance(row.system) else [None]
    scores = [{"seed": seed, "scores": plan.scores(row.system, seed, dataset, topics).folder} for seed in seeds]
    return {**row.model_dump(), "system": plan.canonical(row.system), "seeds": scores, **_efficiency(plan, table, row)}


def _efficiency(plan: Plan, table: Table, row: Row) -> dict[str, Any]:
    """The measurement of a row's costs, if the table shows any: of the first seed's model, as all cost alike.

    Raises:
        EncoreError: the columns want measurements of different queries.
    """
    wanted = dict.fromkeys(_read(plan, column) for column in table.columns if column.efficiency)
    if not wanted:
        return {}
    if len(wanted) > 1:
        raise EncoreError("its columns of latency and size are about different queries; give them one split")
    ((dataset, topics),) = wanted
    seed = plan.config.seeds[0] if plan.has_chance(row.system) else None
    measured = plan.latency(row.system, seed, dataset, topics)
    return {"efficiency": measured.folder if measured else None}


def _column(plan: Plan, column: Column) -> dict[str, Any]:
    """A column with its collection; without one where the collection says that it cannot have the split."""
    fields, dataset = plan.dataset(column.dataset), plan.dataset_name(column.dataset)
    if column.split in fields.absent:
        return {**_fields(column), "collection": ""}
    if column.split not in fields.splits:
        near = nearest(column.split, fields.splits)
        mend = f"; if it cannot have one, say why under its `absent:`{near}"
        raise EncoreError(f"column {column.id!r}: dataset {dataset!r} has no split {column.split!r}{mend}")
    measures = fields.splits[column.split].measures
    if column.measure not in measures and not column.efficiency:
        near = nearest(column.measure, measures)
        raise EncoreError(f"column {column.id!r}: {column.measure!r} is not measured on split {column.split!r}{near}")
    return {**_fields(column), "collection": plan.collection(column.dataset).name}


def _fields(column: Column) -> dict[str, Any]:
    """A column as the plan says it; a table without columns of costs reads as it did before there were any."""
    return column.model_dump(exclude=None if column.efficiency else {"efficiency"})


def _absences(plan: Plan, table: Table) -> list[str]:
    """Why columns are empty, one sentence a column."""
    reasons = {column.label: plan.dataset(column.dataset).absent.get(column.split) for column in table.columns}
    return [f"{label} is not testable here: {reason}." for label, reason in reasons.items() if reason]


def _present(plan: Plan, column: Column) -> bool:
    return column.split not in plan.dataset(column.dataset).absent


def _read(plan: Plan, column: Column) -> tuple[str, str]:
    """The dataset and the queries that a column's run answers."""
    return plan.dataset_name(column.dataset), plan.dataset(column.dataset).splits[column.split].topics or column.split
