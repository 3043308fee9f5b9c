"""A cut of nano-papers: a table or two of each paper, and the claims, in minutes."""

import yaml
from clones import Clone

TABLES: dict[str, list[str] | str] = {
    "costa/table4": ["base"],
    "cpdae/table1": ["bm25", "bert"],
    "bow/table1": ["mlm"],
    "tct_colbert/table2": ["kd-t1", "tct"],
    "tct_colbert/table5": ["bm25"],
    "tct_colbert/table6": "all",
    "two_tower/table2": ["squad"],
    "two_tower/table3": ["1 % / 99 %: bm25", "1 % / 99 %: none"],
}
TARGETS = [f"results/tables/{name}.csv" for name in TABLES] + ["results/claims.csv", "results/claims_printed.csv"]
RUN = ("--profile", "local", "--configfile", "config/cut.yaml")


def cut(clone: Clone) -> None:
    """Write the run: these rows and a few points of figures, so that claims ask for nothing more."""
    run = yaml.safe_load((clone.root / "config/nano-papers.yaml").read_text())
    run["tables"] = {name: TABLES.get(name, []) for name in run["tables"]}
    scale = run["scale"]
    scale["absent"]["msmarco-document"] = "whole documents take too long here"
    del scale["datasets"]["msmarco-document"]
    figures = scale["figures"]
    figures["tct_colbert/figure2"]["systems"].pop("KD from ColBERT, pairs")
    figures["costa/figure4"]["samples"] = [0]
    figures["label_efficiency"]["lines"].pop()
    figures["label_efficiency"]["sizes"].pop(0)
    (clone.root / RUN[-1]).write_text(yaml.safe_dump(run, sort_keys=False, allow_unicode=True))
