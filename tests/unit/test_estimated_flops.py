"""What is estimated of a training before it starts is what the training counts: operations, parameters, chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_objective
import small_store
import torch
from small_models import random_encoder

from encore import objectives
from encore.commands.preflight import judged, lengths, outlines, shapes, training
from encore.commands.preflight.lengths import TextLengths
from encore.config.finetuning import FinetuneStep
from encore.config.run import Backbone
from encore.finetuning.contrastive import Contrastive
from encore.finetuning.cross_encoder import CrossEncoder
from encore.finetuning.late_interaction import LateInteraction
from encore.finetuning.pairwise import Pairwise
from encore.models import flops, towers
from encore.models.config import EncoderConfig
from encore.models.heads import MlmHead
from encore.objectives.parts.chunks import text_chunks

SHAPE = EncoderConfig(vocabulary=96, layers=2, hidden=16, heads=4, intermediate=24, max_length=64, dropout=0.0)
JUDGED = {"kind": "finetune", "collection": "made-up", "steps": 1, "batch": 4, "learning_rate": 1.0, "length": 20}
JUDGED |= {"query_length": 10, "negatives": "bm25", "per_query": 2, "token_dimension": 8}


class Named:
    """The parts of an encoder that counters look at."""

    def __init__(self, shape: EncoderConfig) -> None:
        self.config, self.dimension = shape, shape.dimension


@pytest.mark.parametrize("name", objectives.names())
def test_an_outline_has_the_arrays_that_the_objective_counts(name: str) -> None:
    """Of a real batch whose texts are of one length, the counter gives the same; chance moves masks by a few pieces."""
    task = small_objective.make(name, length=30, query_length=12)
    rng = np.random.default_rng(0)
    examples = [task.example(int(index), rng) for index in task.indices()[: task.fields.batch]]
    batch = task.collate(examples)
    step = task.fields.model_copy(update={"batch": len(examples)})
    wide = next(batch[key] for key in ("ids", "document_ids") if key in batch).shape[1]
    asked = [array.shape[1] for key, array in batch.items() if key.startswith(("query_ids", "set_ids"))]
    outline = outlines.batch(step, wide, float(np.mean(asked)) if asked else 1)
    assert set(outline) <= set(batch) | {"masked"}
    for key in outline.keys() & batch.keys() - {"masked", "decoded"}:
        if not key.startswith("query_ids"):
            assert outline[key].shape == batch[key].shape, key
    counted = task.flops(Named(SHAPE), batch)
    assert outlines.flops(step, SHAPE, wide, float(np.mean(asked)) if asked else 1) == pytest.approx(counted, rel=0.15)


@pytest.mark.parametrize("name", objectives.names())
def test_full_texts_are_counted_exactly(name: str) -> None:
    """The counter sees nothing but shapes: an outline with a real batch's shapes gives the same number."""
    task = small_objective.make(name, length=30, query_length=12)
    rng = np.random.default_rng(0)
    batch = task.collate([task.example(int(index), rng) for index in task.indices()[: task.fields.batch]])
    bare = type(task).__new__(type(task))
    bare.fields = task.fields
    empty = {key: np.broadcast_to(np.int8(0), array.shape) for key, array in batch.items()}
    assert bare.flops(outlines.EncoderOutline(SHAPE), empty) == task.flops(Named(SHAPE), batch)


def _task(kind: Any, **fields: Any) -> Any:
    """A fine-tuning task that can count, without queries."""
    task = kind.__new__(kind)
    task.step = FinetuneStep.model_validate({**JUDGED, **fields})
    return task


def _filled(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int8)


@pytest.mark.parametrize(("kind", "fields"), [(Contrastive, {}), (Pairwise, {"loss": "pairwise"})])
def test_vector_tasks_count_the_same(kind: Any, fields: dict[str, Any]) -> None:
    task = _task(kind, **fields)
    passages = {f"passage_ids_{number}": _filled(3, 20) for number in range(4)}
    batch = {"query_ids": _filled(4, 10), "passages": _filled(4, 3), **passages}
    texts = TextLengths(100, np.full(4, 50.0))
    assert judged.training(task.step, SHAPE, np.full(4, 30.0), texts) == task.flops(Named(SHAPE), batch)


def test_late_interaction_counts_the_same() -> None:
    task = _task(LateInteraction, scorer="late-interaction")
    passages = {f"passage_ids_{number}": _filled(3, 20) for number in range(4)}
    batch = {"query_ids": _filled(4, 10), "passages": _filled(4, 3), **passages}
    texts = TextLengths(100, np.full(4, 50.0))
    assert judged.training(task.step, SHAPE, np.full(4, 30.0), texts) == task.flops(Named(SHAPE), batch)


def test_a_cross_encoder_reads_query_and_passage_as_one() -> None:
    task = _task(CrossEncoder, scorer="cross-encoder")
    batch = {"places": _filled(4, 3), **{f"pair_ids_{number}": _filled(3, 29) for number in range(4)}}
    texts = TextLengths(100, np.full(4, 50.0))
    assert judged.training(task.step, SHAPE, np.full(4, 30.0), texts) == task.flops(Named(SHAPE), batch)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"projection_dim": 5},
        {"encoders": "separate"},
        {"projector": "linear"},
        {"projector": "nonlinear"},
        {"layers": 1},
    ],
)
def test_parameters_are_those_of_the_module(changes: dict[str, Any]) -> None:
    shape = EncoderConfig(**{**vars(SHAPE), **changes})
    module = towers.build_encoder(shape)
    assert shapes.parameters(shape) == sum(parameter.numel() for parameter in module.parameters())


def test_parameters_of_a_bag_of_words() -> None:
    shape = EncoderConfig(
        **{**vars(SHAPE), "architecture": "bow-mlp", "projection_dim": 6, "pooling": "content", "encoders": "separate"}
    )
    module = towers.build_encoder(shape)
    assert shapes.parameters(shape) == sum(parameter.numel() for parameter in module.parameters())


def test_bert_base_has_its_published_size() -> None:
    """Without the pooler's 590,592, which no vector here comes from: 110 million (Devlin et al. 2019)."""
    shape = shapes.shape_of_backbone(Backbone(start="checkpoint", checkpoint="bert-base-uncased"))
    assert shapes.parameters(shape) == 109_482_240 - 590_592


def test_a_masked_objective_trains_the_vocabulary_head() -> None:
    step = objectives.fields({**small_objective.STEP, "objective": "mlm"})
    head = MlmHead(SHAPE)
    assert shapes.heads(step, SHAPE) == sum(parameter.numel() for parameter in head.parameters())


def test_chunks_are_about_as_many_as_packing_gives() -> None:
    store = small_store.random_store()
    chunks, usable = text_chunks(store, 30)
    sections = np.diff(np.concatenate([[0], np.cumsum(store.sentences.lengths)])[store.sections])
    estimated = lengths.packed(lengths.sampled(sections), 30)
    assert estimated.count == pytest.approx(len(usable), rel=0.35)
    assert estimated.tokens == pytest.approx(chunks.lengths.sum(), rel=0.2)


def test_assumed_lengths_have_the_mean_that_was_asked_for() -> None:
    texts = lengths.assumed(1000, 80.0, "passages")
    assert texts.mean == pytest.approx(80.0, rel=0.01)
    assert texts.tokens == pytest.approx(80_000, rel=0.01)
    assert texts.read(64).max() == 64


def test_a_batch_is_halved_until_it_fits() -> None:
    step = FinetuneStep.model_validate({**JUDGED, "batch": 64})
    whole, memory = training.fit(step, SHAPE, 20.0, 64, {"precision": "fp32"}, float("inf"))
    assert whole == 64
    at_once, less = training.fit(step, SHAPE, 20.0, 64, {"precision": "fp32"}, 0.6 * memory)
    assert at_once in (16, 32)
    assert less <= 0.6 * memory
    assert training.fit(step, SHAPE, 20.0, 64, {"precision": "fp32"}, 1.0)[0] == 1


@pytest.mark.parametrize(("precision", "length"), [("fp32", 32), ("fp32", 64), ("bf16", 64)])
def test_what_a_forward_pass_keeps_is_what_torch_keeps(precision: str, length: int) -> None:
    """Without dropout, for which a CPU keeps attention matrices that a GPU's kernels do not."""
    shape = EncoderConfig(vocabulary=96, layers=4, hidden=64, heads=2, intermediate=256, max_length=64, dropout=0.0)
    encoder = towers.build_encoder(shape).train()
    own = {parameter.untyped_storage().data_ptr() for parameter in encoder.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    ids = torch.randint(5, 96, (8, length))
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"),
    ):
        encoder.embed(ids, torch.ones_like(ids, dtype=torch.bool))
    counted = sum(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in own)
    step = FinetuneStep.model_validate({**JUDGED, "negatives": "none"})
    assert training.activations(step, shape, 8, length, precision) == pytest.approx(counted, rel=0.25)


def test_the_oracle_is_the_encoder_itself() -> None:
    """The shape that the outline carries is what the encoder's own counter takes."""
    encoder = random_encoder()
    assert flops.forward(outlines.EncoderOutline(encoder.config).config, 2, 7) == flops.forward(encoder.config, 2, 7)
