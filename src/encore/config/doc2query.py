"""Where predicted queries come from that passages are indexed with: the kinds of entries in ``doc2query.yaml``."""

from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from encore.config.strict import Commit, Length, Positive, Share, Strict
from encore.config.validation import by_kind
from encore.errors import EncoreError
from encore.storage.files import remembered_contents


class Expansion(Strict):
    """Queries predicted for every passage of a collection."""

    kind: str
    source: str = Field("", exclude=True, description="where these values come from; no part of any digest")


class Published(Expansion):
    """Predictions that somebody has published, in a file."""

    kind: Literal["published"]
    path: str = Field(description="a source, or a file `.jsonl`, `.tsv` or `.txt`, perhaps `.gz`, from the root")
    samples: Positive | None = Field(
        None, description="of a source with a file for each sample: how many of a passage's are taken; all without"
    )

    def content(self) -> str:
        """The file's identity, whatever it is called."""
        if not Path(self.path).is_file():
            raise EncoreError(
                f"{self.path} is missing: the predicted queries; download them there, or replace this entry "
                "by another of doc2query.yaml (`scale: doc2query:`)"
            )
        return content(Path(self.path))


class T5(Expansion):
    """A T5 that learns on training queries to write the query of a passage, then is sampled for every passage."""

    kind: Literal["t5"]
    collection: str = Field(description="whose training queries it learns from")
    train_split: str = Field("train", description="the split of role train that they are of")
    queries: Positive | None = Field(None, description="size of the sample of them; all without")
    sample: int = Field(0, ge=0, description="which sample of that size")
    checkpoint: str | None = Field(None, description="Hugging Face id or folder of a T5; its own vocabulary")
    revision: Commit | None = Field(None, description="its commit on the hub; without it the first one fetched is kept")
    backbone: str | None = Field(None, description="without a checkpoint: the backbone whose vocabulary it reads")
    layers: Positive = Field(
        2, description="of the encoder and of the decoder, without a checkpoint; as the next three"
    )
    hidden: Positive = 64
    heads: Positive = 2
    intermediate: Positive = 128
    dropout: Share = 0.1
    steps: Positive
    batch: Positive
    learning_rate: float = Field(gt=0, description="constant after the warm-up")
    warmup: Share = Field(0.0, description="share of the steps")
    length: Length = Field(512, description="tokens of a passage, the end included")
    query_length: Length = Field(64, description="tokens of a query, the end included")
    per_passage: Positive = Field(40, description="queries sampled for a passage")
    top_k: Positive = Field(10, description="most probable tokens that each one is drawn from")
    seed: int = Field(0, ge=0, description="of weights, order, dropout and samples; a run's seeds do not touch it")

    @model_validator(mode="after")
    def _read_one_vocabulary(self) -> "T5":
        if (self.checkpoint is None) == (self.backbone is None):
            raise ValueError("give either `checkpoint` or the `backbone` whose vocabulary it reads")
        if self.revision and self.checkpoint is None:
            raise ValueError("`revision:` is the commit of a `checkpoint:`, and there is none")
        return self


def content(path: Path) -> str:
    """A file's identity, whatever it is called."""
    return remembered_contents({"predictions": path})["predictions"]


SAMPLING = ("per_passage", "top_k")  # the fields of T5 that its training does not depend on
KINDS: dict[str, type[Expansion]] = {"published": Published, "t5": T5}
read_expansion = partial(by_kind, kinds=KINDS, what="expansion")  # checks an entry's fields
