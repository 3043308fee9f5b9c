"""One fine-tuning step: a parent model, judged queries and their negatives in, a model folder out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from encore.config.datasets import Ignored
from encore.config.finetuning import FinetuneStep
from encore.data.collection import Collection
from encore.data.judged import judged_queries
from encore.data.tokens import TokenStore
from encore.finetuning.contrastive import Contrastive, LateInteraction, Pairwise, PairwiseInBatch
from encore.finetuning.cross_encoder import CrossEncoder
from encore.finetuning.distillation import distillation
from encore.finetuning.negatives import mining
from encore.finetuning.queries import Query, in_rows
from encore.finetuning.retrieval_task import RetrievalTask
from encore.finetuning.validation import Validation, validation_pool
from encore.finetuning.whole_index import WholeIndex
from encore.models import checkpoint, embed, towers
from encore.models.checkpoint import ModelUse
from encore.models.encoder import Encoder
from encore.training import launch
from encore.training.checkpoint import Resume
from encore.training.loop import train, train_at_best_rate
from encore.training.randomness import number
from encore.training.record import Trained, write_curve, write_validations
from encore.training.schedule import total_steps

SCORERS: dict[str, type[RetrievalTask]] = {"late-interaction": LateInteraction, "cross-encoder": CrossEncoder}
TASKS: dict[str, type[RetrievalTask]] = {
    "contrastive": Contrastive,
    "pairwise": Pairwise,
    "pairwise-in-batch": PairwiseInBatch,
}


@dataclass(frozen=True)
class FinetuneInputs:
    """The folders that a fine-tuning step reads, and the vectors that it searches.

    Args:
        weights: the parent's model.
        negatives: None where the step takes none.
        teachers: each teacher's scores or vectors.
        clusterer: the model whose vectors of queries give the clusters of batches, for a step with ``clusters``.
        index: gives the vectors of the store's passages [passages, D] that ``weights`` made, of that dimension; for
            ``negatives: index``.
    """

    tokens: Path
    collection: Path
    weights: Path
    negatives: Path | None = None
    teachers: Sequence[Path] = ()
    clusterer: Path | None = None
    index: Callable[[TokenStore, int], np.ndarray] | None = None


def finetune(
    step: FinetuneStep,
    inputs: FinetuneInputs,
    output: Path,
    *,
    seed: int,
    numerics: dict[str, Any],
    ignored: Ignored,
    resume: Resume,
) -> Trained:
    """Train the model in ``inputs.weights`` on the training role of a collection and write the model folder ``output``.

    With ``learning_rates`` the best of them is found first. With ``validate_every`` the weights are those of the best
    validation, and all values are in ``validation.tsv``.
    Heads of pre-training are copied unchanged; the scorer's modules start from the parent's.

    Args:
        seed: of all chance.
        numerics: as ``training.loop.train`` takes them.
        ignored: unjudged documents that are no negatives, in training and in validation.
    """
    store, collection = TokenStore(inputs.tokens), Collection(inputs.collection)
    use = ModelUse(step.length, step.query_length, _how_it_scores(step))
    validation = _validation(step, use, collection, store, ignored)
    mined = inputs.negatives
    negatives, positives = (mining.read_negatives(mined), mining.read_positives(mined)) if mined else ({}, {})
    judged = judged_queries(collection, **step.query_selection(seed), ignored=ignored, negatives=negatives)
    queries = in_rows(judged, store, negatives, positives)
    del negatives, positives, judged  # ids of millions of passages, which training does not read

    chance = {name: number(seed, name) for name in ("projector", "topics", "heads")}
    encoder, heads = embed.load_for_tokens(inputs.weights, store), checkpoint.load_heads(inputs.weights)
    towers.project(encoder, step.projector, heads, chance["projector"])
    if step.negatives == "index":
        encoder = towers.query_tower_alone(encoder)  # with its projector the tower of passages is fixed
    towers.set_pooling_and_similarity(encoder, step.pooling, step.similarity)
    task = _task(step, queries, store, encoder, inputs)
    task.reading = encoder.config
    if step.clusters:
        assert inputs.clusterer is not None
        task.cluster_by(embed.load_for_tokens(inputs.clusterer, store), step.clusters, chance["topics"])
    torch.manual_seed(chance["heads"])
    own = task.heads(encoder.config)
    checkpoint.restore_heads(own, inputs.weights)
    print(f"{len(task)} training queries", flush=True)

    training = partial(train, task, encoder, own, seed=seed, numerics=numerics, resume=resume)
    if step.learning_rates:
        assert validation is not None
        model, total = nn.ModuleDict({"encoder": encoder, "heads": own}), total_steps(step, len(task))
        done = train_at_best_rate(step, training, model, total=total, validate=validation, resume=resume)
    else:
        done = training(step, validate=validation, validate_every=step.validate_every)
    done.counts |= {"queries": len(queries)} | checkpoint.without_head(inputs.weights)
    if validation:
        done.counts["validation_queries"] = len(validation.pool.queries)
    if launch.leads():
        write_curve(output / "losses.tsv", done.losses)
        if done.validations:
            write_validations(output / "validation.tsv", done.validations, step.validation_measure)
        checkpoint.save_model(
            encoder,
            heads | own.state_dict(),
            output,
            tokenizer_folder=store.tokenizer_folder,
            length=use.length,
            query_length=use.query_length,
            scorer=use.scorer,
        )
    return done


def _validation(
    step: FinetuneStep, use: ModelUse, collection: Collection, store: TokenStore, ignored: Ignored
) -> Validation | None:
    """What chooses the best weights, or the learning rate; None where neither is chosen."""
    if not step.validates:
        return None
    queries, passages = step.validation_queries, step.validation_pool
    pool = validation_pool(collection, store, step.valid_split, queries=queries, passages=passages, ignored=ignored)
    return Validation(pool, store, use, step.validation_measure)


def _task(
    step: FinetuneStep, queries: list[Query], store: TokenStore, encoder: Encoder, inputs: FinetuneInputs
) -> RetrievalTask:
    """The step's task on these queries: distillation, search of the whole index, or contrast with negatives."""
    if step.is_distillation:
        return distillation(step, queries, store, inputs.teachers)
    if step.negatives == "index":
        assert inputs.index is not None
        return WholeIndex(step, queries, store, inputs.index(store, encoder.dimension))
    return (SCORERS.get(step.scorer) or TASKS[step.loss])(step, queries, store)


def _how_it_scores(step: FinetuneStep) -> dict[str, Any]:
    """How the model was trained to score pairs, as its folder records it."""
    counts = {name: value for name in ("query_vectors", "passage_vectors") if (value := getattr(step, name))}
    normalised = {"normalised": step.normalised, **counts} if step.scorer == "late-interaction" else {}
    return {"kind": step.scorer, **normalised}
