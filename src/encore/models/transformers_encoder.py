"""An encoder of any kind that Transformers' ``AutoModel`` loads, which runs by Transformers' own code.

Its pooling, head and comparison are those of our encoder. Prompts are part of the texts' tokens.
"""

from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from encore.errors import EncoreError
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.heads import projector
from encore.models.transfer import to_device

PREFIX = "published."  # how the parameters of Transformers' model begin; in a folder they have their own names


class TransformersEncoder(Encoder):
    """An encoder in all that makes and compares vectors of texts, and gives states of tokens."""

    def __init__(self, config: EncoderConfig, published: nn.Module) -> None:
        """``published``: a model of Transformers that gives ``last_hidden_state``."""
        nn.Module.__init__(self)  # none of the parts of our BERT
        self.config = config
        self.query_encoder = None
        self.published = published
        self.projector = projector(config.projector, config.hidden)
        self.head = nn.Linear(config.hidden, config.projection_dim) if config.projection_dim else None

    @property
    def word_embeddings(self) -> Tensor:
        """The embeddings of all pieces, [V, H]; H may be smaller than a state."""
        return cast(Tensor, cast(Any, self.published).get_input_embeddings().weight)

    def forward(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None = None) -> Tensor:
        """Contextual states [B, L, H] of all tokens; arguments as of ``Encoder.forward``, without segments."""
        shown = torch.ones_like(ids) if mask is None else to_device(mask, ids.device).long()
        states: Tensor = self.published(input_ids=ids, attention_mask=shown).last_hidden_state
        return states

    def joined(self, parts: list[tuple[Tensor, ...]]) -> list[tuple[Tensor, ...]]:
        """The parts as they are, since Transformers' code reads padding on a GPU too."""
        return parts

    def representations(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None = None) -> Tensor:
        """The pooled states of texts, [B, H]; arguments as in ``forward``."""
        return self.pooled(self(ids, mask), ids, mask)


def open_published(folder: Path, config: EncoderConfig) -> TransformersEncoder:
    """The encoder in a folder of Hugging Face's files; its projector and head are still random."""
    from transformers import AutoModel
    from transformers.models.auto import modeling_auto as known
    from transformers.utils import logging

    logging.set_verbosity_error()  # what is left out and missing is said below
    logging.disable_progress_bar()
    try:
        model, found = AutoModel.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, dtype=torch.float32, output_loading_info=True
        )
    except Exception as error:  # many kinds, by what is wrong
        reason = " ".join(str(error).split())[:200]
        raise EncoreError(
            f"{folder}: Transformers cannot load it ({reason}); fetch the checkpoint again, or name another"
        ) from error
    kind, decoders = model.config.model_type, known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if model.config.is_encoder_decoder or (kind in decoders and kind not in known.MODEL_FOR_MASKED_LM_MAPPING_NAMES):
        raise EncoreError(f"{folder} holds a model of type {kind!r}, which decodes; name a checkpoint of an encoder")
    missing = sorted(name for name in found["missing_keys"] if "pooler" not in name) + sorted(
        str(name) for name in found["mismatched_keys"]
    )
    if missing:
        raise EncoreError(
            f"{folder}: the checkpoint lacks {missing[0]} or has another shape of it, so it is not the model that its "
            "config.json describes; fetch it again, or name another"
        )
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # a layer for next sentences, which no vector reads
    return TransformersEncoder(config, model)


def model_config(encoder: TransformersEncoder) -> dict[str, Any]:
    """The content of the published model's ``config.json``, without where it came from."""
    said: dict[str, Any] = cast(Any, encoder.published).config.to_diff_dict()
    said |= {"architectures": [type(encoder.published).__name__], "dtype": "float32"}
    return {name: value for name, value in said.items() if name not in ("_name_or_path", "transformers_version")}
