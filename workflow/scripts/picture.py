"""Draw the rules as they follow from one another in a run's plan, with the number of jobs of each: docs/dag.svg."""

import argparse
from collections import Counter
from html import escape
from pathlib import Path

from encore import cli_support
from encore.growth import growing_artifacts
from encore.plan import Plan
from encore.planning.artifact import Artifact
from encore.project import DEFAULT_RUN, load_plan
from encore.storage import write_text
from encore.tables import table_latencies, table_plan, table_scores
from encore.targets import has_figure

Point = tuple[float, float]

PITCH, ROW, WIDTH, HEIGHT, LEFT, TOP = 112, 96, 94, 48, 14, 60  # pixels
# Where each rule stands (column, row), what it is for (the colour), and what it makes, in a word.
RULES: dict[str, tuple[float, float, str, str]] = {
    "collection": (0, 0, "text", "raw text"),
    "tokenizer": (1, 0, "text", "WordPiece"),
    "tokens": (2, 0, "text", "token store"),
    "start": (3, 0, "model", "first weights"),
    "prepare": (3, 1, "text", "word sets, IDF"),
    "pretrain": (4, 0, "model", "objectives"),
    "finetune": (5, 0, "model", "judged queries"),
    "encode": (6, 0, "search", "FAISS shards"),
    "search": (7, 0, "search", "dense runs"),
    "build_index": (6, 1, "search", "HNSW, IVF-PQ"),
    "search_index": (7, 1, "search", "and recall"),
    "evaluate": (8, 1, "result", "scores"),
    "measure_latency": (8, 1, "result", "ms a query"),
    "grow": (6, 2, "text", "nested corpora"),
    "growing": (9, 2, "result", "corpus size"),
    "table": (9, 0, "result", "4 formats"),
    "figure": (9, 1, "result", "forest plot"),
    "curves": (5, 1, "result", "held-out loss"),
    "lucene_index": (1, 2, "search", "Lucene"),
    "lucene_search": (2, 2, "search", "BM25 runs"),
    "train_expander": (2, 1, "search", "writes queries"),
    "expand": (1, 1, "search", "queries"),
    "tune_fusion": (6, 2, "search", "weight"),
    "fuse": (7, 2, "search", "fused runs"),
    "rerank": (8, 2, "search", "ranked again"),
    "negatives": (4, 2, "model", "for training"),
    "listed_negatives": (4, 3, "model", "from a file"),
    "merged_negatives": (5, 3, "model", "BM25 and mined"),
    "teach": (5, 2, "model", "what teachers say"),
}
COLOURS = {
    "text": ("#e8eef7", "#4a6fa5"),
    "model": ("#fdeedd", "#c4752a"),
    "search": ("#e5f3ea", "#3f8f5f"),
    "result": ("#f3e8f3", "#8f4f8f"),
}
# Arrows that do not run straight from right side to left side: how far above (-) or below (+) their boxes they pass,
# and what is said along them.
ARCS = {
    ("tokenizer", "start"): (18, "random start"),
    ("start", "finetune"): (-18, "no pre-training"),
    ("tokens", "finetune"): (-40, ""),
    ("search", "negatives"): (18, "mined by the model itself"),
    ("lucene_search", "evaluate"): (38, "BM25's own row"),
}


def stages(plan: Plan) -> tuple[Counter[str], set[tuple[str, str]]]:
    """Jobs of each rule behind a run's tables, and which rule's output each rule reads.

    What is made from another input already is no arrow of its own: nearly every rule reads the collection.
    """
    tables = plan.config.tables
    behind_all = [each for name in tables for each in (*table_scores(plan, name), *table_latencies(plan, name))]
    behind_all += growing_artifacts(plan)
    made = {each.folder: each for scores in behind_all for each in scores.ancestors()}
    figures = sum(has_figure(table_plan(plan, name)) for name in tables)
    jobs = Counter(map(_rule, made.values())) + Counter(table=len(tables), figure=figures, curves=1)
    jobs += Counter(growing=1 if plan.config.growing else 0)
    arrows = {("evaluate", "table"), ("evaluate", "figure"), ("pretrain", "curves")}
    arrows |= {("measure_latency", "table")} if jobs["measure_latency"] else set()
    arrows |= {("evaluate", "growing")} if plan.config.growing else set()
    for artifact in made.values():
        inputs = list(artifact.inputs.values())
        behind = {each.folder for parent in inputs for each in list(parent.ancestors())[:-1]}
        arrows |= {(_rule(parent), _rule(artifact)) for parent in inputs if parent.folder not in behind}
    arrows = {(source, target) for source, target in arrows if source != target}  # a fusion's measurement reads others
    return jobs, arrows


def draw(jobs: Counter[str], arrows: set[tuple[str, str]], title: str) -> str:
    """The picture as SVG."""
    width, height = LEFT * 2 + 9 * PITCH + WIDTH, TOP + 2 * ROW + HEIGHT + 74
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="Helvetica, Arial, sans-serif" role="img">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>',
        *(_arrow(*arrow) for arrow in sorted(arrows)),
        *(_box(rule, count) for rule, count in sorted(jobs.items())),
        f'<text x="{LEFT}" y="{height - 12}" font-size="12" fill="#555">{escape(title)}</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _rule(artifact: Artifact) -> str:
    return artifact.stage.partition(".")[0]


def _corner(rule: str) -> Point:
    column, row, _, _ = RULES[rule]
    return LEFT + column * PITCH, TOP + row * ROW


def _box(rule: str, count: int) -> str:
    (x, y), (_, _, kind, says) = _corner(rule), RULES[rule]
    fill, line = COLOURS[kind]
    middle = x + WIDTH / 2
    times = "1 job" if count == 1 else f"{count} jobs"
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{fill}" stroke="{line}"/>'
        + _words(f"<tspan font-weight='bold'>{rule}</tspan>", middle, y + 18, 12 if len(rule) < 12 else 11, "#222")
        + _words(says, middle, y + 32, 10.5, "#444")
        + _words(times, middle, y + 44, 9, line)
    )


def _words(text: str, x: float, y: float, size: float, colour: str) -> str:
    """Centred text."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{colour}" text-anchor="middle">{text}</text>'


def _arrow(source: str, target: str) -> str:
    path, label = _arc(source, target, *ARCS[source, target]) if (source, target) in ARCS else _straight(source, target)
    return f'<path d="{path}" fill="none" stroke="#555" stroke-width="1.2" marker-end="url(#tip)"/>{label}'


def _straight(source: str, target: str) -> tuple[str, str]:
    """From the right side to the left side, bent where the rows differ, or down; nothing is said along it."""
    (x1, y1), (x2, y2) = _corner(source), _corner(target)
    if x1 == x2:
        return f"M{x1 + WIDTH / 2:g},{y1 + HEIGHT:g} L{x2 + WIDTH / 2:g},{y2:g}", ""
    start, end = (x1 + WIDTH, y1 + HEIGHT / 2), (x2, y2 + HEIGHT / 2)
    bend = (end[0] - start[0]) / 2
    middle = f"{start[0] + bend:g},{start[1]:g} {end[0] - bend:g},{end[1]:g}"
    return f"M{start[0]:g},{start[1]:g} C{middle} {end[0]:g},{end[1]:g}", ""


def _arc(source: str, target: str, room: int, says: str) -> tuple[str, str]:
    """Out of the upper or lower edge, along, and into the target's edge on the same side; and the words along it."""
    (x1, y1), (x2, y2) = _corner(source), _corner(target)
    below = HEIGHT if room > 0 else 0
    level = (max(y1, y2) + below if room > 0 else min(y1, y2)) + room
    start, end = x1 + WIDTH * 0.7, x2 + WIDTH * (0.5 if room < -20 else 0.3)
    turn = 10 if end > start else -10
    path = (
        f"M{start:g},{y1 + below:g} Q{start:g},{level:g} {start + turn:g},{level:g}"
        f" L{end - turn:g},{level:g} Q{end:g},{level:g} {end:g},{y2 + below:g}"
    )
    return path, _words(says, (start + end) / 2, level - 4, 10, "#555") if says else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=DEFAULT_RUN, help="the run whose plan is drawn")
    parser.add_argument("--output", type=Path, required=True, help="the SVG file")
    arguments = parser.parse_args()
    plan = load_plan(arguments.config)
    jobs, arrows = stages(plan)
    title = f"{arguments.config}: {jobs.total()} jobs; arrows that follow from others are left out"
    write_text(arguments.output, draw(jobs, arrows, title))


if __name__ == "__main__":
    cli_support.run(main)
