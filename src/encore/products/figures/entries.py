"""The entries of ``papers/<paper>/figures.yaml``: one model for each kind of figure.

An entry holds the paper's values; a run's ``scale.figures`` replaces them, field by field.
"""

from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from encore.config.run import Systems
from encore.config.strict import Positive, Strict


class PointAxes(NamedTuple):
    """The names of a figure's points: its panels, its lines, and their places from the smallest to the largest."""

    panels: list[str]
    lines: list[str]
    places: list[str]


class FigureEntry(Strict):
    """The fields that every figure has."""

    title: str
    notes: list[str] = Field([], description="Sentences that are added to the caption.")

    def axes(self) -> PointAxes | None:
        """The names that claims use for its points; none for a picture without points."""
        return None


class PanelEntry(Strict):
    """A measure of a split, by its printed name there, and what it is called in the figure."""

    label: str
    split: str
    measure: str


class GrowthFigure(FigureEntry):
    """Retrieval as a collection grows around the queries of a split; one panel a measure."""

    kind: Literal["growth"]
    systems: Systems
    dataset: str
    queries: Positive | None = Field(
        None, description="The size of the sample of queries; without it, all queries of the split."
    )
    sample: int = Field(
        0, ge=0, description="The number of the sample: each number gives another random sample of that size."
    )
    depth: Positive = Field(
        1000,
        description="The ranks of BM25 for each query that the smallest collection has in addition to "
        "relevant passages.",
    )
    sizes: list[Positive | Annotated[float, Field(gt=0, lt=1)]] = Field(
        description="The sizes of the collection in passages, or as shares of all if below 1; the "
        "smallest and the whole are always drawn."
    )
    order: int = Field(0, ge=0, description="The number of the random order in which passages are added.")
    panels: list[PanelEntry] = Field(min_length=1)

    def axes(self) -> PointAxes:
        """Its panels, systems, and corpus sizes from the start to all passages."""
        return PointAxes(
            [panel.label for panel in self.panels], list(self.systems), ["start", *map(str, self.sizes), "all"]
        )


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
    levels: dict[str, str] = Field({}, description="Systems without training, drawn as level lines, by their labels.")
    dataset: str
    panels: list[PanelEntry] = Field(min_length=1)
    sizes: list[dict[str, str]] = Field(
        min_length=1, description="Values of the placeholders in systems for each size, the smallest size first."
    )
    samples: list[Annotated[int, Field(ge=0)]] = Field(
        [0],
        min_length=1,
        description="The samples of training queries, whose mean is drawn; the placeholder `{sample}` is one of them.",
    )
    across: list[Literal["queries", "operations"]] = Field(
        ["queries"],
        min_length=1,
        description="The x axes of the panels: training queries, or operations of fine-tuning.",
    )
    crossover: list[str] = Field(
        [], description="The ids of lines that each objective is compared with, to find where its advantage ends."
    )

    def axes(self) -> PointAxes:
        """Its panels, lines with constant ones last, and numbers of labels."""
        lines = [*(line.id for line in self.lines), *self.levels]
        return PointAxes(
            [panel.label for panel in self.panels], lines, [next(iter(size.values())) for size in self.sizes]
        )

    @model_validator(mode="after")
    def _name_each_line_once(self) -> "LabelsFigure":
        ids = [line.id for line in self.lines]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"line {name!r} is there twice")
        for name in self.crossover:
            if name not in ids:
                raise ValueError(f"crossover: {name!r} is no line; lines are {', '.join(ids)}")
        return self


class ExampleEntry(Strict):
    """A text that a figure shows: one of the dataset's by a fixed rule, or a given one."""

    text: str | None = Field(None, description="The text that is shown; without it, a passage of the dataset.")
    shortest: Positive = Field(40, description="The fewest word pieces of the passage.")
    longest: Positive = Field(80, description="The most word pieces of the passage.")
    sample: int = Field(0, ge=0, description="The number of the random order whose first fitting passage is shown.")


class CoverageFigure(FigureEntry):
    """How many of a text's pieces are among the first k that its representation names (BoW, Algorithm 1)."""

    kind: Literal["coverage"]
    systems: Systems
    dataset: str
    length: Positive = 144
    texts: Positive = Field(10_000, description="The number of texts of the dataset; all where it has fewer.")
    sample: int = Field(
        0, ge=0, description="The number of the sample: each number gives another random sample of that size."
    )
    ks: list[Positive] = Field([10, 20, 50, 100, 200], min_length=2)
    head: Literal["start", "own"] = Field(
        "start",
        description="The vocabulary head that names words: that of the model all started from (BERT's "
        "own), or each model's own.",
    )

    def axes(self) -> PointAxes:
        """Its two panels (shares of the text's word pieces and of the top k), systems, and values of k."""
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
    sample: int = Field(0, ge=0, description="The number of the random order whose first query is shown.")
    candidates: Positive = Field(
        100, description="The first ranks of a system's run that are drawn, in addition to relevant passages."
    )
    perplexity: float = Field(30, gt=1)
    seed_of_map: int = Field(0, ge=0, description="The seed of t-SNE.")


KINDS: dict[str, type[FigureEntry]] = {
    "growth": GrowthFigure,
    "labels": LabelsFigure,
    "coverage": CoverageFigure,
    "words": WordsFigure,
    "heat": HeatFigure,
    "map": MapFigure,
}

__all__ = ["KINDS", "ExampleEntry", "FigureEntry", "PanelEntry", "PointAxes"]
