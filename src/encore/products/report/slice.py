"""What the report is built from: its slice of the plan, ``results/plan/report.json``."""

from collections.abc import Sequence
from pathlib import Path

from encore.products.slices import Product, SlicePart
from encore.products.tables.layout import Layout
from encore.storage import typed

RESULTS = Path("results")


class StatedClaim(SlicePart):
    """A claim: whose it is, where it is made, and the sentence."""

    paper: str
    place: str
    says: str


class ReportSlice(Product):
    """The products that are shown, and the tables of the catalogue of which only the printed numbers are."""

    title: str
    templates: str  # the digest of the page's templates
    run: str  # the run's file; empty for the default
    tables: list[str]
    figures: list[str]  # without ending
    claims: bool = False  # whether their verdicts are shown
    stated: dict[str, StatedClaim] = {}  # every claim, by id
    about: dict[str, list[str]] = {}  # the tables and figures that each claim is about
    cells: dict[str, list[tuple[str, str, str, list[str]]]] = {}  # table or figure, setting, row, columns of each claim
    printed: dict[str, Layout] = {}  # by name; what the configuration does not declare
    datasets: dict[str, str] = {}  # what each replaces, by its artifact's name without the digest
    trials: dict[str, dict[str, int]] = {}  # of how many tried values a step has its own, by field
    papers: dict[str, str] = {}  # what papers are called, by folder

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Nothing: it reads products, which are compared with their manifests."""
        return {}

    def others(self, folder: Path) -> list[Path]:
        """The manifests of all products that it shows."""
        tables = [RESULTS / f"tables/{name}.manifest.json" for name in self.tables]
        figures = [RESULTS / f"figures/{name}.manifest.json" for name in self.figures]
        return [*tables, *figures, *([RESULTS / "claims.manifest.json"] if self.claims else [])]

    def command(self, target: str) -> str:
        """What a person types to make a target, or all that the configuration declares."""
        return typed.snakemake(*([target] if target else []), run=self.run)

    @property
    def audit(self) -> str:
        """The command that compares the page with the files that it was built from."""
        return typed.encore("audit", run=self.run)

    def explain(self, question: Sequence[str]) -> str:
        """The command that explains a number of the page in a terminal."""
        return typed.encore("explain", *question, run=self.run)

    def note(self, dataset: str) -> str:
        """What a dataset replaces; empty where it replaces nothing."""
        return self.datasets.get(dataset, "")


def slug(text: str) -> str:
    """A name of a place of the page."""
    return "-".join("".join(sign if sign.isalnum() else " " for sign in text.lower()).split())
