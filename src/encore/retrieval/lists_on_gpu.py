"""IVF-PQ on a GPU, where the installed FAISS computes on one (``faiss-gpu``): trained, filled and searched there.

Graphs stay on the processor, as FAISS has no kernels for them, and so do codes of other than 8 bits. Seeds are the same
on both; sums round differently on a GPU, as a model's do.
"""

from collections.abc import Iterable
from typing import Any

import faiss
import numpy as np

from encore.storage import gpu_leases

MOST = 2048  # results of one search
WHOLE_TABLES = 48  # parts of a vector whose tables fit in a block's memory as float32; more are kept as float16


class OnGpu:
    """An index that its copy on a GPU answers for, up to ``MOST`` results of a query."""

    def __init__(self, index: faiss.Index, copy: faiss.Index) -> None:
        self.index, self.copy = index, copy

    def search(self, queries: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and rows [queries, wanted], as FAISS gives them."""
        answering: Any = self.copy if wanted <= MOST else self.index
        scores, rows = answering.search(queries, wanted)
        return scores, rows


def filled(index: faiss.Index, pieces: Iterable[np.ndarray]) -> tuple[faiss.Index, str]:
    """An empty index, filled with vectors, float32 [passages, dimension] each; and the device that did it.

    One that learns from vectors does so from the first piece. The index ends on the processor.
    """
    copy = _copied(index)
    there: Any = index if copy is None else copy
    for piece in pieces:
        if not there.is_trained:
            there.train(piece)
        there.add(piece)
    return (index, "cpu") if copy is None else (faiss.index_gpu_to_cpu(copy), "cuda")


def searched(index: faiss.Index) -> Any:
    """The searcher of an index that is set up: the index itself, or ``OnGpu``."""
    copy = _copied(index)
    return index if copy is None else OnGpu(index, copy)


def _copied(index: faiss.Index) -> Any:
    """A copy of an IVF-PQ index on the first GPU; None for other types, without a GPU, and without kernels for it."""
    if not hasattr(faiss, "StandardGpuResources") or not isinstance(index, faiss.IndexIVFPQ):
        return None
    gpu_leases.lease()
    if not faiss.get_num_gpus():
        return None
    options = faiss.GpuClonerOptions()
    options.use_cuvs = False  # whose k-means has no seed
    options.useFloat16 = index.pq.M > WHOLE_TABLES
    try:
        copy: Any = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index, options)
    except RuntimeError as error:
        print(f"FAISS computes on the processor: {str(error).splitlines()[-1][:200]}", flush=True)
        return None
    copy.cp.seed = index.cp.seed  # which FAISS does not copy
    print("FAISS computes on a GPU", flush=True)
    return copy
