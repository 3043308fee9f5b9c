"""A small table's slice of the plan over made-up scores: what the tests of reporting read."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from encore.evaluation import scores
from encore.evaluation.scores import Scored
from encore.products.tables import layout, tidy
from encore.products.tables.compute import compute_table
from encore.products.tables.table import Entry, Table
from encore.storage.files import write_json
from encore.storage.manifest import MANIFEST, describe

QUERIES = [f"q{number}" for number in range(40)]
CLUSTERS = [f"m{number // 4}" for number in range(40)]
NUMERIC = ("reported", "reproduced", "sd", "seeds", "tie", "delta", "interval", "p_", "detectable", "queries")
GAINS = {"none": 0.0, "control": 0.02, "mlm": 0.02, "ict": 0.25}
PYDOCS = {"dataset": "pydocs", "collection": "pydocs-1a2b3c4d"}
MEASURES = {"rr": ("RR@10", "test"), "ndcg": ("nDCG@10", "graded")}


def write_scores(folder: Path, gain: float, seed: int, answered: int = 40) -> str:
    generator = np.random.default_rng(seed)
    values = np.clip(0.3 + gain + 0.02 * generator.normal(size=40), 0, 1)
    values[answered:] = 0
    there, shared = np.arange(40) < answered, np.zeros(40, np.int8)
    found = {
        ("test", "RR@10"): Scored(QUERIES, CLUSTERS, values, values - 0.001, values, there, shared),
        ("graded", "nDCG@10"): Scored(
            QUERIES[:8], CLUSTERS[:8], values[:8] / 2, values[:8] / 2, values[:8] / 2, there[:8], shared[:8]
        ),
    }
    scores.write_scores(folder, found)
    outputs = {scores.FILE: describe(folder / scores.FILE)}
    write_json(folder / MANIFEST, {"spec": {}, "results": {}, "inputs": {}, "outputs": outputs})
    return str(folder)


def measured(system: str, folders: dict[int | None, str]) -> dict[str, Any]:
    """The cells of a row under the measures, which one run for each seed has scores for."""
    reads = [{"seed": seed, "folder": folder} for seed, folder in folders.items()]
    said = PYDOCS | {"system": system, "reads": reads}
    return {column: said | {"value": value, "split": split} for column, (value, split) in MEASURES.items()}


def plan(tmp_path: Path, seeds: int = 5, **changes: Any) -> dict[str, Any]:
    """One setting with BM25, none, control and two objectives, and a setting whose only row was not run."""
    roles = {"none": "none", "control": "control"}
    bm25 = write_scores(tmp_path / "bm25", 0.1, 99, answered=38)
    rows: list[dict[str, Any]] = [
        {"id": "bm25", "label": "BM25", "setting": "BM25 negatives", "system": "bm25", "role": "baseline"}
        | {"cells": measured("bm25", {None: bm25})}
    ]
    for name, gain in GAINS.items():
        folders: dict[int | None, str] = {
            seed: write_scores(tmp_path / f"{name}-s{seed}", gain, 10 * seed + len(name)) for seed in range(seeds)
        }
        row = {"id": name, "label": name.upper(), "setting": "BM25 negatives", "system": f"tiny+{name}"}
        rows.append(row | {"role": roles.get(name, "objective"), "cells": measured(f"tiny+{name}", folders)})
    copied = {"id": "seed", "label": "SEED & co_1", "setting": "Copied", "role": "objective"}
    rows.append(copied | {"cells": measured("", {})})
    table = {
        "name": "table1",
        "paper": "encore",
        "title": "A <small> table",
        "dataset_labels": {"pydocs": "Python documentation"},
        "rows": rows,
        "columns": [{"id": "rr", "label": "RR@10", "primary": True}, {"id": "ndcg", "label": "nDCG@10"}],
        "significance": {"comparators": ["none", "control", "mlm"], "family": "holm"},
        "notes": ["A note of the plan."],
        "proxy_data": True,
    }
    return table | changes


def with_costs(tmp_path: Path) -> dict[str, Any]:
    """The small table with columns of latency and size; BM25 and ICT were measured, the others not."""
    table = plan(tmp_path)
    hardware = {"processor": "A Processor", "gpu": None, "threads": 1}
    costs = {"bm25": (12.345, 3 * 2**20), "ict": (1234.25, 2**20 // 2)}
    for name, (median, size) in costs.items():
        record = {"total": {"median_ms": median}, "index": {"bytes": size}, "hardware": hardware, "queries": 200}
        write_artifact(tmp_path / f"latency-{name}", "latency.json", record)
    for kind, label in (("latency", "ms/query"), ("size", "Index, MiB")):
        table["columns"].append({"id": kind, "label": label, "source": "efficiency"})
        for row in table["rows"]:
            reads = [{"seed": 0, "folder": str(tmp_path / f"latency-{row['id']}")}] if row["id"] in costs else []
            said = PYDOCS | {"system": row["cells"]["rr"]["system"], "split": "test"}
            row["cells"][kind] = said | {"value": kind, "reads": reads}
    return table


def write_artifact(folder: Path, name: str, content: Any) -> str:
    """A folder with one file of JSON, or of a text, and its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        (folder / name).write_text(content)
    else:
        write_json(folder / name, content)
    write_json(folder / MANIFEST, {"spec": {}, "results": {}, "inputs": {}, "outputs": {name: describe(folder / name)}})
    return str(folder)


def row_of(table: dict[str, Any], name: str) -> dict[str, Any]:
    return next(row for row in table["rows"] if row["id"] == name)


def table_of(table: dict[str, Any]) -> Table:
    return compute_table(layout.Layout.model_validate(table))


def lines_of(folder: Path, table: Table) -> dict[tuple[str, str], dict[str, str]]:
    """The tidy CSV by row and measure."""
    tidy.write_tidy(folder / "t.csv", table)
    with (folder / "t.csv").open(newline="") as file:
        return {(line["row"], line["measure"]): line for line in csv.DictReader(file)}


def notes_of(table: Table) -> list[str]:
    """All notes below a table, in their order."""
    return [*table.footnotes, *table.notes]


def entries_of(table: Table) -> dict[str, list[Entry]]:
    """What is shown of each row, by its label, which stands first."""
    return {row.label: [Entry(row.label), *table.entries(row)] for row in table.rows}
