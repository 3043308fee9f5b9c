"""The notes below a table: its marks, the data that were run, the seeds, and what the table does not show."""

import math
from collections.abc import Iterator

from encore.evaluation.significance import SIGNIFICANT
from encore.reporting.sources import SOURCES
from encore.reporting.tables.cells import TableCell, TableGrid, symbols
from encore.reporting.tables.verdicts import ENOUGH_SEEDS, OPEN

DISAGREES = "≠"
RAISED = str.maketrans("12345", "¹²³⁴⁵")  # markers that are numbers of rows
PROXY_DATA = "Real text, but not the papers’ data: this shows machinery and statistics, it does not confirm a paper."


def footnotes(grid: TableGrid) -> list[str]:
    """The notes of a table, most needed first; those of the plan come last."""
    run = any(cell.request.reads for cell in grid.cells.values())
    notes = [PROXY_DATA] if grid.layout.proxy_data and run else []
    return [
        *notes,
        *_marks(grid),
        *_data(grid),
        *_seeds(grid),
        *_ties(grid),
        *(note for source in SOURCES.values() for note in source.notes(grid.layout)),
        *grid.layout.notes,
    ]


def seeds_run(grid: TableGrid) -> list[int]:
    """Every seed of the table, in order."""
    reads = [read for row in grid.layout.rows for cell in row.cells.values() for read in cell.reads]
    return sorted({read.seed for read in reads if read.seed is not None})


def _marks(grid: TableGrid) -> Iterator[str]:
    layout, cells = grid.layout, grid.cells.values()
    if any(grid.is_best(cell) for cell in cells):
        yield "Bold: the best of a column within its setting."
    if any(cell.printed for cell in cells):
        ours = any(cell.difference is not None for cell in cells)
        yield "In parentheses: the paper's number" + (", and ours less it." if ours else ".")
    if layout.unit == "percent":
        yield "Measures, their differences and deviations are in percent."
    if not any(cell.comparisons for cell in cells):
        return
    labels = {row.id: row.label for row in layout.rows}
    above = ", ".join(f"{mark} {labels.get(name, name)}" for name, mark in symbols(layout).items())
    primary = " and ".join(column.label for column in layout.columns if column.primary)
    yield (
        f"Significantly above (after − below): {above}. Two-sided cluster-robust test, Holm-corrected at "
        f"{SIGNIFICANT * 100:g} % over objectives and comparators of one setting, on {primary} only; "
        "other measures are secondary."
    )
    if any(cell.printed_markers or cell.unprinted for cell in cells):
        yield _printed_markers(grid, labels)
    if any(cell.verdict == OPEN and cell.control for cell in cells):
        yield "(needs x): the smallest gain over both none and control that could have been shown, at 80 % power."


def _printed_markers(grid: TableGrid, labels: dict[str, str]) -> str:
    """What the paper's markers mean, and where our test says otherwise."""
    meant = grid.layout.significance.meant() if grid.layout.significance else {}
    named = {mark: ", ".join(labels.get(row, row) for row in rows) for mark, rows in meant.items()}
    above = ", ".join(
        f"{mark.translate(RAISED)} {'each of ' if len(meant[mark]) > 1 else ''}{rows}" for mark, rows in named.items()
    )
    text = "Behind the paper's numbers: its own markers" + (f", above {above}" if above else "")
    differ = any(cell.unconfirmed or cell.unprinted for cell in grid.cells.values())
    return text + (f"; {DISAGREES} where our test, on what was run here, says otherwise." if differ else ".")


def _data(grid: TableGrid) -> Iterator[str]:
    """One note for each split that was run: collection with digest, queries judged, queries answered."""
    splits: dict[tuple[str, str], list[TableCell]] = {}
    for cell in (grid.cell(row, column) for column in grid.layout.columns for row in grid.layout.rows):
        if cell.judged is not None:
            splits.setdefault((cell.request.dataset, cell.request.split), []).append(cell)
    for (dataset, split), cells in splits.items():
        name = grid.layout.dataset_labels.get(dataset, dataset)
        measures = ", ".join(dict.fromkeys(cell.column.label for cell in cells))
        yield f"{measures}: {name}, split {split} of {cells[0].request.collection}; {_counts(cells)}."


def _counts(cells: list[TableCell]) -> str:
    judged = cells[0].judged
    short = {cell.row.label: cell.answered for cell in cells if cell.answered != judged}
    answered = ", ".join(f"{label} answered {count:,}" for label, count in short.items() if count is not None)
    return f"{judged:,} queries judged" + (f" ({answered})" if answered else ", all answered by every row")


def _seeds(grid: TableGrid) -> Iterator[str]:
    seeds = seeds_run(grid)
    if not seeds or all(cell.judged is None for cell in grid.cells.values()):
        return  # times and counts are of one seed's model whatever the run has, and their own notes say so
    listed = ", ".join(map(str, seeds))
    if len(seeds) == 1:
        yield f"One seed ({listed}): differences and markers are about these checkpoints, not about the objectives."
    else:
        yield f"{len(seeds)} seeds ({listed}): mean ± standard deviation over seeds."
    if len(seeds) < ENOUGH_SEEDS:
        yield f"A verdict about an objective needs {ENOUGH_SEEDS} seeds."


def _ties(grid: TableGrid) -> Iterator[str]:
    widths = [high - low for cell in grid.cells.values() if cell.ties for low, high in [cell.ties]]
    if widths:
        widest = max(widths) * (100 if grid.layout.unit == "percent" else 1)
        moves = f"moves any value here by more than {_up(widest)}" if widest else "moves any value here"
        yield f"Tied scores: no order of them {moves}."


def _up(width: float) -> str:
    """A width rounded up to one digit, so that the sentence stays true but for rounding errors of sums."""
    places = -math.floor(math.log10(width))
    return f"{math.ceil(width * 10.0**places - 1e-9) / 10.0**places:.{max(places, 0)}f}"
