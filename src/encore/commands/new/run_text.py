"""The text of a run's file for one's own collection, and what it says of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from encore import objectives
from encore.commands.new.encoder import PAPERS_START, PublishedEncoder
from encore.commands.new.source import REPEATED, Source
from encore.config.run import RunConfig
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan import lineage as naming
from encore.plan.catalogue import Catalogue
from encore.products.tables.entries import RowEntry, Table

TABLE, ZERO_SHOT, PUBLISHED = "table1", "zero-shot", "published"
AS_IT_IS = ("bm25", "as-it-is")  # rows of the last one in which nothing is trained
UNTRAINED = [f"As it is: {row}" for row in AS_IT_IS]  # where nothing else is a row
REPLACED = ("wikipedia", "wikipedia-bookcorpus", "msmarco-passage", "msmarco-passage-titles")  # what both tables need
PRETRAINED = REPLACED[:2]
NDCG = {"nDCG@10": "nDCG@10"}
LACKING = {  # needs of objectives that passages do not meet: attributes of their classes, and fields
    "reads_articles": "they learn from articles and links, not from passages",
    "pairs_sentences": "they learn from texts of two sentences, and here each has one",
    "min_tokens": "they learn from longer texts than any here",
    "length": "they learn from two sentences together, and here these are longer than what they read",
}
USES = {"train": "queries to train on", "valid": "to validate with", "test": "to test with"}


def run_text(
    title: str,
    source: Source,
    base: tuple[str, RunConfig],
    catalogue: Catalogue,
    encoder: PublishedEncoder | None = None,
) -> str:
    """The text of ``config/<title>.yaml``: table 1, or zero-shot search if nothing of the collection trains.

    Args:
        base: the file of the run that it extends, and its content.
        encoder: whose table it is instead: as it is, and fine-tuned if anything trains.
    """
    (extended, config), name = base, source.name
    kept = {each: config.scale.datasets[each] for each in REPLACED if each in config.scale.datasets}
    datasets = kept | dict.fromkeys(REPLACED if source.trains else PRETRAINED if source.pretrains else (), name)
    datasets |= {ZERO_SHOT: name} if encoder or (source.given and not source.trains) else {}
    entry, splits = entry_of(source)
    if encoder:
        splits["test"]["measures"] = NDCG | _measures(source)
    lines = [
        *(f"# {line}" for line in about(source, encoder)),
        f"extends: {_flow(extended)}",
        f"title: {_flow(title if source.trains else f'{title}, zero-shot')}",
        "proxy_data: own",
        *(_of_encoder(source, config, catalogue, encoder) if encoder else _tables(source, config, catalogue)),
        f"  datasets: {_flow(datasets)}",
        *(f"  {key}: {_flow(value)}" for key, value in source.scale.items()),
        *(_entries_of(encoder, config) if encoder else ()),
        "",
        "datasets:",
        *(f"  {_flow(each)}: {_flow(value)}" for each, value in _behind(datasets.values(), config.datasets).items()),
        f"  {_flow(name)}:",
        *(f"    {key}: {_flow(value)}" for key, value in entry.items()),
        "    splits:" if splits else "    splits: {}",
        *(f"      {key}: {_flow(value)}" for key, value in splits.items()),
    ]
    return "\n".join(lines) + "\n"


def about(source: Source, encoder: PublishedEncoder | None = None) -> Iterator[str]:
    """What was found in the collection, and of the encoder, in sentences."""
    yield from filter(None, [source.tested])
    used = [split for split in (["test"] if source.zero_shot else USES) if split in source.queries]
    asked = ", ".join(f"{source.queries[split]:,} {USES[split]}" for split in used)
    grades = "several grades" if source.is_graded else "one grade"
    yield f"{source.passages:,} passages" + (f"; {asked}; judgments of {grades}." if asked else ", to pre-train on.")
    if len(source.grades) > 1:
        counted = ", ".join(
            f"{grade} ({count:,}{f': {source.means[grade]}' if source.means.get(grade) else ''})"
            for grade, count in sorted(source.grades.items())
        )
        rel = " (rel=)" if source.is_graded else ""
        yield f"Test judgments by grade: {counted}. Relevant are those from {source.least} on{rel}."
    if source.own:
        negative = "neither scored by itself nor its own negative" if source.trains else "not scored by itself"
        yield f"{source.own:,} queries are passages, too: a query is {negative}."
    if source.copies:
        repeated = " and ".join(f"{count:,} {REPEATED[name]}" for name, count in source.copies.items())
        negatives = ": copies of a relevant passage are left out of negatives" if source.trains else ""
        yield f"{repeated} repeat the text of an earlier one{negatives}."
    counts = {"a relevant passage": source.overlap.grades, "the text": source.overlap.texts}
    if source.trains and (shared := [f"{len(queries):,} have {what}" for what, queries in counts.items() if queries]):
        yield f"Of the test queries {' and '.join(shared)} of a training query: the table tells them apart."
    yield from source.notes
    if source.zero_shot and source.has_training:
        others = " and ".join(f"{source.queries[split]:,} {USES[split]}" for split in ("train", "valid"))
        yield f"Not used here: {others}; without --zero-shot they are."
    if encoder:
        yield encoder.sentence()


def _of_encoder(source: Source, config: RunConfig, catalogue: Catalogue, encoder: PublishedEncoder) -> list[str]:
    """The lines of tables and scale of a published encoder: BM25 and itself, and rows that are trained from it."""
    if not source.trains:
        if source.rows:
            raise EncoreError("--rows are trained, and --zero-shot with --checkpoint trains none; leave one out")
        backbones = config.scale.backbones | {PAPERS_START: encoder.name}
        return [f"tables: {_flow({PUBLISHED: UNTRAINED})}", "scale:", f"  backbones: {_flow(backbones)}"]
    table = catalogue.tables[PUBLISHED]
    learned = [row for row in table.rows if row.id not in AS_IT_IS and (encoder.is_bert or row.role == "none")]
    learned = _wanted(learned, source)
    rows, reasons = _suitable([*AS_IT_IS, *(row.id for row in learned)], source, catalogue, table)
    reasons += [] if encoder.is_bert else ["# By Transformers' code, which is not pre-trained further here."]
    steps = {step.name for row in learned for step in naming.parse(row.system or "").steps}
    scale = encoder.scale(config, {name: catalogue.steps[name] for name in sorted(steps)})
    return [
        *reasons,
        f"tables: {_flow({PUBLISHED: rows})}",
        "scale: # each fine-tuning takes the best of some learning rates; those of pre-training are the catalogue's",
        *(f"  {key}: {_flow(value)}" for key, value in scale.items()),
    ]


def _behind(names: Iterable[str], own: Mapping[str, Any]) -> dict[str, Any]:
    """The datasets that the other run's file adds and that are among the names, with those they derive from."""
    found: dict[str, Any] = {}
    left = [*names]
    while left:
        if (name := left.pop()) in own and name not in found:
            found[name] = own[name]
            of = own[name].get("of") or ()
            left += [of] if isinstance(of, str) else of
    return found


def _entries_of(encoder: PublishedEncoder, config: RunConfig) -> list[str]:
    """The lines of the encoder's backbone and source, with the other run's own, which they would replace."""
    found = []
    for section, entry in (("backbones", encoder.backbone), ("sources", encoder.source)):
        if entry:
            found += ["", f"{section}:", f"  {_flow(encoder.name)}:"]
            found += [f"    {key}: {_flow(value)}" for key, value in entry.items()]
            found += [f"  {_flow(name)}: {_flow(value)}" for name, value in getattr(config, section).items()]
    return found


def _tables(source: Source, config: RunConfig, catalogue: Catalogue) -> list[str]:
    """The lines of tables, with those rows of table 1 that the other run has and that the texts suffice for."""
    wanted, shown = config.tables.get(TABLE, "all"), ZERO_SHOT if source.given and not source.trains else TABLE
    table = catalogue.tables[shown]
    if source.rows:
        baselines = [row for row in table.rows if row.id == "bm25"]
        wanted = list(dict.fromkeys(row.id for row in (*baselines, *_wanted(table.rows, source))))
    if not (source.trains or source.pretrains):
        return [f"tables: {_flow({shown: wanted})}", "scale:"]
    rows = list(dict.fromkeys(row.id for row in table.rows)) if isinstance(wanted, str) else wanted
    rows, reasons = _suitable(rows, source, catalogue, table)
    return [*reasons, f"tables: {_flow({shown: rows if reasons else wanted})}", "scale:"]


def _wanted(rows: Sequence[RowEntry], source: Source) -> list[RowEntry]:
    """The rows that ``--rows`` names, or all."""
    known = {row.id for row in rows}
    for name in source.rows:
        if name not in known:
            raise EncoreError(f"--rows: no row {name!r}{nearest(name, known)}; there are {', '.join(sorted(known))}")
    return [row for row in rows if not source.rows or row.id in source.rows]


def left_out_rows(text: str) -> Iterator[str]:
    """What a run's file says of rows that are left out."""
    yield from (line.removeprefix("# ") for line in text.splitlines() if line.startswith("# Left out, "))


def _suitable(rows: Sequence[str], source: Source, catalogue: Catalogue, table: Table) -> tuple[list[str], list[str]]:
    """The rows whose objectives the texts suffice for, and why others are left out, as comments."""
    kept, reasons = list(rows), []
    for need in (each for each in LACKING if each != "pairs_sentences" or not source.pairs_of_sentences):
        needing = _needing(catalogue, table, need, source)
        left_out = {row: needing[name] for row in kept if (name := row.rpartition(": ")[2]) in needing}
        kept = [row for row in kept if row not in left_out]
        reasons += [f"# Left out, since {LACKING[need]}: {', '.join(left_out.values())}."] if left_out else []
    return kept, reasons


def _measures(source: Source) -> dict[str, str]:
    """What is measured of all that is relevant; of several grades with the least one that is."""
    rel = f"(rel={source.least})" if source.is_graded or source.least > 1 else ""
    return {f"{name}@{ranks}": f"{name}{rel}@{ranks}" for name, ranks in (("RR", 10), ("R", 100), ("R", 1000))}


def entry_of(source: Source) -> tuple[dict[str, Any], dict[str, Any]]:
    """The dataset's entry and its splits: one, if nothing of it can train."""
    given, entry = source.given, dict(source.fields)
    if not given:
        return entry, {}
    if not source.has_training:
        split = {"role": "test", **given["test"], "measures": NDCG | _measures(source)}
        return entry | {"zero_shot": True}, {"test": split}
    measures, same = _measures(source), given["test"] or {"file": "qrels/test.tsv"}
    splits: dict[str, Any] = {
        "train": {"role": "train", **given["train"]},
        "valid": {"role": "valid", **given.get("valid", {}), "measures": {"RR@10": measures["RR@10"]}},
        "test": {"role": "test", **given["test"], "measures": measures},
        "graded": {"role": "graded", "topics": "test", **same, "measures": NDCG},
    }
    if source.held_out:
        entry["valid_queries"] = source.held_out
    if source.zero_shot:
        entry["zero_shot"] = True
        splits["test"]["measures"] = NDCG | measures
    return entry, splits


def _needing(catalogue: Catalogue, table: Table, need: str, source: Source) -> dict[str, str]:
    """Labels, by id, of the rows that are pre-trained by an objective with this need."""

    def needs(objective: str) -> bool:
        return objective in source.unsuited.get(need, ()) or getattr(objectives.load(objective), need, False)

    found = {}
    for row in table.rows:
        if row.system and row.system not in catalogue.systems:
            steps = (catalogue.steps[step.name] for step in naming.parse(row.system).steps)
            if any(step["kind"] == "pretrain" and needs(step["objective"]) for step in steps):
                found[row.id] = row.label
    return found


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
