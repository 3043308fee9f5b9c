"""A grid of two values for the rows of table 1."""

from typing import Any

from encore.commands.tuning.grid import TuningGrid
from encore.config.validation import checked

VALUES = [1e-3, 2e-3]


def grid(**changes: Any) -> TuningGrid:
    """The grid, with fields of its own."""
    names = {"random": "marco-scratch", "none": "marco-bm25", "control": "control"}
    names |= {name: name for name in ("mlm", "ict", "bfs", "wlp", "ict-bfs-wlp", "bow", "costa")}
    fields = {"table": "table1", "setting": "BM25 negatives", "dataset": "msmarco-passage", "split": "valid"}
    fields |= {"recipe": "none"}
    rows = {row: {"step": step, "values": VALUES} for row, step in names.items()}
    return checked(TuningGrid, fields | {"measure": "RR@10", "rows": rows} | changes, "grid")
