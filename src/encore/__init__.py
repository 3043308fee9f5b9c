"""Encore: five papers on pre-training dense retrievers, replayed from raw text to every table.

For notebooks (docs/notebooks.md): ``evaluate`` and ``compare`` judge and test runs of anybody; ``Collection`` takes
data frames, and ``new_run`` writes a run's file over one; ``read_table``, ``read_run`` and ``read_scores`` give results
as data frames. All raise ``EncoreError``. They are imported at their first use, since jobs do without pandas.
"""

from importlib import import_module
from typing import Any

_PUBLIC = {
    "Collection": "encore.datasets.foreign.data_frames",
    "EncoreError": "encore.errors",
    "__version__": "encore.storage.release",
    "compare": "encore.products.data_frames",
    "evaluate": "encore.products.data_frames",
    "new_run": "encore.commands.new_run",
    "read_run": "encore.products.data_frames",
    "read_scores": "encore.products.data_frames",
    "read_table": "encore.products.data_frames",
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'encore' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
