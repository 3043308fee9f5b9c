"""What people look at (tables, figures, claims, the report): the files, slice of the plan and inputs of each kind.

A product has no folder of its own and no digest in its name. Its slice of the plan, ``results/plan/<name>.json``, says
all that decides it, and is written again when that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.products.claims.entries import CLAIMS, PRINTED
from encore.products.claims.plan import claims_plan, claims_reads, printed_plan
from encore.products.figures.plan import curves_models, curves_plan, figure_plan, figure_reads
from encore.products.report.plan import REPORT, report_plan, report_reads
from encore.products.tables.plan import CURVES, table_plan, table_reads
from encore.products.tables.table import FORMATS
from encore.products.targets import CURVES_MISSING, forest_plan

_PICTURE = ("png", "svg", "csv")
# The endings of a product's files, by its rule; the one that people ask for first.
FILES = {
    "table": FORMATS,
    **dict.fromkeys(("figure", "draw", "curves"), _PICTURE),
    **dict.fromkeys((PRINTED, CLAIMS), ("csv", "md")),
    REPORT: ("html", "runs.json"),
}
Slice = Callable[[Plan, str], dict[str, Any]]
Reads = Callable[[Plan, str, dict[str, Any]], list[str]]


@dataclass(frozen=True)
class Product:
    """A kind of product.

    ``stem`` is what its files have in common, with the wildcard that names it, ``{table}`` or ``{figure}``; ``record``
    is its manifest. ``slice`` gives its slice of the plan for its name, and ``reads``, for both, the files that it is
    made from.
    """

    rule: str
    stem: str
    endings: tuple[str, ...]
    category: str
    slice: Slice
    reads: Reads
    memory_mb: int = 2_000
    minutes: int = 30

    @property
    def files(self) -> list[str]:
        """Its files, the one that people ask for first, its manifest last."""
        return [*(f"{self.stem}.{ending}" for ending in self.endings), self.record]

    @property
    def record(self) -> str:
        """Its manifest."""
        return "results/report/manifest.json" if self.rule == REPORT else f"{self.stem}.manifest.json"

    @property
    def wildcard(self) -> str | None:
        """The wildcard that names it; None where there is one of its kind."""
        return self.stem[self.stem.index("{") + 1 : -1] if self.stem.endswith("}") else None

    @property
    def called(self) -> str:
        """The name of its log: the wildcard, or the rule's where there is one of its kind."""
        return f"{{{self.wildcard}}}" if self.wildcard else self.rule

    def record_of(self, name: str) -> str:
        """The manifest of the product whose slice of the plan is called so."""
        return self.record.format(**{self.wildcard: name}) if self.wildcard else self.record

    def name(self, wildcards: Mapping[str, str]) -> str:
        """What its slice of the plan is called."""
        return wildcards[self.wildcard] if self.wildcard else ONE_OF_ITS_KIND.get(self.rule, self.rule)


ONE_OF_ITS_KIND = {"curves": CURVES}


def products(run: Path) -> tuple[Product, ...]:
    """Every kind of product, a table first.

    Args:
        run: the run's file, which the report names.
    """
    return (
        Product("table", "results/tables/{table}", FILES["table"], "Tables", table_plan, _reads_of_table),
        _figure("figure", "{table}", forest_plan, lambda plan, name, _: _manifests(table_reads(plan, name))),
        _figure("draw", "{figure}", figure_plan, lambda plan, name, _: _manifests(figure_reads(plan, name))),
        _figure(
            "curves",
            CURVES,
            lambda plan, name: _with_rows(curves_plan(plan), CURVES_MISSING),
            lambda plan, name, _: _manifests(curves_models(plan)),
        ),
        _claims(PRINTED, lambda plan, name: printed_plan(plan.catalogue), lambda *_: []),
        _claims(
            CLAIMS,
            lambda plan, name: claims_plan(plan),
            lambda plan, name, content: _manifests(claims_reads(plan, content)),
        ),
        Product(
            REPORT,
            "results/report/index",
            FILES[REPORT],
            "Report",
            lambda plan, name: report_plan(plan, run),
            lambda plan, name, content: report_reads(content),
        ),
    )


def _figure(rule: str, name: str, planned: Slice, reads: Reads) -> Product:
    return Product(rule, f"results/figures/{name}", FILES[rule], "Figures", planned, reads)


def _claims(name: str, planned: Slice, reads: Reads) -> Product:
    return Product(name, f"results/{name}", FILES[name], "Claims", planned, reads, memory_mb=4_000)


def _manifests(artifacts: Iterable[Artifact]) -> list[str]:
    return [artifact.manifest for artifact in artifacts]


def _reads_of_table(plan: Plan, name: str, content: dict[str, Any]) -> list[str]:
    """The manifests that a table is made from, and how close its runs are to released ones, if the run names such."""
    released = [f"results/tables/{name}.reproduction.csv"] if content.get("references") else []
    return _manifests(table_reads(plan, name)) + released


def _with_rows(content: dict[str, Any], missing: str) -> dict[str, Any]:
    """A figure's slice that has something to draw.

    Raises:
        EncoreError: it has not.
    """
    if not content["rows"]:
        raise EncoreError(missing)
    return content
