"""A run's file for your own collection: a few lines that extend another run."""

from collections.abc import Iterator
from typing import Any

import yaml

from encore import objectives
from encore.commands.new.source import Source
from encore.config import lineage as naming
from encore.config.run import RunConfig
from encore.plan.catalogue import Catalogue
from encore.products.tables.entries import Table

TABLE, ZERO_SHOT = "table1", "zero-shot"
REPLACED = ("wikipedia", "wikipedia-bookcorpus", "msmarco-passage", "msmarco-passage-titles")  # what both tables need
MEASURES = {"RR@10": "RR@10", "R@100": "R@100", "R@1000": "R@1000"}
LACKING = {  # needs of objectives, attributes of their classes, that passages do not meet
    "reads_articles": "they learn from articles and links, not from passages",
    "pairs_sentences": "they learn from texts of two sentences, and here each has one",
}
USES = {"train": "queries to train on", "valid": "to validate with", "test": "to test with"}


def run_text(name: str, source: Source, base: tuple[str, RunConfig], catalogue: Catalogue) -> str:
    """The text of ``config/<name>.yaml``: table 1, or zero-shot search if nothing of the collection trains.

    Args:
        base: the file of the run that it extends, and its content.
    """
    extended, config = base
    kept = {each: config.scale.datasets[each] for each in REPLACED if each in config.scale.datasets}
    datasets = dict.fromkeys(REPLACED, name) if source.trains else kept | {ZERO_SHOT: name}
    entry, splits = _entry(source)
    lines = [
        *(f"# {line}" for line in about(source)),
        f"extends: {_flow(extended)}",
        f"title: {_flow(name if source.trains else f'{name}, zero-shot')}",
        *_tables(source, config.tables.get(TABLE, "all"), catalogue),
        "scale:",
        f"  datasets: {_flow(datasets)}",
        "",
        "datasets:",
        f"  {_flow(name)}:",
        *(f"    {key}: {_flow(value)}" for key, value in entry.items()),
        "    splits:",
        *(f"      {key}: {_flow(value)}" for key, value in splits.items()),
    ]
    return "\n".join(lines) + "\n"


def about(source: Source) -> Iterator[str]:
    """What was found in the collection, in sentences."""
    asked = ", ".join(f"{source.queries[split]:,} {use}" for split, use in USES.items() if split in source.queries)
    grades = "several grades" if source.is_graded else "one grade"
    yield f"{source.passages:,} passages; {asked}; judgments of {grades}."
    counts = {"a relevant passage": source.overlap.grades, "the text": source.overlap.texts}
    if shared := [f"{len(queries):,} have {what}" for what, queries in counts.items() if queries]:
        yield f"Of the test queries {' and '.join(shared)} of a query in train.tsv: the table tells them apart."


def _tables(source: Source, wanted: list[str] | str, catalogue: Catalogue) -> list[str]:
    """The line of tables, with those rows of table 1 that the other run has and that the texts suffice for."""
    if not source.trains:
        return [f"tables: {_flow({ZERO_SHOT: wanted})}"]
    table = catalogue.tables[TABLE]
    rows = list(dict.fromkeys(row.id for row in table.rows)) if isinstance(wanted, str) else wanted
    reasons = []
    for need in (each for each in LACKING if each != "pairs_sentences" or not source.pairs_of_sentences):
        needing = _needing(catalogue, table, need)
        left_out = {row: needing[name] for row in rows if (name := row.rpartition(": ")[2]) in needing}
        rows = [row for row in rows if row not in left_out]
        reasons += [f"# Left out, since {LACKING[need]}: {', '.join(left_out.values())}."] if left_out else []
    return [*reasons, f"tables: {_flow({TABLE: rows if reasons else wanted})}"]


def _entry(source: Source) -> tuple[dict[str, Any], dict[str, Any]]:
    """The dataset's entry and its splits: one, if nothing of it trains."""
    given, entry = source.given, dict(source.fields)
    if not source.trains:
        split = {"role": "test", **given["test"], "measures": {"nDCG@10": "nDCG@10", **MEASURES}}
        return entry | {"zero_shot": True}, {"test": split}
    splits: dict[str, Any] = {
        "train": {"role": "train", **given["train"]},
        "valid": {"role": "valid", **given.get("valid", {}), "measures": {"RR@10": "RR@10"}},
        "test": {"role": "test", **given["test"], "measures": MEASURES},
    }
    if source.held_out:
        entry["valid_queries"] = source.held_out
    if source.is_graded:
        same = given["test"] or {"file": "qrels/test.tsv"}
        splits["graded"] = {"role": "graded", "topics": "test", **same, "measures": {"nDCG@10": "nDCG@10"}}
    else:
        entry["absent"] = {"graded": "its judgments have one grade"}
    return entry, splits


def _needing(catalogue: Catalogue, table: Table, need: str) -> dict[str, str]:
    """Labels, by id, of the rows that are pre-trained by an objective with this need."""
    found = {}
    for row in table.rows:
        if row.system and row.system not in catalogue.systems:
            steps = (catalogue.steps[step.name] for step in naming.parse(row.system).steps)
            if any(step["kind"] == "pretrain" and getattr(objectives.load(step["objective"]), need) for step in steps):
                found[row.id] = row.label
    return found


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
