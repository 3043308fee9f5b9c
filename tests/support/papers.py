"""A cut of nano-papers: a table or two of each paper, and the claims, in minutes."""

import re
from typing import Any

import yaml

from tests.support.clones import Clone

TABLES: dict[str, list[str] | str] = {
    "costa/table4": ["base"],
    "cpdae/table1": ["bm25", "trec", "bert"],
    "bow/table1": ["mlm"],
    "tct_colbert/table2": ["kd-t1", "tct"],
    "tct_colbert/table5": ["bm25"],
    "tct_colbert/table6": "all",
    "two_tower/table2": ["squad"],
    "two_tower/table3": ["1 % / 99 %: bm25", "1 % / 99 %: none"],
}
TARGETS = [f"results/tables/{name}.csv" for name in TABLES] + ["results/claims.csv"]
RUN = ("--profile", "local", "--configfile", "config/cut.yaml")
LEFT_OUT, ABSENT = "left-out", "seed-released"  # a row that nothing is run for, and what it starts from


def cut(clone: Clone) -> None:
    """Write the run: these rows and a few points of figures, so that claims ask for nothing more."""
    run = yaml.safe_load((clone.root / "config/nano-papers.yaml").read_text())
    for path in clone.root.glob("config/papers/*/tables.yaml"):
        paper, tables = path.parent.name, yaml.safe_load(path.read_text())
        names = {name if paper == "encore" else f"{paper}/{name}": name for name in tables}
        for name in names.keys() & run["tables"].keys():
            run["tables"][name] = TABLES.get(name) or _row_of_nothing(tables[names[name]])
        path.write_text(yaml.safe_dump(tables, sort_keys=False, allow_unicode=True))
    scale = run["scale"]
    scale["absent"]["msmarco-document"] = "whole documents take too long here"
    scale["absent"][ABSENT] = "nothing is run for it"
    del scale["datasets"]["msmarco-document"], scale["replace_prefix"][ABSENT]
    figures = scale["figures"]
    figures["tct_colbert/figure2"]["systems"].pop("KD from ColBERT, pairs")
    figures["costa/figure4"]["samples"] = [0]
    figures["label_efficiency"]["lines"].pop()
    figures["label_efficiency"]["sizes"].pop(0)
    (clone.root / RUN[-1]).write_text(yaml.safe_dump(run, sort_keys=False, allow_unicode=True))


def _row_of_nothing(table: dict[str, Any]) -> list[str]:
    """A row of a table that only its paper made, or one that is added, from a model that is absent."""
    rows = table["rows"]
    if copied := [row["id"] for row in rows if "reported_only" in row or "system" not in row]:
        return copied[:1]
    row = {key: value for key, value in rows[0].items() if key != "not_applicable"}
    row |= {"id": LEFT_OUT, "system": re.sub("^[a-z0-9-]+", ABSENT, row["system"])}
    row["vars"] = {key: ABSENT if "+" in str(value) else value for key, value in row.get("vars", {}).items()}
    table["rows"] = [*rows, row]
    return [LEFT_OUT]
