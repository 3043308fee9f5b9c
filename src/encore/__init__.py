"""Encore: five papers on pre-training dense retrievers, replayed from raw text to every table.

For notebooks: ``encore.Collection.from_dataframes`` takes a collection from pandas data frames; ``encore.read_table``,
``encore.read_run`` and ``encore.read_scores`` give results as such. All raise ``encore.EncoreError``. They are imported
at their first use, since jobs do without pandas.
"""

from importlib import import_module
from typing import Any

_PUBLIC = {
    "Collection": "encore.datasets.foreign.data_frames",
    "EncoreError": "encore.errors",
    "__version__": "encore.storage.release",
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
