"""A small report over made-up products: a table with its runs, a figure, claims, and a table that was not run."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from encore.products.record import make_product
from encore.products.report.page import PAGE
from encore.products.report.plan import templates_digest
from encore.products.tables import table, tidy
from encore.products.tables.compute import compute_table
from encore.products.tables.layout import Layout
from encore.retrieval.latency import summary
from encore.storage.files import write_json, write_text
from encore.storage.manifest import MANIFEST, describe
from tests.support import inside
from tests.support.small_table import plan, row_of

CLAIM = {
    "id": "C01",
    "paper": "costa",
    "verdict": "holds here",
    "why": "",
    "inequalities": "3",
    "needed": "3",
    "held": "2",
    "chance": "0.125",
    "weakest": "x, y",
    "estimate": "0.0123",
    "interval_low": "-0.01",
    "interval_high": "0.03",
    "p": "0.4",
    "detectable": "0.05",
    "seeds": "1",
    "survives_control": "fails here",
    "control_why": "",
    "control_estimate": "-0.02",
    "control_p": "0.01",
}
OTHER = dict.fromkeys(CLAIM, "") | {"id": "C02", "paper": "costa", "verdict": "fails here"}
STATED = {
    name: {"paper": "costa", "place": "table 1", "says": says}
    for name, says in (("C01", "COSTA is above <all> others."), ("C02", "It is free."))
}
POINTS = "setting,label,difference,significant\nBM25 negatives,ICT,0.0123456,1\n"
CELLS = [("table1", "BM25 negatives", "ict", ["rr"]), ("costa/table1", "BM25 negatives", "costa", ["mrr"])]
CELLS.append(("costa/figure4", "RR@10", "COSTA", ["100"]))
TEXTS = "small-11111111"
PRINTED = "row_label,dataset,metric,value\nSEED,msmarco,MRR@10,.310\nCOSTA,msmarco,MRR@10,.342\n"


def artifact(folder: Path, stage: str, spec: dict[str, Any], results: dict[str, Any], inputs: list[Path]) -> Path:
    """A folder with its two records."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {path.name: describe(path) for path in sorted(folder.iterdir()) if path.name not in (MANIFEST, "run.json")}
    parents = {str(each / MANIFEST): describe(each / MANIFEST) for each in inputs}
    record = {"stage": stage, "spec": spec, "results": results, "inputs": parents, "outputs": files}
    write_json(folder / MANIFEST, record)
    run = {"command": ["/home/me/workflow/scripts/make.py"], "commit": "abc", "device": "cpu", "seconds": 90.5}
    write_json(folder / "run.json", run | {"cores": 2, "python": "3.11", "machine": "x", "packages": {"torch": "2"}})
    return folder


MASKING = {
    "mlm": {"mask_ratio": 0.3, "whole_word": True, "packing": "overfull", "short_texts": 0.15},
    "control": {"mask_ratio": 0.15, "packing": "article", "short_texts": 0.0},
    "ict": {"mask_ratio": 0.15, "mlm_weight": 0.0},
}


def lineage(name: str, seed: int, operations: float) -> Path:
    """A model with what it was made from, down to the collection."""
    texts = artifact(Path(f"results/collections/{TEXTS}"), "collection.small", {"kind": "small"}, COUNTS, [])
    said = {"collection": texts.name}
    tokens = artifact(Path("results/tokens/small-22222222"), "tokens", said, {}, [texts])
    said = {
        "backbone": {"layers": 2, "hidden": 8, "pooling": ("cls", "mean")[seed % 2]},
        "seed": seed,
        "tokens": tokens.name,
    }
    start = artifact(Path(f"results/models/tiny-s{seed}-33333333"), "start", said, {}, [tokens])
    step = {"collection": "small", "batch": 8, "learning_rate": 0.001, **MASKING.get(name, {})}
    spec = {"seed": seed, "step": step, "tokens": tokens.name, "weights": start.name}
    results = {"steps": 10, "flops": operations}
    folder = Path(f"results/models/tiny+{name}-s{seed}-44444444")
    return artifact(folder, f"pretrain.{name}", spec, results, [tokens, start])


def measured() -> Path:
    """A measurement of latency."""
    stages = {"encode": np.array([0.5, 1.5, 2.5]), "search": np.array([10.0, 20.0, 40.0])}
    machine = {"processor": "A Processor", "gpu": None, "threads": 1, "load": 0.5}
    index = {"bytes": 3 * 2**20, "bytes_per_passage": 12.5, "passages": 7}
    total = {"median_ms": 1234.5}
    recorded = [{"stage": name, **summary(times)} for name, times in stages.items()]
    record = {"stages": recorded, "total": total, "queries": 3, "hardware": machine, "index": index}
    folder = Path("results/latency/bm25-55555555/small.test-66666666")
    write_json(folder / "latency.json", record)
    return artifact(folder, "measure_latency", {}, {}, [])


COUNTS = {"passages": 1234, "queries": 40, "splits": {"test": {"queries": 40, "judgments": 50}}}


def products(root: Path) -> dict[str, Any]:
    """Write all that a report needs below the working directory, and give its slice."""
    table = plan(root / "results/scores", seeds=2)
    for number, name in enumerate(("none", "control", "mlm", "ict")):
        for read in row_of(table, name)["cells"]["rr"]["reads"]:
            model = lineage(name, read["seed"], 1e9 * (1 + number))
            folder = Path(read["folder"]).relative_to(root)
            searched = Path(f"results/collections/{TEXTS}")
            artifact(folder, "evaluate", {"model": model.name, "collection": TEXTS}, {}, [model, searched])
    artifact(Path("results/scores/bm25"), "evaluate", {}, {}, [measured()])
    relative(table, root)
    write_table(table)
    svg = "<svg xmlns='http://www.w3.org/2000/svg'/>"
    for ending, content in (("png", "p" * 30), ("svg", svg), ("csv", POINTS)):
        write_text(Path(f"results/figures/table1.{ending}"), content)
    record(Path("results/figures/table1"), {"rows": table["rows"]}, ("png", "svg", "csv"))
    write_claims([CLAIM, OTHER])
    write_text(Path("printed.csv"), PRINTED)
    slice_ = {"name": "report", "title": "A small <run>", "run": "config/mine.yaml", "proxy_data": True}
    slice_ |= {
        "templates": templates_digest(),
        "claims": True,
        "stated": STATED,
        "tables": ["table1"],
        "figures": ["table1"],
        "about": {"C01": ["costa/table1"], "C02": []},
    }
    slice_ |= {"cells": {"C01": CELLS}, "papers": {"costa": "COSTA"}}
    return slice_ | {"printed": {"costa/table1": printed()}, "trials": {"mlm": {"learning_rate": 3}}}


def printed() -> dict[str, Any]:
    """A paper's table of which nothing was run."""
    names = {"seed": ("SEED", "SEED’s authors"), "costa": ("COSTA", "")}
    rows = [
        {"id": row, "label": label, "setting": "BM25 negatives", "reported_only": who}
        | {"cells": {"mrr": {"reported": {"row_label": label, "dataset": "msmarco", "metric": "MRR@10"}}}}
        for row, (label, who) in names.items()
    ]
    columns = [{"id": "mrr", "label": "MRR@10"}]
    table = {"name": "table1", "paper": "costa", "title": "Passages", "rows": rows, "columns": columns}
    return table | {"reported": "printed.csv", "notes": ["Printed with three digits."]}


def relative(table: dict[str, Any], root: Path) -> None:
    """Name folders as the workflow does, from where it runs."""
    for row in table["rows"]:
        for cell in row["cells"].values():
            for read in cell["reads"]:
                read["folder"] = os.path.relpath(read["folder"], root)


def write_table(content: dict[str, Any]) -> None:
    made = compute_table(Layout.model_validate(content))
    stem = Path("results/tables/table1")
    tidy.write_tidy(stem.with_suffix(".csv"), made)
    table.write_table(stem.with_suffix(".json"), made)
    record(stem, content, ("csv", "json"))


def write_claims(claims: list[dict[str, str]]) -> None:
    path = Path("results/claims.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(claims[0]))
        writer.writeheader()
        writer.writerows(claims)
    record(Path("results/claims"), {}, ("csv",))


def record(stem: Path, spec: dict[str, Any], endings: tuple[str, ...]) -> None:
    files = [stem.with_name(f"{stem.name}.{ending}") for ending in endings]
    content = {"spec": spec, "results": {}, "inputs": {}, "outputs": {path.name: describe(path) for path in files}}
    write_json(stem.with_name(f"{stem.name}.{MANIFEST}"), content)


def page(slice_: dict[str, Any], folder: str = "results/report") -> str:
    """Make the page as the workflow does."""
    path = Path("results/plan/report.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(slice_))
    make_product("report", path, None, inside.files("report", "report", Path(folder)))
    return (Path(folder) / PAGE).read_text(encoding="utf-8")
