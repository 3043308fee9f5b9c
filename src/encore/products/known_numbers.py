"""Which scores the known numbers of a run are compared with: the slice of the plan of ``results/checks.csv``."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from encore.config.run import KnownNumber
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.slices import Product, SlicePart

CHECKS = "checks"
SCORES = "scores.parquet"


class Check(KnownNumber, SlicePart):
    """A known number, what an audit calls it, and the folder of the scores that it is compared with."""

    label: str
    reads: tuple[str]


class ChecksSlice(Product):
    """The slice of the plan: every known number of a run, in its order."""

    title: str = ""
    rows: list[Check]

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """Its numbers."""
        return ((check.label, list(check.reads)) for check in self.rows)

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """The folders of scores, of each the one file that is read."""
        return {Path(check.reads[0]): (SCORES,) for check in self.rows}


def checks_plan(plan: Plan) -> ChecksSlice:
    """Each known number of the run, with the scores that it is compared with."""
    rows = [_row(plan, number, check) for number, check in enumerate(plan.config.checks)]
    return ChecksSlice(name=CHECKS, title=plan.config.title, proxy_data=plan.config.proxy_data, rows=rows)


def _row(plan: Plan, number: int, check: KnownNumber) -> Check:
    place = plan.config.at(f"checks.{number}")
    splits = plan.resolve.dataset(check.dataset).fields.splits
    if check.split not in splits:
        raise EncoreError(f"{place}: {check.dataset!r} has no split {check.split!r}{nearest(check.split, splits)}")
    if check.measure not in (measures := splits[check.split].measures):
        raise EncoreError(
            f"{place}: {check.measure!r} is not measured on {check.split!r}{nearest(check.measure, measures)}"
        )
    seed = plan.config.seeds[0] if plan.resolve.has_chance(check.system) else None
    scores = plan.scores(check.system, seed, check.dataset, check.split)
    return Check(**check.model_dump(), label=f"{check.system} on {check.dataset}", reads=(scores.folder,))
