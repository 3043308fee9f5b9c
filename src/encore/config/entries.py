"""The typed entries of the catalogue: backbones, steps, systems.

Nothing here imports torch, since the workflow is parsed twice for every SLURM job.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from encore.config.validation import Commit, Length, Positive, Share, Strict

LARGEST_BATCH = 1_000_000  # examples


class Backbone(Strict):
    """The encoder that a lineage starts from: a checkpoint, or a configuration to initialise (``backbones.yaml``)."""

    start: Literal["checkpoint", "random", "lsa", "lineage"] = Field(
        description="Where the weights come from: a published checkpoint, random numbers, random numbers with word "
        "embeddings from a latent semantic analysis of a corpus, or the model of a lineage, which all seeds share."
    )
    lineage: str | None = Field(
        None,
        description="The lineage of `start: lineage`: another backbone of the same shape and what it was pre-trained "
        "with, such as tiny+mlm.",
    )
    architecture: Literal["bert", "transformers", "bow-mlp"] = Field(
        "bert",
        description="`bert` is BERT, by code of our own; `transformers` is any encoder that Transformers loads, by its "
        "code, which may be fine-tuned and not pre-trained; `bow-mlp` maps the mean of word embeddings (`hidden`) "
        "through a tanh layer (`intermediate`) and a linear one (`projection_dim`).",
    )
    checkpoint: str | None = Field(
        None,
        description="The checkpoint of `start: checkpoint`: an id of Hugging Face's hub, an entry of sources.yaml, or "
        "a folder.",
    )
    revision: Commit | None = Field(
        None, description="The commit of a checkpoint on the hub; without it the first one fetched is kept."
    )
    sha256: dict[str, Annotated[str, Field(pattern="^[0-9a-f]{64}$")]] = Field(
        {}, description="The sha256 of files of the checkpoint, by name: with others it is refused."
    )
    collection: str | None = Field(
        None, description="The dataset that a new vocabulary (and the latent semantic analysis) is computed from."
    )
    vocabulary: Positive | None = Field(None, description="The number of WordPiece entries of a new vocabulary.")
    layers: Positive = Field(12, description="The number of transformer layers.")
    hidden: Positive = Field(768, description="The width of a token's state.")
    heads: Positive = Field(12, description="The number of attention heads of a layer; it divides `hidden`.")
    intermediate: Positive = Field(3072, description="The width of a layer's feed-forward part.")
    max_length: Positive = Field(512, description="The most tokens of a text, special tokens included.")
    dropout: Share = Field(0.1, description="The dropout rate of states and attention weights in training.")
    pooling: Literal["cls", "mean", "content"] = Field(
        "cls",
        description="How a text's vector is computed: the state of [CLS], the mean over all tokens, or the mean over "
        "tokens that are neither special nor a marker.",
    )
    similarity: Literal["dot", "cosine"] = Field("dot", description="How two vectors are compared.")
    projection_dim: Positive | None = Field(
        None, description="The dimension of a linear map of the pooled vector; without it there is none."
    )
    encoders: Literal["shared", "separate"] = Field(
        "shared",
        description="Whether queries and passages share one encoder or have two that start with the same weights.",
    )
    query_marker: str = Field(
        "", description="Plain text behind [CLS] that marks a query; it is read as word pieces, not as a new token."
    )
    passage_marker: str = Field(
        "",
        description="Plain text behind [CLS] that marks a passage; with `pooling: content` it has as many word pieces "
        "as `query_marker`.",
    )
    separator: bool = Field(True, description="Whether [SEP] ends a text.")
    augment: bool = Field(
        False,
        description="Whether queries are filled up to their full length with [MASK] tokens, which count like others.",
    )
    length: Length | None = Field(
        None,
        description="The most tokens of a passage for a checkpoint that is used without a further step; without it, "
        "`max_length`.",
    )
    query_length: Length | None = Field(
        None,
        description="The most tokens of a query for a checkpoint that is used without a further step; without it, "
        "`max_length`.",
    )
    source: str = Field("", exclude=True, description="Where these values come from; it is part of no digest.")

    @property
    def is_given(self) -> bool:
        """True if no part of it is drawn from a run's seed."""
        return self.start == "lineage" or (self.start == "checkpoint" and self.projection_dim is None)

    @model_validator(mode="after")
    def _give_each_start_and_architecture_what_it_needs(self) -> "Backbone":
        for name in ("checkpoint", "lineage"):
            if getattr(self, name) is not None and self.start != name:
                raise ValueError(f"`start: {self.start}` reads no `{name}:`; leave it out, or write `start: {name}`")
        if self.revision and self.checkpoint is None:
            raise ValueError("`revision:` is the commit of a `checkpoint:`, and there is none")
        if self.sha256 and self.checkpoint is None:
            raise ValueError("`sha256:` is of a `checkpoint:`'s files, and there is none")
        if self.pooling == "content" and bool(self.query_marker) != bool(self.passage_marker):
            raise ValueError(
                "`pooling: content` begins behind markers of equal length; give both queries and passages one, or none"
            )
        if self.architecture == "transformers" and (
            self.start != "checkpoint" or self.encoders != "shared" or self.pooling == "content" or self.augment
        ):
            raise ValueError(
                "architecture transformers needs `start: checkpoint`, `encoders: shared`, `pooling: cls` or `mean`, "
                "and no `augment`"
            )
        if self.architecture == "bert" and self.start in ("random", "lsa") and self.hidden % self.heads:
            raise ValueError(f"`heads: {self.heads}` is no divisor of `hidden: {self.hidden}`; take one that is")
        if self.architecture == "bow-mlp" and (
            self.start not in ("random", "lsa") or self.projection_dim is None or self.pooling != "content"
        ):
            raise ValueError(
                "architecture bow-mlp needs `projection_dim`, `pooling: content`, and `start: random` or `lsa`"
            )
        return self


class Step(Strict):
    """The fields of every training step."""

    collection: str = Field(description="The dataset whose texts and judgments the step learns from.")
    epochs: float | None = Field(None, gt=0, description="The number of passes over the examples.")
    steps_per_epoch: Positive | None = Field(
        None, description="The number of optimiser steps that count as an epoch; without it, those of all examples."
    )
    steps: Positive | None = Field(None, description="The number of optimiser steps, in place of `epochs`.")
    batch: Positive = Field(description="The number of examples in one optimiser step, over all devices.")
    learning_rate: float = Field(gt=0, description="The highest learning rate, which the warm-up ends at.")
    warmup: float = Field(
        0.1, ge=0, description="The length of the linear warm-up: a share of all steps if below 1, else a number."
    )
    schedule: Literal["linear", "cosine", "constant"] = Field(
        "linear",
        description="How the learning rate falls after the warm-up: to 0 in a line, to 10 % along a cosine, or not.",
    )
    weight_decay: float = Field(0.0, ge=0, description="The weight decay of AdamW, applied to matrices only.")
    max_grad_norm: float = Field(1.0, gt=0, description="The norm that a larger gradient is scaled down to.")
    length: Length = Field(description="The most tokens of a passage or text, special tokens included.")
    query_length: Length = Field(64, description="The most tokens of a query, special tokens included.")
    source: str = Field("", exclude=True, description="Where these values come from; it is part of no digest.")

    @model_validator(mode="after")
    def _stay_within_reason(self) -> "Step":
        if self.batch > LARGEST_BATCH:
            raise ValueError(f"batch: {self.batch} examples are more than {LARGEST_BATCH}; take fewer")
        return self


class PretrainStep(Step):
    """Pre-training on text without judgments. Each objective extends this with its own fields."""

    contrasts_texts: ClassVar[bool] = False  # the other texts of a batch are an example's only negatives

    kind: Literal["pretrain"]
    objective: str = Field(description="The name of the objective: a file of src/encore/objectives.")
    save_heads: tuple[str, ...] | None = Field(
        None, description="The modules besides the encoder that are saved for the next step; without it, all of them."
    )
    head_warmup: int = Field(
        0,
        ge=0,
        description="The optimiser steps before the others in which only the modules besides the encoder learn, so "
        "that a head that starts at random does not disturb it.",
    )
    held_out: float = Field(
        0.02,
        ge=0,
        le=0.5,
        description="The share of the examples (at most 256 of them) that losses are measured on and that are never "
        "trained on.",
    )

    @model_validator(mode="after")
    def _have_negatives(self) -> "PretrainStep":
        if self.contrasts_texts and self.batch < 2:
            raise ValueError("batch: the other texts of a batch are the only negatives, so one alone teaches nothing")
        return self


class System(Strict):
    """What answers queries without being a lineage: an entry of ``systems.yaml``. Its kinds are in ``systems.py``."""

    kind: str
    source: str = Field("", exclude=True, description="Where these values come from; it is part of no digest.")

    @property
    def parts(self) -> tuple[str, ...]:
        """The systems and lineages that it consists of."""
        return ()
