"""What people look at (tables, figures, claims, the report): the files, slice of the plan and inputs of each kind.

A product has no folder of its own and no digest in its name. Its slice of the plan, ``results/plan/<name>.json``, says
all that decides it, and is written again when that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.claims.slice import CLAIMS, PRINTED, claims_plan, claims_reads, printed_plan
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.figures import figure_plan, figure_reads
from encore.plan.figures.corpus_size import CORPUS_SIZE, corpus_size_artifacts, corpus_size_plan
from encore.plan.plan import Plan
from encore.plan.tables import CURVES, curves_models, curves_plan, table_plan, table_reads
from encore.report.plan import REPORT, report_plan, report_reads
from encore.targets import CORPUS_SIZE_MISSING, CURVES_MISSING, everything_declared

FIGURE_FILES = ("png", "svg", "csv")


@dataclass(frozen=True)
class Product:
    """A kind of product.

    ``stem`` is what its files have in common, with the wildcard that names it, ``{table}`` or ``{figure}``; ``record``
    is its manifest. ``slice`` gives its slice of the plan and ``reads`` the manifests that it is made from; both take
    the plan, the run's file and the product's name.
    """

    rule: str
    stem: str
    endings: tuple[str, ...]
    category: str
    slice: Callable[[Plan, Path, str], dict[str, Any]]
    reads: Callable[[Plan, Path, str], list[str]]
    labels: dict[str, str]
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

    def name(self, wildcards: Mapping[str, str]) -> str:
        """What its slice of the plan is called."""
        return wildcards[self.wildcard] if self.wildcard else ONE_OF_ITS_KIND.get(self.rule, self.rule)


ONE_OF_ITS_KIND = {"curves": CURVES, "corpus_size": CORPUS_SIZE}


def _manifests(artifacts: Iterable[Artifact]) -> list[str]:
    return [artifact.manifest for artifact in artifacts]


def _reproduction(plan: Plan, name: str) -> list[str]:
    """How close a table's runs are to released ones, where the run's configuration names such."""
    return [f"results/tables/{name}.reproduction.csv"] if table_plan(plan, name).get("references") else []


def _with_rows(content: dict[str, Any], missing: str) -> dict[str, Any]:
    """A figure's slice that has something to draw.

    Raises:
        EncoreError: it has not.
    """
    if not content["rows"]:
        raise EncoreError(missing)
    return content


def _declared_report(plan: Plan, run: Path) -> dict[str, Any]:
    everything_declared(plan)
    return report_plan(plan, run)


PRODUCTS = (
    Product(
        "table",
        "results/tables/{table}",
        ("csv", "md", "tex", "html"),
        "Tables",
        lambda plan, run, name: table_plan(plan, name),
        lambda plan, run, name: [*_manifests(table_reads(plan, name)), *_reproduction(plan, name)],
        {"table": "{table}"},
    ),
    Product(
        "figure",
        "results/figures/{table}",
        FIGURE_FILES,
        "Figures",
        lambda plan, run, name: table_plan(plan, name),
        lambda plan, run, name: _manifests(table_reads(plan, name)),
        {"figure": "{table}"},
    ),
    Product(
        "draw",
        "results/figures/{figure}",
        FIGURE_FILES,
        "Figures",
        lambda plan, run, name: figure_plan(plan, name),
        lambda plan, run, name: _manifests(figure_reads(plan, name)),
        {"figure": "{figure}"},
    ),
    Product(
        "curves",
        f"results/figures/{CURVES}",
        FIGURE_FILES,
        "Figures",
        lambda plan, run, name: _with_rows(curves_plan(plan), CURVES_MISSING),
        lambda plan, run, name: _manifests(curves_models(plan)),
        {"figure": CURVES},
    ),
    Product(
        "corpus_size",
        f"results/figures/{CORPUS_SIZE}",
        FIGURE_FILES,
        "Figures",
        lambda plan, run, name: _with_rows(corpus_size_plan(plan), CORPUS_SIZE_MISSING),
        lambda plan, run, name: _manifests(corpus_size_artifacts(plan)),
        {"figure": CORPUS_SIZE},
    ),
    Product(
        PRINTED,
        f"results/{PRINTED}",
        ("csv", "md"),
        "Claims",
        lambda plan, run, name: printed_plan(plan.catalogue),
        lambda plan, run, name: [],
        {"claims": "on printed numbers"},
        memory_mb=1_000,
    ),
    Product(
        CLAIMS,
        f"results/{CLAIMS}",
        ("csv", "md"),
        "Claims",
        lambda plan, run, name: claims_plan(plan),
        lambda plan, run, name: _manifests(claims_reads(plan)),
        {"claims": "on runs"},
        memory_mb=4_000,
    ),
    Product(
        REPORT,
        "results/report/index",
        ("html",),
        "Report",
        lambda plan, run, name: _declared_report(plan, run),
        lambda plan, run, name: report_reads(_declared_report(plan, run)),
        {"page": "all tables, figures and claims"},
    ),
)
TABLE = PRODUCTS[0]
