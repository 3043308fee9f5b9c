"""How close rows of a table are to runs that others released, by the measures of ``repro_eval``.

A released run is cut to the ranks of ours and judged as ours were.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from encore.data.collection import Collection
from encore.data.rankings import RunMatrices
from encore.data.runs import read_run
from encore.data.trec_runs import read_trec
from encore.errors import EncoreError
from encore.evaluation import judging, scores
from encore.evaluation.reproducibility import DEPTH, Closeness, compared, gains, order
from encore.evaluation.reproducibility import Scores as ByQuery
from encore.evaluation.scores import exact_mean
from encore.products.record import Builder
from encore.products.slices import Read
from encore.products.tables.grid import Column
from encore.products.tables.layout import REPRODUCTION, Layout, Reference, ReproductionSlice
from encore.products.tables.sources.kinds import SOURCES, TESTED
from encore.stages.evaluate import Evaluate
from encore.storage import manifest
from encore.storage.csv_rows import number, read_rows, write_rows

COLUMNS = {
    "paper": "The paper's folder in config/papers.",
    "table": "The table's name.",
    "row": "The row's id.",
    "label": "What the row is called.",
    "setting": "Its group of rows.",
    "column": "The column's id.",
    "dataset": "The dataset that the column asks for.",
    "split": "The split.",
    "measure": "The measure's short name.",
    "seed": "The seed of our run.",
    "run": "The released run's file.",
    "sha256": "Its digest.",
    "answered": "Queries that both runs answer.",
    "depth": "Ranks that are compared.",
    "tau_union": "Kendall's tau over the union of both lists, the mean over queries.",
    "rbo": "Rank-biased overlap, the mean over queries.",
    "judged": "Queries with judgments.",
    "ours": "Our value.",
    "released": "The released run's value.",
    "rmse": "Root mean square error over queries.",
    "p_ttest": "p of the paired t-test over queries.",
    "over": "The row that gains are over.",
    "effect_ratio": "Our gain over that row, divided by theirs.",
    "delta_relative_improvement": "Their relative gain less ours.",
}


def write_reproduction(folder: Path, layout: ReproductionSlice, _: Path) -> str:
    """Write a line for each released run, column that shares it and seed."""
    path = folder / f"{layout.name}.{REPRODUCTION}"
    lines = [line for one in layout.references for line in _lines(layout, one)]
    write_rows(path, COLUMNS, lines)
    return f"table {layout.name}: {len(lines)} lines in {path}"


def reproduction_notes(path: Path, layout: Layout) -> list[str]:
    """A sentence below the table about each released run, means over seeds; none where it has none."""
    if not layout.references:
        return []
    try:
        found = read_rows(path)
    except OSError as error:
        raise EncoreError(f"cannot read {path}: {error.strerror}; run snakemake for {path} again") from error
    return [_note(layout, one, found) for one in layout.references]


def _lines(layout: ReproductionSlice, one: Reference) -> Iterator[list[str]]:
    """A line for each seed and column."""
    row, theirs = layout.row(one), _released(one.run, layout.depth)
    base = next((other for other in layout.references if one.over and other.key == one.over.key), None)
    for ours, read in zip(one.ours, layout.judged(one), strict=True):
        try:
            ranked = order(read_run(Path(ours.folder)), theirs, min(DEPTH, layout.depth))
        except EncoreError as error:
            raise EncoreError(f"{one.run} and {ours.folder}: {error}") from error
        for name in one.columns:
            column = next(column for column in layout.columns if column.id == name)
            close, request = _closeness(layout, one, base, column, read), row.cells[name]
            over = layout.row(base).label if base and close.effect_ratio is not None else ""
            yield [
                *(layout.paper, layout.name, row.id, row.label, row.setting, name),
                *(request.dataset, request.split, request.value, "" if ours.seed is None else str(ours.seed)),
                *(one.run, layout.references_sha256.get(one.run, "")),
                *(str(ranked.queries), str(min(DEPTH, layout.depth)), number(ranked.tau), number(ranked.overlap)),
                str(len(scores.read_scores(Path(read.folder))[request.split, request.value].queries)),
                *map(number, (close.ours, close.theirs, close.error, close.p)),
                *(over, number(close.effect_ratio), number(close.relative)),
            ]


def _closeness(
    layout: ReproductionSlice, one: Reference, base: Reference | None, column: Column, read: Read
) -> Closeness:
    """How close one column and seed are; effects where the baseline has runs there too and something is gained."""
    own, other = _of_ours(layout, one, column, read), _of_theirs(layout, one, column)
    if base is not None and column.id in base.columns:
        reads = layout.judged(base)
        paired = next((each for each in reads if each.seed == read.seed), reads[0] if reads[0].seed is None else None)
        if paired is not None:
            bases = _of_ours(layout, base, column, paired), _of_theirs(layout, base, column)
            if bases[0].keys() == bases[1].keys() == own.keys() and gains(other, bases, column.id):
                return compared(own, other, bases)[0]
    return compared(own, other)[0]


def _of_ours(layout: Layout, one: Reference, column: Column, read: Read) -> ByQuery:
    request = layout.row(one).cells[column.id]
    return _by_query(scores.read_scores(Path(read.folder))[request.split, request.value], column)


def _of_theirs(layout: ReproductionSlice, one: Reference, column: Column) -> ByQuery:
    request = layout.row(one).cells[column.id]
    judged = _judge(one.run, layout.depth, one.collection, layout.judged(one)[0].folder)
    return _by_query(judged[request.split, request.value], column)


def _by_query(found: scores.Scored, column: Column) -> ByQuery:
    return {query: {column.id: float(value)} for query, value in zip(found.queries, found.values, strict=True)}


@cache
def _judge(run: str, depth: int, collection: str, like: str) -> scores.Scores:
    """A released run judged as ours, whose folder of scores says how."""
    try:
        spec, inputs = manifest.read_manifest(Path(like))["spec"], {"run": run, "collection": collection}
        protocol = Evaluate.read(spec, inputs, like).spec
        return judging.judge(_released(run, depth), Collection(Path(collection)), protocol)
    except EncoreError as error:
        raise EncoreError(f"{run}: {error}") from error


@cache
def _released(path: str, depth: int) -> RunMatrices:
    return read_trec(Path(path)).cut(depth)


def _note(layout: Layout, one: Reference, found: list[dict[str, str]]) -> str:
    row = layout.row(one)
    own = [line for line in found if (line["setting"], line["row"], line["run"]) == (*one.key, one.run)]
    first = own[0]
    sentences = [
        f"{row.label}{f' [{row.setting}]' if row.setting else ''} next to the released run {Path(one.run).name}, "
        f"{int(first['answered']):,} queries, first {first['depth']} ranks: Kendall's tau over unions "
        f"{_mean(own, 'tau_union')}, rank-biased overlap {_mean(own, 'rbo')}"
    ]
    for column in (column for column in layout.columns if column.id in one.columns):
        lines = [line for line in own if line["column"] == column.id]
        ours, theirs, error = (
            SOURCES[TESTED].shown(exact_mean([float(line[name]) for line in lines]), layout.unit)
            for name in ("ours", "released", "rmse")
        )
        text = f"{column.label} {ours}, theirs {theirs}, RMSE {error}"
        if over := next((line["over"] for line in lines if line["over"]), ""):
            with_effect = [line for line in lines if line["over"]]
            text += (
                f", effect ratio {_mean(with_effect, 'effect_ratio')} over {over}, difference of relative improvements "
            )
            text += _mean(with_effect, "delta_relative_improvement")
        sentences.append(text)
    return "; ".join(sentences) + "."


def _mean(lines: list[dict[str, str]], name: str) -> str:
    """The mean of what is a number."""
    values = [float(line[name]) for line in lines if line[name] not in ("", "nan")]
    return f"{exact_mean(values):.3f}".replace("-", "−") if values else "unknown"


BUILDER = Builder(ReproductionSlice.model_validate, write_reproduction)
