"""The kinds of products that people look at, one entry each: tables, figures, claims and the report.

A product has neither a separate folder nor a digest in its name. Its slice of the plan, ``results/plan/<name>.json``,
contains everything that decides it, and is written again when that changes. From an entry follow the rule that builds
the product, what it reads, what the commands say of it and what an audit compares. What writes the files is named, so
that planning does not import it.
"""

import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.claims.entries import CLAIMS
from encore.products.claims.plan import ClaimsSlice, claims_to_judge
from encore.products.figures.base import StepsSlice
from encore.products.figures.kinds import typed_figure
from encore.products.figures.plan import curves_plan, figure_plan
from encore.products.known_numbers import CHECKS, ChecksSlice, checks_plan
from encore.products.report.plan import REPORT, report_plan
from encore.products.report.slice import ReportSlice
from encore.products.slices import Product
from encore.products.tables.layout import Layout
from encore.products.tables.plan import CURVES, has_figure, table_to_make
from encore.products.tables.table import FORMATS
from encore.storage.manifest import MANIFEST
from encore.storage.source_text import source_digest

PICTURE, PAGE = ("png", "svg", "csv"), ("csv", "md")


@dataclass(frozen=True)
class ProductKind:
    """A kind of product.

    Args:
        rule: the rule and the stage that build it.
        stem: what the names of its files begin with; ``{table}`` or ``{figure}`` is the product's name.
        endings: of its files, the one that people ask for first.
        category: its chapter in Snakemake's own report.
        planned: its slice of the plan, by the product's name.
        typed: gives the content of a slice its types.
        writer: its module and function, which writes the files to a folder, from the slice and from files of other
            products in a second folder, which is the same but for an audit; it returns what the log says.
        exists: whether there is something to show.
        missing: what a request is answered if there is not.
        part: what an audit calls all that it shows.
        memory_mb: requested of a cluster, as are ``minutes``.
        minutes: of a job.
    """

    rule: str
    stem: str
    endings: tuple[str, ...]
    category: str
    planned: Callable[[Plan, str], Product]
    typed: Callable[[Any], Product]
    writer: str
    exists: Callable[[Any], bool] = lambda product: True
    missing: str = ""
    part: str = "cell"
    memory_mb: int = 2_000
    minutes: int = 30

    @property
    def wildcard(self) -> str | None:
        """The wildcard in its stem, or None if a run has one product of this kind."""
        found = re.search(r"\{(\w+)\}", self.stem)
        return found[1] if found else None

    @property
    def write(self) -> Callable[[Path, Any, Path], str]:
        """The function that writes the files; what it needs is only imported here."""
        found: Callable[[Path, Any, Path], str] = pkgutil.resolve_name(f"encore.products.{self.writer}")
        return found

    @property
    def code(self) -> str:
        """The digest of the source of the module that writes the files."""
        return source_digest(f"encore.products.{self.writer.partition(':')[0]}")

    @property
    def record(self) -> str:
        """Its manifest."""
        return f"results/{REPORT}/{MANIFEST}" if self.rule == REPORT else f"{self.stem}.{MANIFEST}"

    @property
    def files(self) -> list[str]:
        """All its files, the manifest last."""
        return [*(f"{self.stem}.{ending}" for ending in self.endings), self.record]

    @property
    def called(self) -> str:
        """The name of its log: the wildcard, or the rule's name."""
        return f"{{{self.wildcard}}}" if self.wildcard else self.rule

    def named(self, template: str, name: str) -> str:
        """``record`` or one of ``files``, of the product of a name."""
        return template.format(**{self.wildcard: name}) if self.wildcard else template

    def name(self, wildcards: Mapping[str, str]) -> str:
        """The name of the product, and of its slice of the plan."""
        if self.wildcard:
            return wildcards[self.wildcard]
        return REPORT if self.rule == REPORT else self.stem.rpartition("/")[2]

    def name_at(self, path: str) -> str | None:
        """The name of the product that a file belongs to, or None if its path is not one of this kind."""
        for file in self.files:
            pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^.]+)", re.escape(file))
            if found := re.fullmatch(pattern, path):
                return self.name(found.groupdict())
        return None

    def slice(self, plan: Plan, name: str) -> Product:
        """The slice of the plan that a product is built from."""
        product = self.planned(plan, name)
        if not self.exists(product):
            stem = self.named(self.stem, name).removeprefix("results/")
            raise EncoreError(f"{stem}: {self.missing}")
        return product

    def others(self, product: Product, name: str) -> list[str]:
        """Files of other products that the product of a name reads."""
        return [str(path) for path in product.others(Path(self.named(self.record, name)).parent)]

    def reads(self, product: Product, name: str) -> list[str]:
        """Every file that it is built from: manifests of folders of results, and files of other products."""
        return [*(f"{folder}/{MANIFEST}" for folder in product.reads()), *self.others(product, name)]


PRODUCTS: tuple[ProductKind, ...] = (
    ProductKind(
        "table",
        "results/tables/{table}",
        FORMATS,
        "Tables",
        table_to_make,
        Layout.model_validate,
        "tables.formats:write_formats",
    ),
    ProductKind(
        "curves",
        f"results/figures/{CURVES}",
        PICTURE,
        "Figures",
        lambda plan, name: curves_plan(plan),
        StepsSlice.model_validate,
        "figures.learning:draw_learning",
        exists=lambda steps: bool(steps.rows),
        missing="the tables of this run have no pre-training step whose losses could be drawn",
    ),
    ProductKind(
        "draw",
        "results/figures/{figure}",
        PICTURE,
        "Figures",
        figure_plan,
        typed_figure,
        "figures.kinds:write_figure",
    ),
    ProductKind(
        "figure",
        "results/figures/{table}",
        PICTURE,
        "Figures",
        table_to_make,
        Layout.model_validate,
        "figures.forest:write_forest",
        exists=has_figure,
        missing="no objective of this table is compared with a control, so nothing is drawn",
    ),
    ProductKind(
        CLAIMS,
        f"results/{CLAIMS}",
        PAGE,
        "Claims",
        lambda plan, name: claims_to_judge(plan),
        ClaimsSlice.model_validate,
        "claims.run_claims:write_run_claims",
        part="claim",
        memory_mb=4_000,
    ),
    ProductKind(
        CHECKS,
        f"results/{CHECKS}",
        PAGE,
        "Checks",
        lambda plan, name: checks_plan(plan),
        ChecksSlice.model_validate,
        "known_numbers:write_checks",
        exists=lambda checks: bool(checks.rows),
        missing="this run's `checks:` name no known number; take a file of config/checks",
        part="number",
    ),
    ProductKind(
        REPORT,
        f"results/{REPORT}/index",
        ("html", "runs.json"),
        "Report",
        lambda plan, name: report_plan(plan),
        ReportSlice.model_validate,
        "report.page:write_page",
        part="number",
    ),
)
BY_RULE = {kind.rule: kind for kind in PRODUCTS}


def kind_at(path: str, is_drawn: Callable[[str], bool]) -> tuple[ProductKind, str] | None:
    """The kind and the name of the product that a file belongs to, or None if it belongs to none.

    Args:
        path: of the file, from the repository's root.
        is_drawn: whether a figure of a name is one of the catalogue, and not that of a table.
    """
    for kind in PRODUCTS:
        name = kind.name_at(path)
        if name is not None and (kind.rule != "draw" or is_drawn(name)):
            return kind, name
    return None


def kind_of_record(record: Path, content: Any) -> tuple[ProductKind, str] | None:
    """The same for a manifest, whose slice of the plan tells which figures are the catalogue's."""
    return kind_at(str(record), lambda name: isinstance(content, dict) and "kind" in content)


def kinds_of(name: str, content: dict[str, Any]) -> list[ProductKind]:
    """The kinds of products that are built from a slice of the plan: a table's serves three."""
    if "kind" in content:
        return [BY_RULE["draw"]]
    single = [kind for kind in PRODUCTS if not kind.wildcard and kind.name({}) == name]
    return single or [kind for kind in PRODUCTS if kind.wildcard == "table"]
