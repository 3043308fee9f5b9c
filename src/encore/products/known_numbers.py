"""Scores of ours next to known numbers: whether each is within what its published score allows, above or below."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from encore.config.run import KnownNumber
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.slices import Product, SlicePart, titled
from encore.products.tables.aligned_text import plain
from encore.storage.csv_rows import number, write_rows
from encore.storage.files import write_text

CHECKS = "checks"
SCORES = "scores.parquet"
COLUMNS = {
    "system": "The system, or the lineage.",
    "dataset": "The dataset that it searches.",
    "split": "The split whose queries it answers.",
    "measure": "The measure, as the split calls it.",
    "published": "The published score.",
    "within": "How far ours may be from it, above or below.",
    "ours": "Our score, the mean over all judged queries.",
    "difference": "Ours less the published one.",
    "verdict": "`agrees` or `differs`.",
    "source": "Where the score is published.",
}
AGREES, DIFFERS = "agrees", "differs"


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
    return ChecksSlice(
        name=CHECKS, title=titled(plan.config.title, plan.config), proxy_data=plan.config.proxy_data, rows=rows
    )


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


def compared(check: Check) -> tuple[float, str]:
    """Our score, the mean over all judged queries, and whether it agrees with the published one."""
    from encore.evaluation.scores import read_scores  # which planning does not need

    found = read_scores(Path(check.reads[0]))[check.split, check.measure]
    ours = float(found.values.mean())
    return ours, AGREES if abs(ours - check.published) <= check.within else DIFFERS


def write_checks(folder: Path, product: ChecksSlice, _: Path) -> str:
    """Write ``checks.csv`` and ``checks.md``; returns how many agree."""
    lines, rows, agree = [], [], 0
    for check in product.rows:
        ours, verdict = compared(check)
        agree += verdict == AGREES
        about = (check.system, check.dataset, check.split, check.measure)
        apart = ours - check.published
        lines.append([*about, *map(number, (check.published, check.within, ours, apart)), verdict, check.source])
        shown = (f"{check.published:.4f} ± {check.within:g}", f"{ours:.4f}", verdict, check.source)
        rows.append("| " + " | ".join(map(plain, (*about, *shown))) + " |\n")
    said = f"{agree} of {len(lines)} agree with what is published"
    head = f"# Known numbers: {product.title}\n\n{said}.\n\n"
    head += "| system | dataset | split | measure | published | ours | verdict | source |\n"
    write_rows(folder / "checks.csv", COLUMNS, lines)
    write_text(folder / "checks.md", "".join([head, "| --- | --- | --- | --- | --- | ---: | --- | --- |\n", *rows]))
    return said
