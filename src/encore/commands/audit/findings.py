"""What an audit found: findings, notes, and the products that nothing is wrong with so far."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore.products.claims.entries import CLAIMS, PRINTED
from encore.products.kinds import ONE_OF_ITS_KIND
from encore.products.report.plan import REPORT as REPORT_NAME
from encore.storage import manifest

REPORT = Path("results/report") / manifest.MANIFEST


@dataclass(frozen=True)
class Finding:
    """What is wrong with one artifact or product, and the cells that it stands behind."""

    place: str
    reason: str
    cells: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = self.reason + (f"; affects {', '.join(self.cells)}" if self.cells else "")
        return " ".join(text.encode(errors="backslashreplace").decode().split())  # names in damaged files may be odd


@dataclass(frozen=True)
class MadeProduct:
    """A product whose files are those of its manifest: its name, its manifest, and its slice of the plan."""

    name: str
    place: Path
    content: dict[str, Any]

    @property
    def rule(self) -> str:
        """The rule that makes it."""
        return rule_of(self.name, self.place, self.content)


@dataclass
class AuditReport:
    """The outcome of an audit; ``products`` are tables, figures and claims that nothing is wrong with so far."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    products: list[MadeProduct] = field(default_factory=list)
    verified: int = 0
    scope: str = (
        "compared: digests, inputs, products made again; not made again: models, indexes, runs, scores (--deep)"
    )
    others: dict[str, str] = field(default_factory=dict)  # manifests of products of other runs, and these runs


def rule_of(name: str, place: Path, content: dict[str, Any]) -> str:
    """The rule that makes a product, by its name, where its manifest lies, and its slice of the plan."""
    if name in (PRINTED, CLAIMS, REPORT_NAME):
        return name
    if place.is_relative_to("results/tables"):
        return "table"
    rules = {figure: rule for rule, figure in ONE_OF_ITS_KIND.items()}
    return rules.get(name) or ("draw" if "kind" in content else "figure")
