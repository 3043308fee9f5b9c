"""Scores of ours next to known numbers: whether each is within what its published score allows, above or below."""

from pathlib import Path

from encore.evaluation import scores
from encore.products.known_numbers import Check, ChecksSlice
from encore.products.record import Builder
from encore.products.tables.aligned_text import plain
from encore.storage.csv_rows import number, write_rows
from encore.storage.files import write_text

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


def compared(check: Check) -> tuple[float, str]:
    """Our score, the mean over all judged queries, and whether it agrees with the published one."""
    found = scores.read_scores(Path(check.reads[0]))[check.split, check.measure]
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
    head = (
        f"# Known numbers\n\n{said}.\n\n| system | dataset | split | measure | published | ours | verdict | source |\n"
    )
    write_rows(folder / "checks.csv", COLUMNS, lines)
    write_text(folder / "checks.md", "".join([head, "| --- | --- | --- | --- | --- | ---: | --- | --- |\n", *rows]))
    return said


BUILDER = Builder(ChecksSlice.model_validate, write_checks)
