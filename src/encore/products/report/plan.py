"""The report's slice of the plan: which products it shows, and what the papers print of all that was not run.

It shows what the configuration declares, and of the other tables of the catalogue those that exist as this
configuration makes them; it never requests another table.
"""

from collections import defaultdict
from pathlib import Path

from encore.plan.lineage import StepName, parse, spelled
from encore.plan.plan import Plan
from encore.plan.tuning import TUNING
from encore.products.claims.contrasts import Address
from encore.products.claims.entries import CLAIMS, products_of, read_claims, read_papers
from encore.products.claims.plan import all_shapes, cells_of, chosen_claims, claims_plan
from encore.products.declared import declared_figures, wanted_tables
from encore.products.report.slice import ReportSlice, StatedClaim
from encore.products.slices import built_from, paper_of
from encore.products.tables.entries import Table, printed_as
from encore.products.tables.grid import CellRequest, PlannedColumn, PlannedRow
from encore.products.tables.layout import Layout
from encore.products.tables.plan import table_plan
from encore.products.tables.reported import reported_file
from encore.storage.csv_rows import read_rows
from encore.storage.files import full_digest, sha256

REPORT = "report"
TEMPLATES = Path(__file__).parent / "templates"


def report_plan(plan: Plan) -> ReportSlice:
    """What the page shows."""
    records = {name: Path(f"results/tables/{name}.manifest.json") for name in wanted_tables(plan)}
    # Without a manifest nothing is planned, which takes seconds.
    others = [
        name for name, each in records.items() if each.is_file() and built_from(each, table_plan(plan, name).dumped())
    ]
    tables, of_claims = list(dict.fromkeys([*plan.config.tables, *others])), Path(f"results/{CLAIMS}.manifest.json")
    claims, shapes = read_claims(), all_shapes(plan.catalogue)
    chosen_claims(plan, claims)  # a wrong name is refused before any job, though no claim may be requested
    own = plan.config.proxy_data == "own"  # of which no paper says anything
    claims = {} if own else claims
    return ReportSlice(
        name=REPORT,
        title=plan.config.title,
        templates=templates_digest(),
        run=plan.config.called,
        proxy_data=plan.config.proxy_data,
        tables=list(tables),
        figures=declared_figures(plan),
        claims=of_claims.is_file() and bool(built_from(of_claims, claims_plan(plan).dumped())),
        stated={
            name: StatedClaim(paper=paper, place=claim.place, says=claim.says)
            for name, (paper, claim) in claims.items()
        },
        about={name: products_of(claim) for name, (_, claim) in claims.items()},
        cells={name: _grouped(cells_of(name, claim, shapes)) for name, (_, claim) in claims.items()},
        printed={
            name: _printed(name, table)
            for name, table in sorted(plan.catalogue.tables.items())
            if table.reported and name not in tables and not own
        },
        datasets={name: note for name in plan.resolve.datasets if (note := plan.resolve.dataset(name).fields.note)},
        trials=_trials(plan),
        papers={key: paper.name for key, paper in read_papers().items()},
    )


def templates_digest() -> str:
    """The digest of the page's templates, style and program, so that an edited one makes the page again."""
    files = {path.name: sha256(path) for path in TEMPLATES.iterdir() if path.is_file()}
    return full_digest(files)


def _printed(name: str, table: Table) -> Layout:
    """A table as its paper prints it, in the form of a table's slice, whose cells read nothing."""
    kept, shown = {"id", "label", "setting", "reported_only"}, {"id", "label", "hidden", "mean_of", "reported_scale"}
    return Layout(
        name=name.rsplit("/", 1)[-1],
        paper=paper_of(name),
        title=table.title,
        unit=table.unit,
        rows=[
            PlannedRow(
                **row.model_dump(include=kept),
                cells={column.id: CellRequest(reported=printed_as(row, column)) for column in table.columns},
            )
            for row in table.rows
        ],
        columns=[
            PlannedColumn(
                source=column.source, **column.model_dump(include=shown | ({"gain"} if column.gain else set()))
            )
            for column in table.columns
        ],
        notes=table.notes,
        proxy_data=False,
        **reported_file(name, table),
    )


def _grouped(cells: list[Address]) -> list[tuple[str, str, str, list[str]]]:
    """Cells by table, setting and row, each with its columns."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for at in cells:
        rows.setdefault(at[:3], []).append(at.column)
    return [(*row, columns) for row, columns in rows.items()]


def _trials(plan: Plan) -> dict[str, dict[str, int]]:
    """How many values were tried for the one that each step of a run has, by field, as the records of tuning say.

    Other runs tried values for the same steps, from other starts and with other data: a trial counts where its start is
    one of the run's backbones, and for a step whose value in this run is among those that were tried.
    """
    starts = {*plan.config.scale.backbones.values()}
    values: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in sorted(TUNING.glob("*.csv")):
        tried: dict[tuple[str, str], set[str]] = defaultdict(set)
        for line in read_rows(path, "step", "field", "value", "lineage"):
            if parse(line["lineage"]).backbone in starts:
                tried[line["step"], line["field"]].add(line["value"])
        for (name, field), found in tried.items():
            step = plan.resolve.step(StepName(name))
            if "+".join(spelled(getattr(step, each, "")) for each in field.split("+")) in found:
                values[name][field] |= found
    return {step: {field: len(tried) for field, tried in fields.items()} for step, fields in sorted(values.items())}
