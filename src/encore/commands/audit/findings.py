"""What an audit found: findings, notes, and the products that nothing is wrong with so far."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore.products.kinds import BY_RULE, ProductKind

REPORT = Path(BY_RULE["report"].record)


@dataclass(frozen=True)
class Finding:
    """What is wrong with one artifact or product, and the cells that rest on it."""

    place: str
    reason: str
    cells: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = self.reason + (f"; affects {', '.join(self.cells)}" if self.cells else "")
        return " ".join(text.encode(errors="backslashreplace").decode().split())  # names in damaged files may be odd


@dataclass(frozen=True)
class MadeProduct:
    """A product whose files are those of its manifest: its kind and name, its manifest, and its slice of the plan."""

    kind: ProductKind
    name: str
    place: Path
    content: dict[str, Any]

    @property
    def files(self) -> list[str]:
        """The names of its files without the manifest."""
        return [Path(self.kind.named(file, self.name)).name for file in self.kind.files[:-1]]


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
