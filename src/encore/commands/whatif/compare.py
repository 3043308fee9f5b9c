"""Two plans side by side: which jobs the second one adds, which cells and claims it changes, what that takes."""

from dataclasses import dataclass
from typing import Any

from encore.commands.preflight.forecast import Forecast
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.claims.contrasts import Address
from encore.products.claims.entries import PRINTED, products_of, read_claims
from encore.products.claims.plan import cells_of, printed_plan, run_shapes
from encore.products.declared import declared
from encore.products.figures.claimed import figure_cells
from encore.products.kinds import BY_RULE, kinds_of
from encore.products.report.plan import REPORT, report_plan
from encore.products.tables.layout import upstream_cells
from encore.products.tables.plan import table_plan
from encore.products.tables.reported import PAPERS


@dataclass(frozen=True)
class PlanChange:
    """What a change does.

    ``jobs`` are those that only the change makes necessary, by rule; ``anyway`` counts those that are missing without
    it too. ``cells`` are the cells whose number would come from other artifacts, of tables that the run declares.
    """

    jobs: dict[str, list[str]]
    anyway: int
    gpu_hours: float
    disk: float
    cells: list[Address]
    claims: list[str]

    @property
    def count(self) -> int:
        """How many jobs only the change makes necessary."""
        return sum(map(len, self.jobs.values()))


def compare_plans(before: Plan, after: Plan, forecasts: tuple[Forecast, Forecast]) -> PlanChange:
    """Compare two plans; ``forecasts`` are theirs, of all that they declare.

    Raises:
        EncoreError: a claim, or a table of the first plan, is wrong.
    """
    old, new = forecasts
    missing = {job.artifact.folder for job in old.missing if job.rule not in BY_RULE}
    added = [job for job in new.missing if job.artifact.folder not in missing and job.rule not in BY_RULE]
    needs = new.needs(added)
    slices = declared(before), declared(after)
    jobs: dict[str, list[str]] = {}
    for job in added:
        jobs.setdefault(job.rule, []).append(job.artifact.folder)
    for name in slices[1]:
        if slices[0].get(name) != slices[1][name]:
            for kind in kinds_of(name, slices[1][name]):
                if kind.exists(slices[1][name]):
                    jobs.setdefault(kind.rule, []).append(name)
    jobs |= {rule: ["all"] for rule in _pages(before, after, products_differ=slices[0] != slices[1])}
    return PlanChange(
        jobs=jobs,
        anyway=len(missing),
        gpu_hours=needs.gpu_hours,
        disk=needs.disk,
        cells=[cell for name in after.config.tables for cell in changed_cells(before, after, name)],
        claims=changed_claims(before, after),
    )


def changed_cells(before: Plan, after: Plan, product: str) -> list[Address]:
    """The cells of a table, or points of a figure, that read other artifacts; those of one plan only are among them."""
    reads = [_reads(plan, product) for plan in (before, after)]
    return [cell for cell in dict.fromkeys([*reads[1], *reads[0]]) if reads[0].get(cell) != reads[1].get(cell)]


def changed_claims(before: Plan, after: Plan) -> list[str]:
    """The claims that rest on a changed cell or point, of any table or figure of the papers."""
    cells: dict[str, set[Address]] = {}
    found, shapes = [], [run_shapes(plan) for plan in (before, after)]
    for name, (_, claim) in read_claims(PAPERS).items():
        for product in products_of(claim):
            if product not in cells:
                cells[product] = set(changed_cells(before, after, product))
        about = {cell for known in shapes for cell in cells_of(claim, known)}
        if any(about & cells[product] for product in products_of(claim)):
            found.append(name)
    return found


def _reads(plan: Plan, table: str) -> dict[Address, Any]:
    """What each cell of ours reads; nothing for a table or figure that the plan cannot have."""
    try:
        if table in plan.catalogue.figures:
            return {Address(table, *at): parts for at, parts in figure_cells(plan, table).items()}
        content = table_plan(plan, table)
    except EncoreError:
        return {}
    return {
        Address(table, row["setting"], row["id"], column): [
            (cell["reads"], cell["value"]) for cell in upstream_cells(content, row["setting"], row["id"], column)
        ]
        for row in content["rows"]
        for column in row["cells"]
    }


def _pages(before: Plan, after: Plan, *, products_differ: bool) -> list[str]:
    """What every run has: the claims on printed numbers, and the report of all products."""
    printed = [printed_plan(plan.catalogue) for plan in (before, after)]
    reports = [report_plan(plan) | {"run": ""} for plan in (before, after)]  # whatever their files are called
    found = [PRINTED] if printed[0] != printed[1] else []
    return [*found, *([REPORT] if products_differ or reports[0] != reports[1] else [])]
