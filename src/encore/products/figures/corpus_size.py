"""Retrieval as the collection grows: one panel a measure, one line a system, over the number of passages."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.evaluation.scores import exact_mean
from encore.products.figures import style
from encore.products.figures.style import INK, SOFT
from encore.products.slices import Product, SlicePart
from encore.products.tables.footnotes import PROXY_DATA
from encore.storage import manifest
from encore.storage.csv_rows import number, write_rows

HEADER = ["label", "system", "seed", "dataset", "split", "measure", "size", "passages", "queries", "value"]
HEADING = "Retrieval from a growing collection"
COLOURS = ("#2f6690", "#c4752a", "#1b7f5c", "#8f4f8f", "#b5472f", "#3a9aa8", "#8a6d1f", "#5f6bbd")


class SizePoint(SlicePart):
    """A system at one size under one seed: the folders of its run and its scores."""

    seed: int
    size: str | int | float
    run: str
    scores: str


class SizeLine(SlicePart):
    """A system."""

    label: str
    system: str
    seeds: list[SizePoint]


class CorpusSizeSlice(Product):
    """What the figure is made of."""

    dataset: str
    split: str
    measures: list[str]
    depth: int
    rows: list[SizeLine]

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Folders of the scores and the run at every point, with all their files (None)."""
        points = [point for row in self.rows for point in row.seeds]
        return {Path(folder): None for point in points for folder in (point.scores, point.run)}


@dataclass(frozen=True)
class SizeValue:
    """A measure's mean over queries for one system, seed and size; ``passages`` were searched."""

    line: SizeLine
    point: SizePoint
    measure: str
    passages: int
    queries: int
    mean: float


def draw_corpus_size(folder: Path, content: CorpusSizeSlice) -> None:
    """Write ``<name>.png``, ``.svg`` and ``.csv``; equal numbers give equal bytes.

    Raises:
        EncoreError: there is nothing to draw, or scores are missing.
    """
    if not content.rows:
        raise EncoreError(f"{content.name}: the run has no `corpus_size:`, so there is nothing to draw")
    values = [value for row in content.rows for point in row.seeds for value in _values(content, row, point)]
    write_rows(folder / f"{content.name}.csv", HEADER, [_row(content, value) for value in values])
    with style.style():
        style.save(_figure(content, values), folder, content.name)


def _values(content: CorpusSizeSlice, line: SizeLine, point: SizePoint) -> list[SizeValue]:
    found, passages = scores.read_scores(Path(point.scores)), manifest.read_results(point.run)["passages"]
    scored = {measure: found[content.split, measure] for measure in content.measures}
    return [
        SizeValue(line, point, measure, passages, len(one.queries), exact_mean(one.values))
        for measure, one in scored.items()
    ]


def _row(content: CorpusSizeSlice, value: SizeValue) -> list[str]:
    labels = [value.line.label, value.line.system, str(value.point.seed), content.dataset, content.split, value.measure]
    return [*labels, str(value.point.size), str(value.passages), str(value.queries), number(value.mean)]


def _figure(content: CorpusSizeSlice, values: list[SizeValue]) -> Figure:
    width = 0.8 + 3.2 * max(len(content.measures), 1.6)
    heading, caption = style.wrapped(width, HEADING, _caption(content, values))
    top, strip = style.margins(heading, caption)
    height = top + 2.9 + 0.2 * len(content.rows) + strip
    figure = Figure(figsize=(width, height), layout=style.engine(strip / height, top / height, wspace=0.05))
    axes = figure.subplots(1, len(content.measures), squeeze=False)
    for axis, measure in zip(axes[0], content.measures, strict=True):
        _panel(axis, content, [value for value in values if value.measure == measure])
        axis.set_title(measure, loc="left", fontsize=10, fontweight="bold", color=INK)
    axes[0, 0].legend(frameon=False, fontsize=8.5, labelcolor=INK)
    style.write_around(figure, heading, caption)
    return figure


def _panel(axis: Axes, content: CorpusSizeSlice, values: list[SizeValue]) -> None:
    """A thick line a system, the mean of its seeds, over thin ones for each."""
    for place, row in enumerate(content.rows):
        colour, own = COLOURS[place % len(COLOURS)], [value for value in values if value.line == row]
        seeds = sorted({value.point.seed for value in own})
        lines = [sorted((v.passages, v.mean) for v in own if v.point.seed == seed) for seed in seeds]
        if len(seeds) > 1:
            for line in lines:
                axis.plot(*zip(*line, strict=True), color=colour, linewidth=0.7, alpha=0.5, zorder=2)
        mean = [(points[0][0], exact_mean([y for _, y in points])) for points in zip(*lines, strict=True)]
        axis.plot(*zip(*mean, strict=True), "o-", color=colour, linewidth=2, markersize=4.5, label=row.label, zorder=3)
    axis.set_xlabel("passages", color=SOFT)
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(MaxNLocator(4))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.grid(axis="y", color="#e3e7eb", linewidth=0.7)
    axis.set_axisbelow(True)
    axis.tick_params(length=0, labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)


def _caption(content: CorpusSizeSlice, values: list[SizeValue]) -> str:
    seeds = len({value.point.seed for value in values})
    return (
        f"{values[0].queries:,} queries of {content.dataset}, split {content.split}; {seeds} seed{'s' * (seeds != 1)}. "
        f"The collection starts from what is relevant and BM25’s first {content.depth:,} of each query; passages join "
        "in one random order, and the same vectors are searched at each size. "
        + (PROXY_DATA if content.proxy_data else "")
    )
