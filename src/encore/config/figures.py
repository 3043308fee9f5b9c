"""What an entry of ``papers/<paper>/figures.yaml`` may say: one model for each kind of figure.

An entry holds the paper's values; a run's ``scale: figures:`` brings them to its size, field by field.
"""

from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from encore.config.run import CorpusSize, Positive, Strict

Systems = Annotated[dict[str, str], Field(min_length=1, description="lineages by the label that they are drawn with")]


class PointAxes(NamedTuple):
    """What the points of a figure are called by: its panels, its lines and their places from the smallest on."""

    panels: list[str]
    lines: list[str]
    places: list[str]


class FigureEntry(Strict):
    """What every figure says."""

    title: str
    notes: list[str] = Field([], description="sentences of the caption")

    def axes(self) -> PointAxes | None:
        """What a claim calls its points by; nothing for a picture."""
        return None


class PanelEntry(Strict):
    """A measure of a split, by its printed name there, and what it is called in the figure."""

    label: str
    split: str
    measure: str


class GrowthFigure(FigureEntry):
    """Retrieval as the collection grows; one panel a measure."""

    kind: Literal["growth"]
    systems: Systems
    dataset: str
    panels: list[PanelEntry] = Field(min_length=1)
    queries: Positive | None = Field(None, description="size of the sample of queries; all of a split without")
    sample: int = Field(0, ge=0, description="which sample of that size")
    depth: Positive = Field(1000, description="ranks of BM25 that the collection starts from, beside what is relevant")
    sizes: list[Positive | Annotated[float, Field(gt=0, lt=1)]] = Field(
        description="passages, or shares of all of them below 1; the start and all are drawn anyway"
    )
    order: int = Field(0, ge=0, description="which random order passages are added in")

    def axes(self) -> PointAxes:
        return PointAxes(
            [panel.label for panel in self.panels], list(self.systems), ["start", *map(str, self.sizes), "all"]
        )

    def growing(self, panel: PanelEntry) -> CorpusSize:
        """The collection as it grows around the queries of a panel."""
        same = {name: getattr(self, name) for name in ("systems", "dataset", "queries", "sample", "depth", "sizes")}
        return CorpusSize(split=panel.split, order=self.order, **same)


class LineEntry(Strict):
    """A system at each size; ``{name}`` in it is filled by the size."""

    id: str
    label: str
    system: str
    role: Literal["baseline", "none", "control", "objective"] = "baseline"


class LabelsFigure(FigureEntry):
    """Retrieval against how much a model was fine-tuned: the number of training queries, or what they cost."""

    kind: Literal["labels"]
    lines: list[LineEntry] = Field(min_length=1)
    levels: dict[str, str] = Field({}, description="systems without training by label, drawn as level lines")
    dataset: str
    panels: list[PanelEntry] = Field(min_length=1)
    sizes: list[dict[str, str]] = Field(min_length=1, description="what names in systems stand for, smallest first")
    samples: list[Annotated[int, Field(ge=0)]] = Field(
        [0], min_length=1, description="samples of training queries, whose mean is drawn; `{sample}` names one"
    )
    across: list[Literal["queries", "operations"]] = Field(
        ["queries"], min_length=1, description="what panels lie over: training queries, operations of fine-tuning"
    )
    crossover: list[str] = Field(
        [], description="lines by id that each objective is compared with: where does its advantage end?"
    )

    def axes(self) -> PointAxes:
        lines = [*(line.id for line in self.lines), *self.levels]
        return PointAxes(
            [panel.label for panel in self.panels], lines, [next(iter(size.values())) for size in self.sizes]
        )

    @model_validator(mode="after")
    def _name_each_line_once(self) -> "LabelsFigure":
        ids = [line.id for line in self.lines]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"line {name!r} stands twice")
        for name in self.crossover:
            if name not in ids:
                raise ValueError(f"crossover: {name!r} is no line; lines are {', '.join(ids)}")
        return self


class ExampleEntry(Strict):
    """A text that a figure shows: one of the dataset's by a fixed rule, or a given one."""

    text: str | None = Field(None, description="the text itself; without it, a passage of the dataset")
    shortest: Positive = Field(40, description="pieces that the passage has at least")
    longest: Positive = Field(80, description="pieces that it has at most")
    sample: int = Field(0, ge=0, description="which passage: the first such of this random order")


class CoverageFigure(FigureEntry):
    """How many of a text's pieces are among the first k that its representation names (BoW, Algorithm 1)."""

    kind: Literal["coverage"]
    systems: Systems
    dataset: str
    length: Positive = 144
    texts: Positive = Field(10_000, description="of the dataset, or all where it has fewer")
    sample: int = Field(0, ge=0, description="which sample of that size")
    ks: list[Positive] = Field([10, 20, 50, 100, 200], min_length=2)
    head: Literal["start", "own"] = Field(
        "start", description="whose vocabulary head: of the model that all started from (BERT's own), or each its own"
    )

    def axes(self) -> PointAxes:
        return PointAxes(["of_text", "of_top"], list(self.systems), list(map(str, self.ks)))


class WordsFigure(FigureEntry):
    """The first pieces that representations of one text name, and which of them stand in it."""

    kind: Literal["words"]
    systems: Systems
    dataset: str
    length: Positive = 144
    example: ExampleEntry = ExampleEntry()
    top: Positive = 20
    head: Literal["start", "own"] = "start"


class HeatFigure(FigureEntry):
    """A text whose words are coloured by what a decoder says of them."""

    kind: Literal["heat"]
    systems: Systems
    dataset: str
    length: Positive = 512
    example: ExampleEntry = ExampleEntry()


class MapFigure(FigureEntry):
    """A query among its candidates, on a map that keeps near what is near (t-SNE)."""

    kind: Literal["map"]
    systems: Systems
    dataset: str
    split: str = "test"
    sample: int = Field(0, ge=0, description="which query: the first of this random order")
    candidates: Positive = Field(100, description="first ranks of a system's run; relevant passages are drawn anyway")
    perplexity: float = Field(30, gt=1)
    seed_of_map: int = Field(0, ge=0, description="of t-SNE's own chance")


AnyFigure = GrowthFigure | LabelsFigure | CoverageFigure | WordsFigure | HeatFigure | MapFigure
KINDS: dict[str, type[FigureEntry]] = {
    "growth": GrowthFigure,
    "labels": LabelsFigure,
    "coverage": CoverageFigure,
    "words": WordsFigure,
    "heat": HeatFigure,
    "map": MapFigure,
}

__all__ = ["KINDS", "AnyFigure", "ExampleEntry", "FigureEntry", "PanelEntry", "PointAxes"]
