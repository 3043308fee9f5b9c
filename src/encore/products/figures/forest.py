"""The forest plot: what each objective gains over the control on the primary measure, with 95 % intervals."""

from collections import Counter
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from encore.errors import EncoreError
from encore.products.figures import style
from encore.products.figures.style import BAND, INK, SOFT
from encore.products.slices import about_data
from encore.products.tables.comparisons import ENOUGH_SEEDS
from encore.products.tables.compute import compute_table, signed
from encore.products.tables.grid import Column, Row
from encore.products.tables.layout import Layout
from encore.products.tables.table import Cell, Comparison, Table
from encore.storage.csv_rows import number, write_rows

COLUMNS = {
    "setting": "The group of rows.",
    "label": "The row.",
    "difference": "Its difference to the control, in the measure's unit.",
    "interval_low": "Lower end of the interval of `difference`.",
    "interval_high": "Upper end of the interval of `difference`.",
    "significant": "1 above, -1 below, 0 neither, after Holm's correction.",
}
GAIN, LOSS, OPEN = "#1b7f5c", "#b5472f", "#6b7680"
Arm = tuple[Row[Cell], Comparison]  # a line of the plot: a row, and its difference to the control


def draw_forest(folder: Path, table: Table) -> None:
    """Write ``<name>.png``, ``.svg`` and ``.csv``; equal numbers give equal bytes."""
    column = next((column for column in table.columns if column.primary), None)
    arms = [
        (row, gain)
        for row in table.rows
        if column and row.role == "objective" and (gain := table.to_control(row, column.id))
    ]
    if column is None or not arms:
        raise EncoreError(f"{table.name}: no objective was compared with a control, so there is nothing to draw")
    lines = [
        [row.setting, row.label, number(gain.difference), number(gain.low), number(gain.high), str(gain.sign)]
        for row, gain in arms
    ]
    write_rows(folder / f"{table.name}.csv", COLUMNS, lines)
    with style.style():
        style.save(_figure(table, _caption(table, column), column, arms), folder, table.name)


def _figure(table: Table, caption: str, column: Column, arms: list[Arm]) -> Figure:
    """One panel a setting, side by side, on common axes; the caption gets its own strip at the bottom."""
    settings = Counter(row.setting for row, _ in arms)
    width = 1.6 + 4.2 * len(settings)
    height = 0.9 + 0.34 * max(settings.values())
    page = style.page(width, height, f"{table.title}: gain over the control", caption, wspace=0.02)
    axes = page.figure.subplots(1, len(settings), squeeze=False)
    by_setting = [[(row, gain) for row, gain in arms if row.setting == setting] for setting in settings]
    alike = all([row.label for row, _ in panel] == [row.label for row, _ in by_setting[0]] for panel in by_setting)
    reach = 1.08 * max(max(abs(gain.low), abs(gain.high)) for _, gain in arms) or 1.0
    for place, (axis, setting, panel) in enumerate(zip(axes[0], settings, by_setting, strict=True)):
        axis.set_title(setting, loc="left", fontsize=10, color=SOFT)
        axis.set_xlim(-reach, reach)
        axis.set_xlabel(f"← worse        {column.label} minus the control’s        better →", labelpad=5)
        _panel(axis, panel, labelled=place == 0 or not alike)
    return page.figure


def _panel(axis: Axes, arms: list[Arm], *, labelled: bool) -> None:
    for place, (_, gain) in enumerate(arms):
        mean, colour = gain.difference, {1: GAIN, 0: OPEN, -1: LOSS}[gain.sign]
        if place % 2 == 0:
            axis.axhspan(place - 0.5, place + 0.5, color=BAND, linewidth=0, zorder=0)
        axis.plot([gain.low, gain.high], [place, place], color=colour, linewidth=2, solid_capstyle="round", zorder=2)
        face = colour if gain.sign else "white"
        axis.plot(mean, place, "o", markersize=7, markerfacecolor=face, markeredgecolor=colour, markeredgewidth=1.6)
        axis.text(1.02, place, signed(mean), transform=axis.get_yaxis_transform(), va="center_baseline", fontsize=9)
    axis.axvline(0, color=INK, linewidth=1, zorder=1)
    axis.set_yticks(range(len(arms)), [row.label if labelled else "" for row, _ in arms])
    axis.set_ylim(len(arms) - 0.5, -0.5)
    axis.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:+g}".replace("-", "−") if abs(value) > 1e-12 else "0")
    axis.tick_params(length=0)
    axis.tick_params(axis="y", labelcolor=INK)
    axis.spines[["top", "right", "left"]].set_visible(False)


def _caption(table: Table, column: Column) -> str:
    """Queries, seeds, data, how to read the marks, and what one seed does not show."""
    cells = [row.cells[column.id] for row in table.rows]
    judged, dataset = next((c.ours.judged, c.request.dataset) for c in cells if c.ours and c.ours.judged is not None)
    seeds, data = len(table.seeds), table.datasets.get(dataset, dataset)
    return (
        f"{judged:,} queries of {data}; {seeds} seed{'s' if seeds != 1 else ''}. Lines: 95 % intervals over "
        f"{'queries and seeds' if seeds > 1 else 'queries only'}. Filled: significant after Holm’s correction. "
        + ("" if seeds >= ENOUGH_SEEDS else f"Fewer than {ENOUGH_SEEDS} seeds: about these checkpoints, no objective. ")
        + about_data(table.proxy_data)
    )


def write_forest(folder: Path, layout: Layout, products: Path) -> str:
    """Draw a table's figure; equal numbers give equal bytes."""
    draw_forest(folder, compute_table(layout))
    return f"figure {layout.name}: {folder / layout.name}.png"
