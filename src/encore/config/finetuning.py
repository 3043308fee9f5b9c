"""What a fine-tuning step may say: its loss, its teachers, where its negatives come from. An entry of ``steps.yaml``.

The papers' recipes differ in these fields alone; docs/fine-tuning.md shows them side by side.
"""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from encore.config.run import Positive, Step


class FinetuneStep(Step):
    """Fine-tuning on judged queries."""

    renamed: ClassVar[dict[str, str]] = {
        **Step.renamed,
        "keep": "negatives_kept",
        "pool": "in_batch_group",
        "correction": "logq_correction",
    }

    kind: Literal["finetune"]
    scorer: Literal["vector", "late-interaction", "cross-encoder"] = Field(
        "vector", description="how the model scores: one vector a text, one a token, or the two texts read as one"
    )
    token_dimension: Positive = Field(128, description="of a token's vector, for late interaction")
    normalised: Literal["passages", "both"] = Field(
        "passages", description="whose token vectors have length 1, for late interaction"
    )
    loss: Literal["contrastive", "pairwise", "kl-in-batch", "kl-pairwise", "margin-mse"] = Field(
        "contrastive",
        description="over all passages of the batch, or each own negative against the own positive; with teachers, the "
        "divergence from theirs over the batch or over such pairs, or the squared difference of margins",
    )
    temperature: float = Field(1.0, gt=0, description="scores are divided by it; a student's, never a teacher's")
    teachers: tuple[str, ...] = Field(
        (), description="lineages whose mean scores are learned instead of judgments; `parent` is the step's own parent"
    )
    teacher_scores: str | None = Field(
        None, description="published scores of triples in place of teachers: a source, a file, or a folder of files"
    )
    teacher_temperature: float = Field(1.0, gt=0, description="teachers' scores are divided by it")
    queries: Positive | None = Field(None, description="size of the sample of training queries; all of them without")
    sample: int = Field(0, ge=0, description="which sample of that size")
    negatives: Literal["bm25", "mined", "bm25+mined", "systems", "none"] = Field(
        description="from BM25, a lineage's own run, both, a file of several systems, or the batch's passages alone"
    )
    published_negatives: bool = Field(
        False, description="the negatives that the collection was published with, in place of BM25's of our own run"
    )
    triples: str | None = Field(
        None, description="a file of query, positive, negative on each line: BM25's negatives in place of our own run's"
    )
    systems_file: str | None = Field(
        None, description="for `systems`: a JSON-lines file of each query's candidates with a cross-encoder's scores"
    )
    margin: float = Field(3.0, description="for `systems`: a negative scores this much below the worst positive")
    per_system: Positive = Field(5, description="for `systems`: negatives taken from each")
    mined_by: str | None = Field(None, description="the lineage whose run negatives are mined from; the parent without")
    first_rank: Positive = Field(1, description="the best rank that negatives are taken from")
    depth: Positive = Field(200, description="the last rank that negatives are taken from")
    negatives_kept: Positive = Field(30, description="negatives kept for each query")
    per_query: Positive = Field(7, description="negatives beside each positive in a batch")
    replacement: bool = Field(False, description="a query's negatives in a batch are drawn with replacement")
    in_batch_group: Positive | None = Field(
        None, description="queries of a batch whose passages are contrasted with each other; the whole batch without"
    )
    logq_correction: bool = Field(
        False, description="the logarithm of a passage's sampling probability is subtracted from each of its scores"
    )
    exclude_judged: bool = Field(True, description="a judged document is never a negative")
    exclude_answers: bool = Field(False, description="a passage that contains an answer to the question is no negative")
    positives: Literal["judged", "answers"] = Field(
        "judged", description="`answers`: each retrieved passage that contains an answer to the question is one as well"
    )
    least_negatives: int = Field(0, ge=0, description="queries with fewer are left out")
    start: Literal["parent", "pretrained"] = Field(
        "parent", description="whose weights: the parent's, or its last pre-trained ancestor's"
    )
    projector: Literal["none", "linear", "nonlinear"] = Field(
        "none", description="a map on the pooled vector, the pre-trained one where there is one; part of the model"
    )
    validate_every: Positive | None = Field(
        None, description="steps between validations; the best model is kept. Without: the last one"
    )
    validation_queries: Positive = 400
    validation_pool: Positive = Field(2000, description="passages ranked at a validation, beside the queries' own")
    validation_measure: Literal["RR@10", "R@10"] = "RR@10"
    train_split: str = Field("train", description="the split of role train whose queries are learned from")
    valid_split: str = Field("valid", description="the split of role valid that validations look at")

    @property
    def negatives_per_query(self) -> int:
        """Negatives that each query brings to a batch."""
        return 0 if self.negatives == "none" else self.per_query

    @property
    def is_distillation(self) -> bool:
        """Whether teachers say what is learned."""
        return self.loss in ("kl-in-batch", "kl-pairwise", "margin-mse")

    @property
    def mines(self) -> bool:
        """Whether negatives come from a lineage's own run."""
        return "mined" in self.negatives.split("+")

    @property
    def idle(self) -> set[str]:
        """Fields that decide nothing beside the others: a name that overrides one would say one model twice."""
        late = self.scorer == "late-interaction"
        validation = {"valid_split", "validation_queries", "validation_pool", "validation_measure"}
        taken = {"negatives_kept", "per_query", "replacement", "exclude_judged", "exclude_answers"}
        return {
            *(set() if late else {"token_dimension", "normalised"}),
            *(set() if self.validate_every else validation),
            *(set() if self.queries else {"sample"}),
            *(set() if self.negatives == "systems" else {"margin", "per_system"}),
            *({"first_rank", "depth"} if self.negatives in ("none", "systems") else set()),
            *(taken if self.negatives == "none" else set()),
        }

    @model_validator(mode="after")
    def _say_nothing_idle(self) -> "FinetuneStep":
        if self.in_batch_group and self.batch % self.in_batch_group:
            raise ValueError(
                f"in_batch_group is {self.in_batch_group}, which does not divide the batch of {self.batch} queries"
            )
        if self.in_batch_group and self.loss == "pairwise":
            raise ValueError("a pairwise loss contrasts no passages of other queries; leave `in_batch_group` out")
        if self.loss == "pairwise" and self.negatives == "none":
            raise ValueError("a pairwise loss needs negatives of its own; let `negatives` be another than none")
        if self.logq_correction and (self.negatives != "none" or self.loss != "contrastive"):
            raise ValueError("the log-q correction is of positives drawn in a batch; it needs `negatives: none`")
        if self.mined_by and not self.mines:
            raise ValueError(f"nothing is mined for `negatives: {self.negatives}`; leave `mined_by` out")
        if self.triples and "bm25" not in self.negatives.split("+"):
            raise ValueError(f"triples stand for BM25's negatives, not for `negatives: {self.negatives}`")
        if self.published_negatives and (self.triples or "bm25" not in self.negatives.split("+")):
            raise ValueError("published negatives stand for BM25's, and so do triples; leave `published_negatives` out")
        if self.systems_file and self.negatives != "systems":
            raise ValueError(f"a file of several systems is not for `negatives: {self.negatives}`; leave it out")
        if self.positives == "answers" and self.negatives in ("systems", "none"):
            raise ValueError("`positives: answers` are retrieved; let `negatives` come from a run")
        if self.positives == "answers" and self.is_distillation:
            raise ValueError("teachers score judged passages; leave `positives: answers` out")
        if self.first_rank > self.depth:
            raise ValueError(f"first_rank is {self.first_rank}, below the depth of {self.depth}")
        return self

    @model_validator(mode="after")
    def _ask_teachers_for_what_they_can_say(self) -> "FinetuneStep":
        if (self.teachers or self.teacher_scores) and not self.is_distillation:
            raise ValueError(f"loss {self.loss} asks no teacher; leave `teachers` and `teacher_scores` out")
        if self.teachers and self.teacher_scores:
            raise ValueError("`teachers` and `teacher_scores` are two sources of one thing; leave one of them out")
        if self.teacher_scores and self.loss == "kl-in-batch":
            raise ValueError("published scores are of triples, not of batches; let `loss` be kl-pairwise or margin-mse")
        if self.in_batch_group and self.is_distillation and self.loss != "kl-in-batch":
            raise ValueError(f"loss {self.loss} looks at no passages of other queries; leave `in_batch_group` out")
        if self.teacher_temperature != 1 and not self.is_distillation:
            raise ValueError(f"loss {self.loss} has no teacher to divide by; leave `teacher_temperature` out")
        if len(set(self.teachers)) < len(self.teachers):
            raise ValueError("a teacher stands twice in `teachers`, whose scores are averaged; name each once")
        return self

    @model_validator(mode="after")
    def _give_a_cross_encoder_passages_to_choose_from(self) -> "FinetuneStep":
        if self.scorer != "cross-encoder":
            return self
        if self.negatives == "none":
            raise ValueError("a cross-encoder reads its own negatives only; let `negatives` be another than none")
        if self.in_batch_group:
            raise ValueError("a cross-encoder reads no passages of other queries; leave `in_batch_group` out")
        return self

    @model_validator(mode="after")
    def _ask_for_vectors_only_where_there_are_some(self) -> "FinetuneStep":
        if self.scorer != "vector":
            for field in ("loss", "projector", "validate_every"):
                if getattr(self, field) != type(self).model_fields[field].default:
                    raise ValueError(
                        f"`{field}` is about a text's vector, and scorer {self.scorer} has none; remove it"
                    )
        return self
