"""What answers queries without being a lineage: the kinds of entries in ``systems.yaml``.

A system may combine others (a first stage and what ranks its results again, two lists that are fused); how each
kind's run is planned is in ``plan/artifacts/``.
"""

from functools import partial
from typing import Literal

from pydantic import Field, model_validator

from encore.config.entries import System
from encore.config.strict import Positive, Share, Strict
from encore.config.validation import by_kind


class Bm25(System):
    """BM25 by Lucene."""

    kind: Literal["bm25"]
    k1: float = Field(0.9, ge=0)
    b: Share = 0.4
    expansion: str | None = Field(
        None, description="an entry of doc2query.yaml: predicted queries that passages are indexed with"
    )


MOST_WEIGHTS = 10_000


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
        """From ``first`` on, without the dust of repeated addition."""
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


KINDS: dict[str, type[System]] = {"bm25": Bm25, "fusion": Fusion, "rerank": Rerank}
read_system = partial(by_kind, kinds=KINDS, what="system")  # checks an entry's fields
