"""The configuration of an encoder: everything that its weights and its use depend on, without torch."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from encore.config.entries import Backbone
from encore.data import vocabulary
from encore.errors import EncoreError

Pooling = Literal["cls", "mean", "content"]
Similarity = Literal["dot", "cosine"]
Projector = Literal["none", "linear", "nonlinear"]
Encoders = Literal["shared", "separate"]
Architecture = Literal["bert", "transformers", "bow-mlp"]
SHAPE = ("layers", "hidden", "heads", "intermediate", "max_length", "dropout", "architecture")
VECTOR = ("pooling", "similarity", "projection_dim")
READING = ("mask", "query_marker", "passage_marker", "separator", "augment")  # fields that say how texts are read


@dataclass(frozen=True)
class EncoderConfig:
    """A BERT encoder (Devlin et al., 2019) and how a vector is made from its output; by ``architecture`` also another
    encoder by Transformers' code (``transformers_encoder.py``), or a bag of words (``towers.py``).

    ``pooling``: the vector at [CLS], the mean over all real tokens, or over those that are not special. ``projector``:
    a map of the pooled vector that keeps its size. ``projection_dim``: the dimension of a linear map behind these,
    none without. ``similarity``: cosine means vectors of length 1. ``encoders``: separate means another such encoder
    for queries.
    ``query_marker``, ``passage_marker``: ids behind [CLS]; ``separator``: whether [SEP] ends a text; ``augment``:
    whether queries are filled up with [MASK] (TCT-ColBERT's released code).
    """

    vocabulary: int
    layers: int = 12
    hidden: int = 768
    heads: int = 12
    intermediate: int = 3072
    max_length: int = 512
    dropout: float = 0.1
    pooling: Pooling = "cls"
    similarity: Similarity = "dot"
    projection_dim: int | None = None
    pad: int = 0
    cls: int = 2
    sep: int = 3
    segments: int = 2
    epsilon: float = 1e-12
    projector: Projector = "none"
    encoders: Encoders = "shared"
    mask: int = 4
    query_marker: tuple[int, ...] = ()
    passage_marker: tuple[int, ...] = ()
    separator: bool = True
    augment: bool = False
    architecture: Architecture = "bert"

    def __post_init__(self) -> None:
        if self.pooling == "content" and len(self.query_marker) != len(self.passage_marker):
            raise EncoreError(
                f"the markers are {len(self.query_marker)} word pieces of a query and {len(self.passage_marker)} of a "
                "passage; choose texts of as many pieces, since content begins behind them"
            )
        if self.architecture == "bert" and self.hidden % self.heads:
            raise EncoreError(
                f"an encoder of width {self.hidden} cannot have {self.heads} attention heads; "
                "choose a number that divides the width"
            )

    @property
    def dimension(self) -> int:
        """Numbers in a text's vector."""
        return self.projection_dim or self.hidden

    @property
    def prefix(self) -> int:
        """Tokens in front of a text's content: [CLS] and the marker; of a query, where passages have a shorter one."""
        return 1 + len(self.query_marker)

    @property
    def plain(self) -> bool:
        """True if queries and passages are both read as BERT reads a text: [CLS] text [SEP]."""
        return self.separator and not (self.query_marker or self.passage_marker) and not self.augment

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> "EncoderConfig":
        """The configuration that ``to_json`` wrote."""
        lists = {name: tuple(value) for name, value in written.items() if isinstance(value, list)}
        return cls(**{**written, **lists})

    def to_json(self) -> dict[str, Any]:
        """Values by name, without how texts are read if that is plainly, and without the architecture of a BERT."""
        usual = {*(READING if self.plain else ()), *(("architecture",) if self.architecture == "bert" else ())}
        return {name: value for name, value in asdict(self).items() if name not in usual}


def read_shape(backbone: Backbone, tokenizer_folder: Path) -> EncoderConfig:
    """The shape that a backbone describes, with a tokenizer's pieces."""
    tokenizer = vocabulary.load_tokenizer(tokenizer_folder)
    if backbone.architecture == "bert" and not vocabulary.is_wordpiece(tokenizer):
        raise EncoreError(
            f"{tokenizer_folder} is not a WordPiece tokenizer, BERT's kind; write `architecture: transformers`"
        )
    special = vocabulary.special_tokens(tokenizer, tokenizer_folder)
    markers: dict[str, Any] = {}
    if backbone.architecture != "transformers":  # with whose markers texts are tokenised
        markers = {
            name: tuple(tokenizer.encode(getattr(backbone, name), add_special_tokens=False).ids)
            for name in ("query_marker", "passage_marker")
        }
    return EncoderConfig(
        vocabulary=tokenizer.get_vocab_size(),
        pad=special.pad,
        cls=special.cls,
        sep=special.sep,
        mask=special.mask,
        **markers,
        **{name: getattr(backbone, name) for name in (*SHAPE, *VECTOR, "separator", "augment")},
    )
