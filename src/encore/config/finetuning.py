"""The fields of a fine-tuning step: its loss, its teachers, where its negatives come from. An entry of ``steps.yaml``.

The papers' recipes differ in these fields alone; docs/fine-tuning.md shows them side by side.
"""

from typing import Any, Literal

from pydantic import Field, model_validator

from encore.config.entries import Step
from encore.config.validation import Positive

SAMPLES = 1000  # that a step may name
PART = 2  # that the steps are divided by to try a learning rate


class FinetuneStep(Step):
    """Fine-tuning on judged queries."""

    kind: Literal["finetune"]
    scorer: Literal["vector", "late-interaction", "cross-encoder"] = Field(
        "vector",
        description="How the model scores: one vector a text, one vector a token, or the two texts read as one.",
    )
    token_dimension: Positive = Field(128, description="The dimension of a token's vector, for late interaction.")
    normalised: Literal["passages", "both", "none"] = Field(
        "passages", description="Whose token vectors are scaled to length 1, for late interaction."
    )
    query_vectors: Positive | None = Field(
        None,
        description="For late interaction, the first tokens of a query, [CLS] among them, that have vectors; without "
        "it, those of its content.",
    )
    passage_vectors: Positive | None = Field(None, description="The same of a passage.")
    loss: Literal[
        "contrastive",
        "pairwise",
        "pairwise-in-batch",
        "pointwise",
        "lambda",
        "kl-in-batch",
        "kl-pairwise",
        "margin-mse",
        "residual",
    ] = Field(
        "contrastive",
        description="The loss: over all passages of the batch, over pairs of a query's own positive and "
        "negative, over pairs of it and any passage of the batch, of a cross-encoder over each passage for itself, "
        "over pairs of a ranked list that count by what changing places does to the reciprocal rank, or, with "
        "teachers, the divergence from their scores over the batch or over such pairs, the squared difference of "
        "margins, or, with BM25 for a teacher, the margin that it leaves.",
    )
    temperature: float = Field(
        1.0, gt=0, description="The number that the model's own scores are divided by in the loss."
    )
    teachers: tuple[str, ...] = Field(
        (),
        description="Lineages whose mean scores are learned in place of judgments; `parent` is the lineage "
        "without this step.",
    )
    teacher_scores: str | None = Field(
        None, description="Published scores of triples in place of teachers: a source, a file, or a folder of files."
    )
    batch_teachers: tuple[str, ...] = Field(
        (), description="With `loss: margin-mse`, lineages that also teach the margins to all passages of the batch."
    )
    batch_weight: float = Field(0.75, gt=0, description="The weight of what `batch_teachers` teach.")
    clusters: Positive | None = Field(
        None,
        description="The number of k-means clusters of the training queries' vectors by the parent; each batch is of "
        "one cluster. Without it, batches are drawn from all queries.",
    )
    margin_bins: Positive | None = Field(
        None,
        description="The bins of equal width of a query's margins by its teachers, one of which is drawn before a "
        "negative in it; without it, all negatives are drawn alike.",
    )
    teacher_temperature: float = Field(
        1.0, gt=0, description="The number that the teachers' scores are divided by in the loss."
    )
    queries: Positive | None = Field(
        None, description="The number of training queries in a random sample; without it, all are used."
    )
    sample: int = Field(
        0,
        ge=0,
        lt=SAMPLES,
        description="The number of the random sample of `queries`; another number or seed is another sample.",
    )
    negatives: Literal["bm25", "mined", "bm25+mined", "systems", "none", "index"] = Field(
        description="Where negatives come from: BM25, a lineage's own run, both, a file of several systems, "
        "only the other passages of the batch, or the first `depth` passages that the query finds at every step, "
        "while the encoder of queries is trained alone."
    )
    published_negatives: bool = Field(
        False,
        description="Whether the negatives that the dataset was published with replace those of our own BM25 run.",
    )
    triples: str | None = Field(
        None,
        description="A file with query, positive and negative on each line, whose negatives replace those of "
        "our own BM25 run.",
    )
    systems_file: str | None = Field(
        None,
        description="For `negatives: systems`, a JSON-lines file of each query's candidates with a "
        "cross-encoder's scores.",
    )
    margin: float = Field(
        3.0, description="For `negatives: systems`, how far a negative must score below the worst positive."
    )
    per_system: Positive = Field(
        5, description="For `negatives: systems`, the number of negatives taken from each system."
    )
    mined_by: str | None = Field(
        None, description="The lineage or system whose run negatives are mined from; without it, the parent."
    )
    negatives_below: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="For a run that a cross-encoder with a pointwise loss has ranked again, the probability that a "
        "negative must be below.",
    )
    first_rank: Positive = Field(1, description="The best rank of a run that negatives are taken from.")
    depth: Positive = Field(200, description="The last rank of a run that negatives are taken from.")
    negatives_kept: Positive = Field(
        30, description="The number of negatives that are sampled once and kept for each query."
    )
    kept: Literal["random", "first"] = Field(
        "random",
        description="Which of the allowed ranks are kept: a sample, or the best ranks, which after a ranking again are "
        "those of the first run.",
    )
    per_query: Positive = Field(
        7, description="The number of negatives of each query in a batch, sampled again from those kept for each batch."
    )
    replacement: bool = Field(False, description="Whether a query's negatives in a batch are sampled with replacement.")
    in_batch_group: Positive | None = Field(
        None,
        description="The number of neighbouring queries of a batch whose passages are contrasted with each "
        "other; without it, the whole batch.",
    )
    logq_correction: bool = Field(
        False,
        description="Whether the logarithm of a passage's sampling probability is subtracted from each of its scores.",
    )
    exclude_judged: bool = Field(True, description="Whether a judged document is never taken as a negative.")
    exclude_relevant: bool = Field(
        True,
        description="Whether what another query brings to a batch and is relevant for this one is not its negative.",
    )
    exclude_answers: bool = Field(
        False, description="Whether a passage that contains an answer to the question is never taken as a negative."
    )
    positives: Literal["judged", "answers"] = Field(
        "judged",
        description="What counts as relevant: judged passages, or also each retrieved passage that contains "
        "an answer to the question.",
    )
    least_negatives: int = Field(
        0,
        ge=0,
        description="The fewest negatives of a query; queries with fewer are left out, before any sample is drawn.",
    )
    start: Literal["parent", "pretrained"] = Field(
        "parent",
        description="Whose weights the step starts from: the parent's, or those of its last pre-trained ancestor.",
    )
    projector: Literal["none", "linear", "nonlinear"] = Field(
        "none",
        description="A map of the pooled vector that becomes part of the model; it starts from the "
        "pre-trained one if there is one.",
    )
    pooling: Literal["cls", "mean", "content"] | None = Field(
        None, description="How a text's vector is computed from this step on; without it, as the backbone says."
    )
    similarity: Literal["dot", "cosine"] | None = Field(
        None, description="How two vectors are compared from this step on; without it, as the backbone says."
    )
    validate_every: Positive | None = Field(
        None,
        description="The number of steps between two validations, of which the best model is kept; without "
        "it, the last model is kept.",
    )
    learning_rates: tuple[float, ...] = Field(
        (),
        description="Learning rates of which each is tried for half of the steps; the one that validates best replaces "
        "`learning_rate`. For a published encoder and few judgments, where nobody knows a rate.",
    )
    validation_queries: Positive = Field(400, description="The number of queries of a validation.")
    validation_pool: Positive = Field(
        2000, description="The number of passages that are ranked at a validation, in addition to the queries' own."
    )
    validation_measure: Literal["RR@10", "R@10"] = Field("RR@10", description="The measure of a validation.")
    train_split: str = Field("train", description="The split of role train whose queries are learned from.")
    valid_split: str = Field("valid", description="The split of role valid that validations use.")

    @property
    def negatives_per_query(self) -> int:
        """The number of negatives of each query in a batch."""
        return 0 if self.negatives in ("none", "index") else self.per_query

    @property
    def needed_negatives(self) -> int:
        """The negatives that a query must have to be learned from."""
        return 0 if self.negatives in ("none", "index") else self.least_negatives

    def sample_of(self, seed: int) -> int:
        """The number of the sample of queries that a seed learns from: seeds differ in it as in all other chance."""
        return self.sample + SAMPLES * seed if self.queries else 0

    def query_selection(self, seed: int) -> dict[str, Any]:
        """Which queries a seed trains on: their split, how many, which sample, and how many negatives each needs."""
        sample, least = self.sample_of(seed), self.needed_negatives
        return {"split": self.train_split, "queries": self.queries, "sample": sample, "least_negatives": least}

    @property
    def is_distillation(self) -> bool:
        """Whether the loss learns from teachers' scores."""
        return self.loss in ("kl-in-batch", "kl-pairwise", "margin-mse", "residual")

    @property
    def validates(self) -> bool:
        """Whether anything is chosen on validation queries."""
        return bool(self.validate_every or self.learning_rates)

    @property
    def mines(self) -> bool:
        """Whether negatives come from a lineage's own run."""
        return "mined" in self.negatives.split("+")

    @property
    def idle(self) -> set[str]:
        """Fields that have no effect given the others: overriding one would give a model a second name."""
        late = self.scorer == "late-interaction"
        ranked = self.mines or (self.negatives == "bm25" and not self.triples and not self.published_negatives)
        contrasted = self.loss in ("contrastive", "pairwise-in-batch") and self.scorer != "cross-encoder"
        validation = {"valid_split", "validation_queries", "validation_pool", "validation_measure"}
        taken = {"negatives_kept", "per_query", "replacement", "exclude_judged", "exclude_answers", "least_negatives"}
        return {
            *(set() if late else {"token_dimension", "normalised", "query_vectors", "passage_vectors"}),
            *(set() if self.validates else validation),
            *({"learning_rate"} if self.learning_rates else set()),
            *(set() if self.queries else {"sample"}),
            *({"negatives_kept"} if self.negatives == "systems" else {"margin", "per_system"}),
            *(set() if ranked else {"first_rank", "kept"}),
            *(set() if ranked or self.negatives == "index" or self.loss == "residual" else {"depth"}),
            *(taken if self.negatives in ("none", "index") else set()),
            *({"length"} if self.negatives == "index" else set()),
            *(set() if contrasted else {"exclude_relevant"}),
            *({"replacement"} if self.margin_bins else set()),
            *({"temperature"} if self.loss == "pointwise" else set()),
            *(set() if self.batch_teachers else {"batch_weight"}),
        }

    @model_validator(mode="after")
    def _say_nothing_idle(self) -> "FinetuneStep":
        if self.in_batch_group and self.batch % self.in_batch_group:
            raise ValueError(
                f"in_batch_group is {self.in_batch_group}, which does not divide the batch of {self.batch} queries"
            )
        if self.in_batch_group and self.loss in ("pairwise", "lambda"):
            raise ValueError("a pairwise loss contrasts no passages of other queries; leave `in_batch_group` out")
        alone = self.scorer != "cross-encoder" and (self.in_batch_group or self.batch) < 2
        if self.loss in ("contrastive", "pairwise-in-batch", "kl-in-batch") and alone and not self.negatives_per_query:
            raise ValueError(
                "batch: the other passages of a batch are the only negatives, so one query alone teaches nothing"
            )
        if self.batch_teachers and alone:
            raise ValueError("batch: `batch_teachers` compare with passages of other queries; let it be 2 or more")
        if self.loss == "pairwise" and self.negatives == "none":
            raise ValueError("a pairwise loss needs its own negatives; let `negatives` be another than none")
        if self.logq_correction and (self.negatives != "none" or self.loss != "contrastive"):
            raise ValueError("the log-q correction is of positives drawn in a batch; it needs `negatives: none`")
        if self.mined_by and not self.mines:
            raise ValueError(f"nothing is mined for `negatives: {self.negatives}`; leave `mined_by` out")
        if self.triples and "bm25" not in self.negatives.split("+"):
            raise ValueError(f"triples replace BM25's negatives, not those of `negatives: {self.negatives}`")
        if self.published_negatives and (self.triples or "bm25" not in self.negatives.split("+")):
            raise ValueError("published negatives replace BM25's, and so do triples; leave `published_negatives` out")
        if self.systems_file and self.negatives != "systems":
            raise ValueError(f"a file of several systems is not for `negatives: {self.negatives}`; leave it out")
        if self.positives == "answers" and self.negatives in ("systems", "none", "index"):
            raise ValueError("`positives: answers` are retrieved; let `negatives` come from a run")
        if self.positives == "answers" and self.is_distillation:
            raise ValueError("teachers score judged passages; leave `positives: answers` out")
        if any(rate <= 0 for rate in self.learning_rates) or (self.learning_rates and self.negatives == "index"):
            raise ValueError("learning_rates are above 0, and of a step that does not search an index; correct them")
        if self.first_rank > self.depth:
            raise ValueError(f"first_rank is {self.first_rank}, below the depth of {self.depth}")
        return self

    @model_validator(mode="after")
    def _leave_the_index_as_it_is(self) -> "FinetuneStep":
        if (self.loss == "lambda" or self.negatives == "index") and not (
            self.loss in ("lambda", "pairwise") and self.negatives == "index" and self.scorer == "vector"
        ):
            raise ValueError(
                "`negatives: index` goes with loss pairwise or lambda, of vectors, and loss lambda with such negatives"
            )
        for field in ("start", "projector", "pooling", "similarity") if self.negatives == "index" else ():
            if getattr(self, field) != type(self).model_fields[field].default:
                raise ValueError(f"`{field}` would change the passages' vectors, which `negatives: index` keeps")
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
        if self.batch_teachers and (self.loss != "margin-mse" or self.negatives == "none"):
            raise ValueError("`batch_teachers` teach margins; let `loss` be margin-mse, and `negatives` not none")
        if self.margin_bins and (self.loss not in ("margin-mse", "kl-pairwise") or self.negatives == "none"):
            raise ValueError("`margin_bins` are of teachers' scores of pairs; let `loss` be margin-mse or kl-pairwise")
        if (self.clusters or self.margin_bins) and self.teacher_scores and not self.batch_teachers:
            raise ValueError(
                "published scores are read line by line; leave `clusters` and `margin_bins` out, or add batch teachers"
            )
        if self.loss == "residual" and self.teacher_scores:
            raise ValueError(
                "a residual is of a system's scores; name it in `teachers`, and leave `teacher_scores` out"
            )
        if self.teacher_scores and not self.batch_teachers and self.negatives != "none":
            raise ValueError(
                "published scores are of their own triples, and no other negative is read; let `negatives` be none"
            )
        if any(len({*named}) < len(named) for named in (self.teachers, self.batch_teachers)):
            raise ValueError("a teacher is twice in a list, and scores are averaged over the list; name each once")
        return self

    @model_validator(mode="after")
    def _give_each_scorer_what_it_can_learn_from(self) -> "FinetuneStep":
        if self.scorer == "cross-encoder" and self.negatives == "none":
            raise ValueError("a cross-encoder reads its own negatives only; let `negatives` be another than none")
        if self.scorer == "cross-encoder" and self.in_batch_group:
            raise ValueError("a cross-encoder reads no passages of other queries; leave `in_batch_group` out")
        if self.loss == "pointwise" and self.scorer != "cross-encoder":
            raise ValueError("a pointwise loss is of pairs that are read together; let `scorer` be cross-encoder")
        if self.scorer != "vector":
            for field in ("loss", "projector", "pooling", "similarity", "validate_every", "learning_rates"):
                if getattr(self, field) not in (type(self).model_fields[field].default, "pointwise"):
                    raise ValueError(
                        f"`{field}` is about a text's vector, and scorer {self.scorer} has none; remove it"
                    )
        return self
