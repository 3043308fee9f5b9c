"""What answers queries without being a lineage: the kinds of entries in ``systems.yaml``, and what these search in.

A system may combine others (a first stage and what ranks its results again, two lists that are fused); how each
kind's run is planned is in ``plan/artifacts/``. Of ``indexes.yaml`` are the indexes that a model's vectors can be
searched in besides the exact one: a system named ``<lineage>@<entry>`` is searched in one, and recall against exact
search is part of every such run. Of ``doc2query.yaml`` are predicted queries that passages are indexed with.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from encore.config.entries import System
from encore.config.sources import SourceEntry
from encore.config.validation import Commit, Length, Positive, Share, Strict, by_kind
from encore.errors import EncoreError
from encore.storage.files import remembered_contents

MOST_WEIGHTS = 10_000
T5_BASE = 223e6  # parameters
K_MEANS_SAMPLE = 256  # vectors that FAISS's k-means learns from at most, for each centroid


class Bm25(System):
    """BM25 by Lucene."""

    kind: Literal["bm25"]
    k1: float = Field(0.9, ge=0)
    b: Share = 0.4
    expansion: str | None = Field(
        None, description="an entry of doc2query.yaml: predicted queries that passages are indexed with"
    )


class WeightGrid(Strict):
    """Equally spaced values, both ends included."""

    first: float = Field(alias="from", ge=0)
    last: float = Field(alias="to", ge=0)
    step: float = Field(gt=0)

    @model_validator(mode="after")
    def _hold_a_value(self) -> "WeightGrid":
        if self.last < self.first:
            raise ValueError("`to` must not be below `from`")
        if (self.last - self.first) / self.step > MOST_WEIGHTS:
            raise ValueError(f"more than {MOST_WEIGHTS} weights are too many to try; let `step` be larger")
        return self

    def values(self) -> list[float]:
        """All values from ``first`` on, without the rounding of repeated addition."""
        count = int((self.last - self.first) / self.step + 1e-6) + 1
        return [round(self.first + place * self.step, 10) for place in range(count)]


class Fusion(System):
    """The sparse scores, weighted, plus the dense ones (TCT-ColBERT, eq. 7)."""

    kind: Literal["fusion"]
    sparse: str = Field(description="the system whose scores are weighted")
    dense: str = Field(description="the system or lineage whose scores are added as they are")
    depth: Positive = Field(1000, description="ranks of each list that are fused")
    weights: WeightGrid = Field(description="the weights that are tried")
    queries: Positive | None = Field(6000, description="size of the sample of queries that chooses; all without")
    sample: int = Field(0, ge=0, description="which sample of that size")
    measure: str = Field("RR@10", description="what the best weight is best at, by its printed name in datasets.yaml")
    tuned_on: Literal["train", "held-out"] = Field(
        "train", description="the role whose queries choose: train, as the paper, or valid; the other is reported"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        """The two systems whose scores are added."""
        return (self.sparse, self.dense)


class Rerank(System):
    """The best of a first stage, or all passages, ranked by a trained model (``finetuning/scoring.py``)."""

    kind: Literal["rerank"]
    first: str | None = Field(
        None,
        description="the system or lineage whose results are ranked again; without it, a ranker with vectors of tokens "
        "ranks the whole collection",
    )
    ranker: str = Field(description="the lineage whose model scores a query and a passage")
    depth: Positive = Field(1000, description="results of each query that it scores; the others stay below")

    @property
    def parts(self) -> tuple[str, ...]:
        """The first stage, and the lineage that ranks its results again."""
        return (self.first, self.ranker) if self.first else (self.ranker,)


class TakenRun(System):
    """A run that others made, with any program: lines of TREC's six columns, of which scores give the order."""

    kind: Literal["run"]
    path: str | None = Field(None, description="the file, gzipped or not, or an entry of sources.yaml")
    url: str | None = Field(None, description="or where it is fetched from")
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$", description="of the file: another one is refused")
    answers: tuple[str, ...] = Field(
        (), description="what queries are in it, `dataset` or `dataset.split`; all of its tables' without"
    )
    label: str = Field("", exclude=True, description="what its row of a table is called; the system's name without")

    @model_validator(mode="after")
    def _name_one_place(self) -> "TakenRun":
        if (self.path is None) == (self.url is None):
            raise ValueError("give either the `path` of the run's file or its `url`")
        return self

    def fetched(self) -> SourceEntry:
        """The source that a run with a ``url`` is."""
        remote = {"url": self.url, "digest": self.sha256 and f"sha256:{self.sha256}"}
        terms = {"licence": "not said", "terms": self.source or str(self.url)}
        return SourceEntry.model_validate({"files": [remote], **terms})


SYSTEMS: dict[str, type[System]] = {"bm25": Bm25, "fusion": Fusion, "rerank": Rerank, "run": TakenRun}
read_system = partial(by_kind, kinds=SYSTEMS, what="system")  # checks an entry's fields


class IndexType(Strict):
    """Fields of every entry of ``indexes.yaml``.

    ``SEARCH``: those that decide the search alone, so that one index serves several settings.
    """

    SEARCH: ClassVar[frozenset[str]] = frozenset()

    kind: str
    source: str = Field("", exclude=True, description="where these values come from; no part of any digest")

    def building(self) -> dict[str, Any]:
        """The fields that decide the index's bytes, as specs say them."""
        return {key: value for key, value in self.model_dump(mode="json").items() if key not in self.SEARCH}

    def searching(self) -> dict[str, Any]:
        """The fields that decide how it is searched."""
        return {key: value for key, value in self.model_dump(mode="json").items() if key in self.SEARCH}

    def check(self, dimension: int) -> None:
        """Refuse vectors of a dimension that the type cannot hold, by an EncoreError."""


class Hnsw(IndexType):
    """A navigable small-world graph over whole vectors (Malkov and Yashunin, 2018)."""

    SEARCH = frozenset({"ef_search"})

    kind: Literal["hnsw"]
    m: int = Field(32, ge=2, description="neighbours of a vector in each layer; twice as many in the lowest")
    ef_construction: Positive = Field(200, description="candidates looked at for a new vector")
    ef_search: Positive = Field(256, description="candidates looked at for a query, at least as many as are asked for")


class IvfPq(IndexType):
    """Inverted lists around k-means centroids, with product-quantised residuals (Jegou et al., 2011)."""

    SEARCH = frozenset({"nprobe"})

    kind: Literal["ivfpq"]
    nlist: Positive = Field(4096, description="lists")
    m: Positive = Field(96, description="parts of a vector, each with its own code; divides the dimension")
    bits: int = Field(8, ge=4, le=12, description="of a part's code")
    nprobe: Positive = Field(1, description="lists that a query looks into")
    seed: int = Field(0, ge=0, description="of k-means")

    @model_validator(mode="after")
    def _look_into_lists_that_there_are(self) -> "IvfPq":
        if self.nprobe > self.nlist:
            raise ValueError(f"nprobe {self.nprobe} is more than the nlist {self.nlist} lists there are")
        return self

    def check(self, dimension: int) -> None:
        """Refuse parts of unequal size: ``m`` must divide the dimension."""
        if dimension % self.m:
            raise EncoreError(
                f"index type ivfpq: m={self.m} does not divide the {dimension} dimensions of the vectors; "
                "choose a divisor, under `scale: indexes:` or in the name"
            )


class Fp16(IndexType):
    """Whole vectors in half precision, all of them compared; half the bytes of exact search."""

    kind: Literal["fp16"]


INDEXES: dict[str, type[IndexType]] = {"hnsw": Hnsw, "ivfpq": IvfPq, "fp16": Fp16}
read_index_type = partial(by_kind, kinds=INDEXES, what="index")  # checks an entry's fields


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


def parameters_of_t5(fields: Mapping[str, Any]) -> float:
    """Parameters of the T5 that an expansion describes; with a checkpoint those of t5-base, the only one here."""
    if "checkpoint" not in fields:
        return T5_BASE
    hidden, inner, layers = (float(fields[name]) for name in ("hidden", "intermediate", "layers"))
    return 8192 * hidden + layers * (12 * hidden * hidden + 4 * hidden * inner)


def content(path: Path) -> str:
    """A file's identity, whatever it is called."""
    return remembered_contents({"predictions": path})["predictions"]


SAMPLING = ("per_passage", "top_k")  # the fields of T5 that its training does not depend on
EXPANSIONS: dict[str, type[Expansion]] = {"published": Published, "t5": T5}
read_expansion = partial(by_kind, kinds=EXPANSIONS, what="expansion")  # checks an entry's fields
