"""Draw the rules behind some tables as they follow from one another, with the number of jobs of each.

docs/dag.svg has the rules of table 1, docs/recipes.svg those of table 2.
"""

import argparse
import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from encore.storage.program import run

from encore.errors import EncoreError
from encore.plan.artifact import Artifact, behind
from encore.plan.plan import Plan
from encore.plan.project import DEFAULT_RUN, load_plan
from encore.plan.tables import table_plan, table_reads
from encore.storage.files import write_text
from encore.targets import has_figure

Point = tuple[float, float]
Arrow = tuple[str, str]

PITCH, ROW, WIDTH, HEIGHT, LEFT, TOP = 120, 96, 100, 48, 14, 60  # pixels
LEGEND = 190  # characters of a line below the boxes
# What each rule is for (the colour), and what it makes, in a word.
RULES: dict[str, tuple[str, str]] = {
    "fetch_source": ("text", "from the web"),
    "fetch_ir_datasets": ("text", "from the web"),
    "fetch_checkpoint": ("text", "from the web"),
    "collection": ("text", "raw text"),
    "tokenizer": ("text", "WordPiece"),
    "tokens": ("text", "token store"),
    "prepare": ("text", "word sets, IDF"),
    "nested_corpora": ("text", "nested corpora"),
    "start": ("model", "first weights"),
    "pretrain": ("model", "objectives"),
    "negatives": ("model", "for training"),
    "negatives_from_file": ("model", "from a file"),
    "negatives_from_dataset": ("model", "of a collection"),
    "merged_negatives": ("model", "BM25 and mined"),
    "teacher_scores": ("model", "teachers' scores"),
    "finetune": ("model", "judged queries"),
    "train_doc2query": ("search", "query writer"),
    "predict_queries": ("search", "longer passages"),
    "lucene_index": ("search", "Lucene"),
    "lucene_search": ("search", "BM25 runs"),
    "encode": ("search", "FAISS shards"),
    "search": ("search", "dense runs"),
    "build_index": ("search", "HNSW, IVF-PQ"),
    "search_index": ("search", "and recall"),
    "tune_fusion": ("search", "weight"),
    "fuse": ("search", "fused runs"),
    "rerank": ("search", "ranked again"),
    "evaluate": ("result", "scores"),
    "measure_latency": ("result", "ms/query, MiB"),
    "masked_loss": ("result", "of MLM"),
    "count_pairs": ("result", "of ICT, BFS, WLP"),
    "inspect_model": ("result", "of a few texts"),
    "reproduce": ("result", "released runs"),
    "table": ("result", "4 formats"),
    "figure": ("result", "forest plot"),
    "curves": ("result", "held-out loss"),
    "corpus_size": ("result", "by corpus size"),
    "draw": ("result", "papers' figures"),
    "claims": ("result", "verdicts"),
    "claims_printed": ("result", "no run"),
    "report": ("result", "one page"),
}


@dataclass(frozen=True)
class Layout:
    """Where rules stand, and which of their arrows go round boxes."""

    places: dict[str, tuple[float, float]]  # column, row
    # How far above (-) or below (+) its boxes an arrow passes that does not run from right side to left side, and what
    # is said along it.
    arcs: dict[Arrow, tuple[int, str]]


PRETRAINING = Layout(
    places={
        "collection": (0, 0),
        "tokenizer": (1, 0),
        "tokens": (2, 0),
        "start": (3, 0),
        "prepare": (3, 1),
        "pretrain": (4, 0),
        "finetune": (5, 0),
        "curves": (5, 1),
        "encode": (6, 0),
        "search": (7, 0),
        "lucene_index": (1, 2),
        "lucene_search": (2, 2),
        "negatives": (4, 2),
        "evaluate": (8, 1),
        "table": (9, 0),
        "figure": (9, 1),
    },
    arcs={
        ("tokenizer", "start"): (18, "random start"),
        ("start", "finetune"): (-18, "no pre-training"),
        ("tokens", "finetune"): (-40, ""),
        ("search", "negatives"): (18, "mined by the model itself"),
        ("lucene_search", "evaluate"): (38, "BM25's own row"),
    },
)
RECIPES = Layout(
    places={
        "collection": (0, 1),
        "tokenizer": (1, 1),
        "tokens": (2, 1),
        "start": (3, 1),
        "finetune": (4, 1),
        "teacher_scores": (4, 2),
        "negatives": (3, 2),
        "encode": (5, 1),
        "build_index": (6, 0),
        "search": (6, 1),
        "search_index": (7, 0),
        "tune_fusion": (7, 2),
        "fuse": (8, 2),
        "lucene_index": (1, 3),
        "lucene_search": (2, 3),
        "rerank": (5, 3),
        "measure_latency": (9, 0),
        "evaluate": (9, 1),
        "table": (10, 0),
        "figure": (10, 1),
    },
    arcs={
        ("encode", "measure_latency"): (-18, "with the models, indexes and runs of each system"),
        ("search", "negatives"): (18, "mined by a model"),
        ("lucene_search", "tune_fusion"): (18, ""),
        ("lucene_search", "evaluate"): (38, "BM25's own row"),
    },
)
LAYOUTS = (PRETRAINING, RECIPES)
# Rules whose arrows are not all drawn, and where the drawn ones come from: a measurement reads all that a system is
# made of, and a fusion the systems whose weight was tuned.
DRAWN_FROM = {"measure_latency": {"encode"}, "fuse": {"tune_fusion"}}
COLOURS = {
    "text": ("#e8eef7", "#4a6fa5"),
    "model": ("#fdeedd", "#c4752a"),
    "search": ("#e5f3ea", "#3f8f5f"),
    "result": ("#f3e8f3", "#8f4f8f"),
}


def stages(plan: Plan, tables: Sequence[str]) -> tuple[Counter[str], set[Arrow]]:
    """Jobs of each rule behind some tables and their figures, and which rule's output each rule reads.

    What is made from another input already is no arrow of its own: nearly every rule reads the collection.
    """
    read = [each for name in tables for each in table_reads(plan, name)]
    made = {each.folder: each for each in behind(read)}
    jobs = Counter(map(_rule, made.values()))
    arrows = {("evaluate", "figure"), ("pretrain", "curves")}
    arrows = {(source, target) for source, target in arrows if jobs[source]} | {(_rule(each), "table") for each in read}
    jobs += Counter(table=len(tables), curves=min(1, jobs["pretrain"]))
    jobs += Counter(figure=sum(has_figure(table_plan(plan, name)) for name in tables))
    for artifact in made.values():
        inputs = list(artifact.inputs.values())
        further = {each.folder for each in behind(each for parent in inputs for each in parent.inputs.values())}
        arrows |= {(_rule(parent), _rule(artifact)) for parent in inputs if parent.folder not in further}
    return +jobs, {(source, target) for source, target in arrows if source != target and jobs[target]}


def layout_of(rules: Iterable[str]) -> Layout:
    """The first layout with a place for every rule.

    Raises:
        EncoreError: no layout has.
    """
    missing = [sorted(set(rules) - set(layout.places)) for layout in LAYOUTS]
    if [] not in missing:
        least = min(missing, key=len)
        names = ", ".join(least)
        raise EncoreError(f"no layout of picture.py has a place for {names}; draw fewer tables, or add a place")
    return LAYOUTS[missing.index([])]


def draw(jobs: Counter[str], arrows: set[Arrow], title: str) -> str:
    """The picture as SVG; below it the rules that stand in no picture of the project."""
    layout = layout_of(jobs)
    drawn = {arrow for arrow in arrows if arrow[0] in DRAWN_FROM.get(arrow[1], {arrow[0]})}
    legend = [title, *textwrap.wrap("Further rules: " + "; ".join(_undrawn(jobs, layout)), LEGEND)]
    columns, rows = (max(place[axis] for place in layout.places.values()) for axis in (0, 1))
    width, bottom = LEFT * 2 + columns * PITCH + WIDTH, TOP + rows * ROW + HEIGHT + 62
    height = bottom + 17 * (len(legend) - 1) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="Helvetica, Arial, sans-serif" role="img">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>',
        *(_arrow(layout, *arrow, both_ways=arrow[::-1] in drawn) for arrow in sorted(drawn)),
        *(_box(layout, rule, count) for rule, count in sorted(jobs.items())),
        *(
            f'<text x="{LEFT}" y="{bottom + 17 * line}" font-size="11" fill="#555">{escape(says)}</text>'
            for line, says in enumerate(legend)
        ),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _undrawn(jobs: Counter[str], layout: Layout) -> list[str]:
    """The rules that are neither here nor in another picture, and what they make."""
    elsewhere = {rule for other in LAYOUTS if other is not layout for rule in other.places}
    return [f"{rule} ({says})" for rule, (_, says) in RULES.items() if rule not in elsewhere and not jobs[rule]]


def _rule(artifact: Artifact) -> str:
    return artifact.stage.partition(".")[0]


def _corner(layout: Layout, rule: str) -> Point:
    column, row = layout.places[rule]
    return LEFT + column * PITCH, TOP + row * ROW


def _box(layout: Layout, rule: str, count: int) -> str:
    (x, y), (kind, says) = _corner(layout, rule), RULES[rule]
    fill, line = COLOURS[kind]
    middle = x + WIDTH / 2
    times = "1 job" if count == 1 else f"{count} jobs"
    size = 12 if len(rule) < 12 else 11 if len(rule) < 14 else 9.5
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{fill}" stroke="{line}"/>'
        + _words(f"<tspan font-weight='bold'>{rule}</tspan>", middle, y + 18, size, "#222")
        + _words(escape(says), middle, y + 32, 10.5, "#444")
        + _words(times, middle, y + 44, 9, line)
    )


def _words(text: str, x: float, y: float, size: float, colour: str) -> str:
    """Centred text."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{colour}" text-anchor="middle">{text}</text>'


def _arrow(layout: Layout, source: str, target: str, *, both_ways: bool) -> str:
    start, end = _corner(layout, source), _corner(layout, target)
    if arc := layout.arcs.get((source, target)):
        path, label = _arc(start, end, *arc)
    else:
        path, label = (_vertical(start, end, both_ways) if start[0] == end[0] else _straight(start, end)), ""
    return f'<path d="{path}" fill="none" stroke="#555" stroke-width="1.2" marker-end="url(#tip)"/>{label}'


def _vertical(source: Point, target: Point, both_ways: bool) -> str:
    """Between boxes of one column, beside the middle where another runs back."""
    down = source[1] < target[1]
    x = source[0] + WIDTH * ((0.35 if down else 0.65) if both_ways else 0.5)
    leave, arrive = (HEIGHT, 0) if down else (0, HEIGHT)
    return f"M{x:g},{source[1] + leave:g} L{x:g},{target[1] + arrive:g}"


def _straight(source: Point, target: Point) -> str:
    """From the right side to the left side, bent just before the target where the rows differ."""
    start, end = (source[0] + WIDTH, source[1] + HEIGHT / 2), (target[0], target[1] + HEIGHT / 2)
    turn = end[0] - (PITCH - WIDTH)
    middle = (turn + end[0]) / 2
    along = f" L{turn:g},{start[1]:g}" if turn > start[0] else ""
    return f"M{start[0]:g},{start[1]:g}{along} C{middle:g},{start[1]:g} {middle:g},{end[1]:g} {end[0]:g},{end[1]:g}"


def _arc(source: Point, target: Point, room: int, says: str) -> tuple[str, str]:
    """Out of the upper or lower edge, along, and into the target's edge on the same side; and the words along it."""
    (x1, y1), (x2, y2) = source, target
    below = HEIGHT if room > 0 else 0
    level = (max(y1, y2) + below if room > 0 else min(y1, y2)) + room
    start, end = x1 + WIDTH * 0.7, x2 + WIDTH * (0.5 if room < -20 else 0.3)
    turn = 10 if end > start else -10
    path = (
        f"M{start:g},{y1 + below:g} L{start:g},{level - math.copysign(10, room):g}"
        f" Q{start:g},{level:g} {start + turn:g},{level:g}"
        f" L{end - turn:g},{level:g} Q{end:g},{level:g} {end:g},{level - math.copysign(10, room):g}"
        f" L{end:g},{y2 + below:g}"
    )
    return path, _words(says, start + 0.35 * (end - start), level - 4, 10, "#555") if says else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=DEFAULT_RUN, help="the run whose plan is drawn")
    parser.add_argument("--tables", nargs="+", required=True, help="the tables whose rules are drawn")
    parser.add_argument("--output", type=Path, required=True, help="the SVG file")
    arguments = parser.parse_args()
    jobs, arrows = stages(load_plan(arguments.config), arguments.tables)
    tables = " and ".join(arguments.tables)
    title = f"{arguments.config}, {tables}: {jobs.total()} jobs; arrows that follow from others are left out"
    write_text(arguments.output, draw(jobs, arrows, title))


if __name__ == "__main__":
    run(main)
