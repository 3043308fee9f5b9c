"""CPDAE: a representation names its text's pieces, the same for two maskings of a text (CIKM'22, section 3).

No code was published. The paper's Eq. 4 lacks the negative term, and Eq. 5 and 7 leave constants open; ``losses.py``
has them as they must be meant.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from encore.config.validation import Positive
from encore.errors import EncoreError
from encore.models import flops
from encore.objectives.base import Arrays, ForwardOutput, Preparation
from encore.objectives.parts.chunks import Blocks, PackingFields, text_chunks
from encore.objectives.parts.masked_texts import Masked, MaskedText, MaskedTexts, MaskingFields, bags
from encore.storage.files import write_array
from encore.storage.processes import shared_in_order

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.data.tokens import TokenStore
    from encore.models.encoder import Encoder

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
        """Write ``idf.npy``, float32 [V]."""
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


VIEWS = 2


class CpdaeFields(MaskingFields):
    """Fields of CPDAE."""

    packing: Literal["article", "section"] = Field(
        "article", description="Whether a text is packed from the sentences of an article or of a section."
    )
    contrast: Literal["distributions", "vectors", "none"] = Field(
        "distributions", description="What the contrast compares: the decoder's distributions, or vectors (CPDAE_R)."
    )
    contrast_weight: float = Field(0.1, ge=0, description="The weight lambda of the contrast; the other terms have 1.")
    contrast_temperature: float | None = Field(
        None,
        gt=0,
        description="The number that similarities are divided by; without it, 1 for distributions, 0.05 for vectors.",
    )
    js_scale: float = Field(1.0, gt=0, description="The factor of the divergence; 2 is the paper's Eq. 7 as printed.")
    weighting: Literal["uniform", "idf"] = Field(
        "uniform", description="The weights of the word pieces in the reconstruction loss."
    )
    rec_reduction: Literal["sum", "mean_pos", "mean_vocab"] = Field(
        "sum", description="How the reconstruction is reduced: a sum, over the text's pieces, or over the vocabulary."
    )
    output_bias: float = Field(
        -5.0, description="The initial bias of the decoder; at 0 each piece has probability 1/2."
    )


class Views(NamedTuple):
    """An example: a text and two maskings of it."""

    ids: np.ndarray
    views: tuple[Masked, Masked]


class Cpdae(MaskedTexts[CpdaeFields]):
    """``loss = L_REC + L_MLM + lambda * L_CL`` (Eq. 6), each over both views of every text.

    The decoder reads h, the pooled representation before any linear head or normalisation, and nothing else. L_REC asks
    it for the pieces of the unmasked text; L_CL compares by ``-JS`` what it says of two views (``distributions``), or
    by the cosine the representations themselves (``vectors``).
    """

    Fields = CpdaeFields
    views = VIEWS
    Prepares = Idf
    impl = 2  # 2: batches are random samples

    def __init__(self, fields: CpdaeFields, store: TokenStore, prepared: Path | None = None) -> None:
        super().__init__(fields, store, prepared)
        self.idf: np.ndarray | None = None
        if fields.weighting == "idf":
            if prepared is None or not (prepared / FILE).is_file():
                raise EncoreError(f"{prepared or 'the step'} has no {FILE}; prepare the collection before the training")
            self.idf = np.load(prepared / FILE)

    @classmethod
    def preparation(cls, fields: CpdaeFields) -> Preparation | None:
        """The inverse document frequencies where ``weighting`` is ``idf``; otherwise nothing."""
        return super().preparation(fields) if fields.weighting == "idf" else None

    def example(self, index: int, rng: np.random.Generator) -> Views:
        """A text and two independent maskings of it."""
        text, again = self.text(index, rng), self.text(index, rng)
        return Views(text.ids, (text.masked, again.masked))

    def collate(self, examples: list[Views]) -> Arrays:
        """The arrays of MLM over 2B views, the two of a text neighbours, and ``bag`` [B, K] as ``bags`` makes it."""
        views = [MaskedText(example.ids, view) for example in examples for view in example.views]
        return {**super().collate(views), "bag": bags([example.ids for example in examples], self.store.special)}

    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """The vocabulary head, and the decoder with its output matrix [V, H]."""
        from encore.models.heads import WordDecoder

        heads = super().heads(encoder)
        heads["decoder"] = WordDecoder(encoder.config, self.fields.output_bias)
        return heads

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The losses of MLM and reconstruction; for the contrast ``logits`` [B, 2, V] or ``vectors`` [B, 2, H]."""
        import torch

        from encore.training import losses

        hidden = self.states(encoder, batch)
        vectors = encoder.pooled(hidden, batch["ids"], batch["mask"])
        logits = heads["decoder"](vectors)
        weights = None if self.idf is None else torch.from_numpy(self.idf).to(logits.device)
        bag = batch["bag"].repeat_interleave(VIEWS, dim=0)
        rec = losses.bag_cross_entropy(logits, bag, self.fields.rec_reduction, weights)
        compared = {"distributions": {"logits": logits}, "vectors": {"vectors": vectors}, "none": {}}
        rows = {name: tensor.unflatten(0, (-1, VIEWS)) for name, tensor in compared[self.fields.contrast].items()}
        return ForwardOutput({"mlm": self.masked_lm(encoder, heads, hidden, batch), "rec": rec}, rows)

    def batch_loss(self, embeddings: dict[str, Tensor]) -> dict[str, Tensor]:
        """Eq. 5 over the views of all texts, from logits [B, 2, V] or representations [B, 2, H]."""
        import torch.nn.functional as F

        from encore.training import losses

        if "logits" in embeddings:
            distributions = F.normalize(embeddings["logits"].flatten(0, 1).sigmoid(), p=1, dim=-1)
            similarities, usual = -self.fields.js_scale * losses.jensen_shannon(distributions), 1.0
        elif "vectors" in embeddings:
            vectors = F.normalize(embeddings["vectors"].flatten(0, 1), dim=-1)
            similarities, usual = vectors @ vectors.T, 0.05
        else:
            return {}
        return {"contrast": losses.nt_xent(similarities, self.fields.contrast_temperature or usual)}

    def loss_weights(self, progress: float) -> dict[str, float]:
        """MLM and the reconstruction have weight 1, the contrast, if any, ``contrast_weight`` (Eq. 6)."""
        contrast = {} if self.fields.contrast == "none" else {"contrast": self.fields.contrast_weight}
        return {"mlm": 1.0, "rec": 1.0, **contrast}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """The divergences, no product, are counted as if they were the product of the distributions."""
        views, shape = len(batch["ids"]), encoder.config
        width = {"distributions": shape.vocabulary, "vectors": shape.hidden, "none": 0}[self.fields.contrast]
        decoder, similarities = flops.mlm_head(shape, views), flops.product(views, width, views)
        return super().flops(encoder, batch) + flops.TRAINING * (decoder + similarities)


OBJECTIVE = Cpdae
