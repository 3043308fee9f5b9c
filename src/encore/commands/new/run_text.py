"""A run's file for a collection of one's own: a few lines over another run."""

from collections.abc import Iterator
from typing import Any

import yaml

from encore import objectives
from encore.commands.new.source import Source
from encore.config import lineage as naming
from encore.config.run import RunConfig
from encore.config.tables import Table
from encore.plan.catalogue import Catalogue

TABLE, ZERO_SHOT = "table1", "zero-shot"
REPLACED = ("wikipedia", "wikipedia-bookcorpus", "msmarco-passage", "msmarco-passage-titles")  # what both tables need
USES = {"train": "queries to train on", "valid": "to validate with", "test": "to test with"}


def run_text(name: str, source: Source, base: tuple[str, RunConfig], catalogue: Catalogue, *, zero_shot: bool) -> str:
    """The text of ``config/<name>.yaml``.

    Args:
        base: the file of the run that it extends, and what that says.
        zero_shot: whether models that learned from the other run's texts are tested on it.
    """
    extended, config = base
    kept = {each: config.scale.datasets[each] for each in REPLACED if each in config.scale.datasets}
    datasets = kept | {ZERO_SHOT: name} if zero_shot else dict.fromkeys(REPLACED, name)
    entry = _entry(source, zero_shot=zero_shot)
    splits = entry.pop("splits")
    lines = [
        *(f"# {line}" for line in about(source)),
        f"extends: {_flow(extended)}",
        f"title: {_flow(f'{name}, zero-shot' if zero_shot else name)}",
        *_tables(config, catalogue, zero_shot=zero_shot),
        "scale:",
        f"  datasets: {_flow(datasets)}",
        "",
        "datasets:",
        f"  {name}:",
        *(f"    {key}: {_flow(value)}" for key, value in entry.items()),
        "    splits:",
        *(f"      {key}: {_flow(value)}" for key, value in splits.items()),
    ]
    return "\n".join(lines) + "\n"


def about(source: Source) -> Iterator[str]:
    """What was found, in sentences."""
    asked = ", ".join(f"{source.queries[split]:,} {use}" for split, use in USES.items() if split in source.queries)
    grades = "several grades" if source.is_graded else "one grade"
    yield f"{source.passages:,} passages; {asked}; judgments of {grades}."
    counts = {"a relevant passage": source.overlap.grades, "the text": source.overlap.texts}
    if shared := [f"{len(queries):,} have {what}" for what, queries in counts.items() if queries]:
        yield f"Of the test queries {' and '.join(shared)} of a query in train.tsv: the table tells them apart."


def _tables(config: RunConfig, catalogue: Catalogue, *, zero_shot: bool) -> list[str]:
    """The line of tables, with the rows that the other run builds of table 1 and that passages can speak to."""
    wanted = config.tables.get(TABLE, "all")
    rows = list(dict.fromkeys(row.id for row in catalogue.tables[TABLE].rows)) if wanted == "all" else wanted
    of_articles = {} if zero_shot else _of_articles(catalogue, catalogue.tables[TABLE])
    left_out = {row: of_articles[name] for row in rows if (name := row.rpartition(": ")[2]) in of_articles}
    if not left_out:
        return [f"tables: {_flow({ZERO_SHOT if zero_shot else TABLE: wanted})}"]
    return [
        f"# Left out, since they learn from articles and links, not from passages: {', '.join(left_out.values())}.",
        f"tables: {_flow({TABLE: [row for row in rows if row not in left_out]})}",
    ]


def _entry(source: Source, *, zero_shot: bool) -> dict[str, Any]:
    """The dataset's entry."""
    tested = {"RR@10": "RR@10", "R@100": "R@100", "R@1000": "R@1000"}
    given = source.given
    entry: dict[str, Any] = dict(source.fields)
    if zero_shot:
        measures = {"nDCG@10": "nDCG@10", **tested}
        return entry | {"zero_shot": True, "splits": {"test": {"role": "test", **given["test"], "measures": measures}}}
    splits: dict[str, Any] = {
        "train": {"role": "train", **given["train"]},
        "valid": {"role": "valid", **given.get("valid", {}), "measures": {"RR@10": "RR@10"}},
        "test": {"role": "test", **given["test"], "measures": tested},
    }
    entry |= {"valid_queries": source.held_out} if source.held_out else {}
    if not source.is_graded:
        return entry | {"absent": {"graded": "its judgments have one grade"}, "splits": splits}
    same = given["test"] or {"file": "qrels/test.tsv"}
    splits["graded"] = {"role": "graded", "topics": "test", **same, "measures": {"nDCG@10": "nDCG@10"}}
    return entry | {"splits": splits}


def _of_articles(catalogue: Catalogue, table: Table) -> dict[str, str]:
    """The labels of rows that have learned from what passages do not have, by id."""
    found = {}
    for row in table.rows:
        if row.system and row.system not in catalogue.systems:
            steps = (catalogue.steps[step.name] for step in naming.parse(row.system).steps)
            if any(step["kind"] == "pretrain" and objectives.load(step["objective"]).reads_articles for step in steps):
                found[row.id] = row.label
    return found


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
