"""Inverse document frequencies of the pieces, over the very texts that an objective trains on (CPDAE's IDF-REC)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from encore.config.strict import Positive
from encore.errors import EncoreError
from encore.objectives.base import Preparation
from encore.objectives.parts.chunks import Blocks, PackingFields, text_chunks
from encore.storage.files import write_array
from encore.storage.processes import shared_in_order

if TYPE_CHECKING:
    from encore.data.tokens import TokenStore

FILE = "idf.npy"


class Idf(Preparation, PackingFields):
    """``idf_v = ln(N / (1 + df_v))``, not below 0, over the N texts, divided by its mean over the pieces that occur.

    The paper gives no formula; the mean of 1 keeps the loss on the scale of the one without weights. A piece of every
    text would weigh less than nothing, which no cross-entropy can bear, hence the bound.
    """

    name: ClassVar[str] = "idf"

    length: Positive

    def write(
        self, store: TokenStore, output: Path, attention: Path | None = None, processes: int = 1
    ) -> dict[str, Any]:
        """Write ``idf.npy``, float32 [V].

        Raises:
            EncoreError: no piece is rarer than the texts are many, as in a collection of one or two texts.
        """
        chunks, usable = text_chunks(store, self.length, self)
        blocks, frequency = Blocks(chunks, usable), np.zeros(store.vocabulary, dtype=np.int64)

        def texts_with_pieces(number: int) -> np.ndarray:
            return np.bincount(np.concatenate([np.unique(text) for text in blocks[number].texts]))

        for counts in shared_in_order(texts_with_pieces, range(len(blocks)), min(processes, len(blocks))):
            frequency[: len(counts)] += counts
        idf = np.maximum(np.log(len(usable) / (1 + frequency)), 0.0)
        occurs = frequency > 0
        if not idf[occurs].any():
            raise EncoreError(
                f"inverse document frequencies over {len(usable)} texts are all 0; "
                "use `weighting: uniform` or a collection with more texts"
            )
        write_array(output / FILE, (idf / idf[occurs].mean()).astype(np.float32))
        return {"texts": len(usable), "pieces": int(occurs.sum())}


def load_idf(prepared: Path | None) -> np.ndarray:
    """The weights that ``Idf`` wrote, float32 [V].

    Raises:
        EncoreError: the folder is not given, or lacks them.
    """
    if prepared is None or not (prepared / FILE).is_file():
        raise EncoreError(f"{prepared or 'the step'} has no {FILE}; prepare the collection before the training")
    weights: np.ndarray = np.load(prepared / FILE)
    return weights
