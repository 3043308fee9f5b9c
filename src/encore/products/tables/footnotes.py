"""The notes below a table: its marks, the data that were run, the seeds, and what the table does not show."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from encore.config.datasets import parse_measure
from encore.evaluation.families import OPEN
from encore.evaluation.significance import SIGNIFICANT
from encore.products.slices import about_data
from encore.products.tables.budgets import budget_notes, chosen_rate_notes, head_notes
from encore.products.tables.comparisons import ENOUGH_SEEDS, EQUIVALENT
from encore.products.tables.layout import Layout
from encore.products.tables.sources.kinds import SOURCES, TESTED, source_of
from encore.products.tables.table import Cell, Ours, Table
from encore.products.tables.trainings import training_notes
from encore.products.tables.unseen import unseen_notes
from encore.storage.manifest import read_results

DISAGREES = "≠"
RAISED = str.maketrans("12345", "¹²³⁴⁵")  # markers that are numbers of rows


def footnotes(layout: Layout, table: Table) -> list[str]:
    """The notes of a table's cells, most needed first."""
    run = any(cell.request.reads for row in table.rows for cell in row.cells.values())
    return [
        *filter(None, [about_data(table.proxy_data) if run else ""]),
        *_marks(layout, table),
        *dict.fromkeys(_data(table)),
        *unseen_notes(layout),
        *_untested(layout),
        *_thresholds(layout),
        *(note for texts in layout.texts for note in texts.notes()),
        *budget_notes(layout),
        *head_notes(layout),
        *training_notes(layout),
        *chosen_rate_notes(layout),
        *_limits(layout, table),
        *_seeds(table),
        *_ties(table),
        *(note for name, source in SOURCES.items() for note in source.notes(layout.own(name), layout)),
    ]


def _marks(layout: Layout, table: Table) -> Iterator[str]:
    cells = [cell for row in table.rows for cell in row.cells.values()]
    printed = [cell.printed for cell in cells if cell.printed]
    if any(cell.ours and cell.ours.best for cell in cells):
        yield "Bold: the best of a column within its setting."
    if printed:
        ours = any(one.difference is not None for one in printed)
        yield "In parentheses: the paper's number" + (", and ours less it." if ours else ".")
    if table.unit == "percent":
        yield "Measures, their differences and deviations are in percent."
    if not any(cell.comparisons for cell in cells):
        return
    labels = {row.id: row.label for row in table.rows}
    marks = {name: f"{mark} {labels.get(name, name)}" for name, mark in table.comparators.items()}
    above = ", ".join(marks.values())
    primary = " and ".join(column.label for column in table.columns if column.primary)
    yield (
        _test_of_own(table, marks, primary)
        if table.proxy_data == "own"
        else (
            f"Significantly above (after − below): {above}. Two-sided cluster-robust test, Holm-corrected at "
            f"{SIGNIFICANT * 100:g} % over the objectives of one setting, on {primary} only; "
            "other measures are secondary."
        )
    )
    if layout.margin:
        yield (
            f"{EQUIVALENT} {layout.margin:g}: two one-sided tests, Holm-corrected likewise, show the differences to "
            "none and control to be smaller (measures are from 0 to 1); the margin was written down with the rows."
        )
    if any(one.markers or one.unprinted for one in printed):
        yield _printed_markers(layout, labels, differ=any(one.disagrees for one in printed))
    if any(row.cells[name].verdict == OPEN and table.control(row.setting) for row in table.rows for name in row.cells):
        yield "(needs x): the smallest gain over both none and control that the verdict finds in 80 %."


def _test_of_own(table: Table, marks: Mapping[str, str], primary: str) -> str:
    """What the markers mean on the user's own data, where some comparators may have no row to be compared with."""
    tested = [row for row in table.rows if row.role == "objective"]
    used = {name for row in tested for cell in row.cells.values() for name in cell.comparisons}
    above = ", ".join(mark for name, mark in marks.items() if name in used)
    most = max(Counter(row.setting for row in tested).values(), default=0)
    corrected = f", Holm-corrected over {most} rows" if most > 1 else ""
    return (
        f"Significantly above (after − below): {above}. Two-sided cluster-robust test at {SIGNIFICANT * 100:g} % on "
        f"{primary}{corrected}."
    )


def _printed_markers(layout: Layout, labels: dict[str, str], *, differ: bool) -> str:
    """What the paper's markers mean, and where our test says otherwise."""
    meant = layout.significance.meant() if layout.significance else {}
    named = {mark: ", ".join(labels.get(row, row) for row in rows) for mark, rows in meant.items()}
    above = ", ".join(
        f"{mark.translate(RAISED)} {'each of ' if len(meant[mark]) > 1 else ''}{rows}" for mark, rows in named.items()
    )
    text = "Behind the paper's numbers: its own markers" + (f", above {above}" if above else "")
    return text + (f"; {DISAGREES} where our test, on what was run here, says otherwise." if differ else ".")


def _data(table: Table) -> Iterator[str]:
    """One note for each split that was run: collection with digest, queries judged, queries answered."""
    labels: dict[tuple[str, str, bool], dict[str, None]] = {}
    counts: dict[tuple[str, str, bool], list[tuple[str, Ours]]] = {}
    collections: dict[tuple[str, str, bool], str] = {}
    twice = Counter(row.label for row in table.rows)
    for row, column in ((row, column) for column in table.columns for row in table.rows):
        cell = row.cells[column.id]
        if cell.ours and cell.ours.judged is not None:
            place = cell.request.dataset, cell.request.split, cell.request.unseen
            labels.setdefault(place, {})[column.label] = None
            name = f"{row.label} [{row.setting}]" if twice[row.label] > 1 else row.label
            counts.setdefault(place, []).append((name, cell.ours))
            collections.setdefault(place, cell.request.collection)
    for place, own in counts.items():
        dataset, split, _ = place
        measures, name = ", ".join(labels[place]), table.datasets.get(dataset, dataset)
        yield f"{measures}: {name}, split {split} of {collections[place]}; {_counts(own)}."


def _counts(own: list[tuple[str, Ours]]) -> str:
    judged = own[0][1].judged
    short = {label: ours.answered for label, ours in own if ours.answered != judged}
    answered = ", ".join(f"{label} answered {count:,}" for label, count in short.items() if count is not None)
    return f"{judged:,} queries judged" + (f" ({answered})" if answered else ", all answered by every row")


def _untested(layout: Layout) -> Iterator[str]:
    """Where nearly all queries are of one cluster."""
    labels: dict[str, dict[str, None]] = {}
    for column in layout.shown():
        requests = {(cell.dataset, cell.split): cell for cell in layout.cells([column]) if cell.reads}
        for (dataset, split), request in requests.items():
            found = source_of(column).queries(request)
            if found and not found.can_be_tested:
                name = f"{layout.dataset_labels.get(dataset, dataset)}, split {split}"
                labels.setdefault(name, {})[column.label] = None
    for name, columns in labels.items():
        yield f"{', '.join(columns)}: nearly all queries of {name} are one cluster, so nothing is tested."


def _thresholds(layout: Layout) -> Iterator[str]:
    """The least relevant grade wherever a measure of a searched dataset says one."""
    least = {(each.dataset, measure): grade for each in layout.texts for measure, grade in each.least_grades.items()}
    labels: dict[tuple[str, int], dict[str, None]] = {}
    for column in layout.shown():
        for cell in layout.cells([column]):
            dataset = layout.dataset_labels.get(cell.dataset, cell.dataset)
            if grade := least.get((dataset, cell.expression)):
                labels.setdefault((dataset, grade), {})[column.label] = None
    for (dataset, grade), columns in labels.items():
        yield f"{', '.join(columns)}: relevant are grades from {grade} on of {dataset}."


def _limits(layout: Layout, table: Table) -> Iterator[str]:
    """Columns at their ceiling, and on the user's own data the smallest difference that the queries can show."""
    passages = {each.dataset: read_results(each.collection).get("passages", math.inf) for each in layout.texts}
    for column in table.shown():
        if column.source != TESTED:
            continue
        cells = [row.cells[column.id] for row in table.rows if row.cells[column.id].ours]
        names = {layout.dataset_labels.get(cell.request.dataset, "") for cell in cells}
        measures = {parse_measure(cell.request.expression) for cell in cells if cell.request.expression}
        size = max((passages.get(name, math.inf) for name in names), default=math.inf)
        top = sum(cell.ours is not None and cell.ours.value >= 1 for cell in cells)
        if any(each.name == "R" and (each.cutoff or 0) >= size for each in measures):
            yield f"{column.label}: the collection has {size:,} passages, so every ranking finds all of them."
        elif len(cells) > 1 and 2 * top >= len(cells):
            yield f"{column.label}: {top} of {len(cells)} rows have the highest value, which hides differences."
        if column.primary and table.proxy_data == "own":
            yield from _resolution(table, column.label, cells)


def _resolution(table: Table, label: str, cells: Sequence[Cell]) -> Iterator[str]:
    """What a difference must be to be significant: half the width of its interval."""
    halves = [(one.high - one.low) / 2 for cell in cells for one in cell.comparisons.values() if one.high > one.low]
    judged = next((cell.ours.judged for cell in cells if cell.ours and cell.ours.judged), None)
    if halves and judged:
        least, most = (SOURCES[TESTED].shown(width, table.unit) for width in (min(halves), max(halves)))
        more = f", for some rows {most}" if most != least else ""
        yield f"{label}: on {judged:,} queries a difference must be above {least} to be significant{more}."


def _seeds(table: Table) -> Iterator[str]:
    seeds = table.seeds
    if not seeds or all(ours.judged is None for ours in _ours(table)):
        return  # times and counts are of one seed's model whatever the run has, and their own notes say so
    listed = ", ".join(map(str, seeds))
    if len(seeds) == 1:
        yield f"One seed ({listed}): differences and markers are about these checkpoints, not about the objectives."
    else:
        yield f"{len(seeds)} seeds ({listed}): mean ± standard deviation over seeds."
    if len(seeds) < ENOUGH_SEEDS:
        yield f"A verdict about an objective needs {ENOUGH_SEEDS} seeds."


def _ties(table: Table) -> Iterator[str]:
    widths = [high - low for ours in _ours(table) if ours.ties for low, high in [ours.ties]]
    if widths:
        widest = max(widths) * (100 if table.unit == "percent" else 1)
        if table.proxy_data == "own":
            by = f"by {_up(widest)} at most" if widest else "nothing"
            yield f"In whatever order documents of equal score are ranked, the numbers change {by}."
            return
        moves = f"moves any value here by more than {_up(widest)}" if widest else "moves any value here"
        yield f"Tied scores: no order of them {moves}."


def _ours(table: Table) -> list[Ours]:
    return [cell.ours for row in table.rows for cell in row.cells.values() if cell.ours]


def _up(width: float) -> str:
    """A width rounded up to one digit, so that the sentence stays true up to rounding errors of sums."""
    places = -math.floor(math.log10(width))
    return f"{math.ceil(width * 10.0**places - 1e-9) / 10.0**places:.{max(places, 0)}f}"
