"""What is estimated of a training before it starts is what the training counts: operations, parameters, chunks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from encore import objectives
from encore.commands.preflight import shapes, sizes, trainings
from encore.commands.preflight.sizes import CollectionSize, TextLengths
from encore.config.entries import Backbone
from encore.config.finetuning import FinetuneStep
from encore.finetuning.contrastive import Contrastive, LateInteraction, Pairwise
from encore.finetuning.cross_encoder import CrossEncoder
from encore.models import flops, towers
from encore.models.config import EncoderConfig
from encore.objectives.parts.chunks import PackingFields, text_chunks
from tests.support import small_objective, small_store

SHAPE = EncoderConfig(vocabulary=96, layers=2, hidden=16, heads=4, intermediate=24, max_length=64, dropout=0.0)
JUDGED = {"kind": "finetune", "collection": "made-up", "steps": 1, "batch": 4, "learning_rate": 1.0, "length": 20}
JUDGED |= {"query_length": 10, "negatives": "bm25", "per_query": 2, "token_dimension": 8}


MASKS = ("mask", "document_mask")  # of texts that may be of unlike length, where they are contrasted


class Named:
    """The parts of an encoder that counters look at."""

    def __init__(self, shape: EncoderConfig) -> None:
        self.config, self.dimension = shape, shape.dimension


def batch_of(task: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    some = range(min(len(task), task.fields.batch))
    found: dict[str, np.ndarray] = task.collate([task.example(i, rng) for i in some])
    return found


@pytest.mark.parametrize("name", objectives.names())
def test_a_step_is_counted_before_there_is_a_text_as_the_training_counts_it(name: str) -> None:
    """Of texts of one length; chance moves masks by a few pieces, so the two differ by some per cent."""
    task = small_objective.make(name, length=30, query_length=12)
    batch = batch_of(task)
    rows = next(array for key, array in batch.items() if "ids" in key and not key.startswith(("query_ids", "set_ids")))
    asked = [array.shape[1] for key, array in batch.items() if key.startswith(("query_ids", "set_ids"))]
    texts = TextLengths(100, np.full(4, float(rows.shape[1] - 2)))
    sentence = float(np.mean(asked)) - 2 if asked else 1.0
    estimated, counted = trainings.pretraining_flops(task.fields, SHAPE, texts, sentence)
    assert counted
    full = {key: np.ones_like(array) if key in MASKS else array for key, array in batch.items()}
    assert estimated == pytest.approx(task.flops(Named(SHAPE), full), rel=0.15)


@pytest.mark.parametrize("name", objectives.names())
def test_a_count_sees_nothing_but_shapes_and_lengths(name: str) -> None:
    """Of empty arrays of a real batch's shapes, an objective without texts counts the same."""
    task = small_objective.make(name, length=30, query_length=12)
    bare = type(task).__new__(type(task))
    bare.fields, batch = task.fields, batch_of(task)
    kept = MASKS if task.has_contrast else ()
    empty = {key: array if key in kept else np.broadcast_to(np.int8(0), array.shape) for key, array in batch.items()}
    assert bare.flops(Named(SHAPE), empty) == task.flops(Named(SHAPE), batch)


def test_an_objective_that_says_nothing_of_its_batches_is_counted_as_its_encoder(monkeypatch: Any) -> None:
    """A new one needs nothing for a forecast, which says what it took."""
    step = small_objective.make("mlm").fields

    class Halves(objectives.load("mlm")):  # type: ignore[misc]
        def flops(self, encoder: Any, batch: dict[str, np.ndarray]) -> float:
            return float(super().flops(encoder, batch) + batch["halves"].size)

    monkeypatch.setattr(objectives, "load", lambda name: Halves)
    texts = TextLengths(100, np.full(4, 18.0))
    estimated, counted = trainings.pretraining_flops(step, SHAPE, texts, 8.0)
    assert not counted
    assert estimated == flops.TRAINING * flops.forward(SHAPE, step.batch, 20)


def test_steps_that_warm_the_heads_are_counted_too() -> None:
    step = small_objective.make("mlm").fields.model_copy(update={"steps": 6, "epochs": None})
    size = CollectionSize(TextLengths(100, np.full(4, 50.0)), None, {}, np.full(4, 30.0))
    spent = [
        trainings.amounts(step.model_copy(update={"head_warmup": more}), SHAPE, size, 1.0)["flops"] for more in (0, 3)
    ]
    assert spent[1] == 1.5 * spent[0]


def _task(kind: Any, **fields: Any) -> Any:
    """A fine-tuning task that can count, without queries."""
    task = kind.__new__(kind)
    task.step = FinetuneStep.model_validate({**JUDGED, **fields})
    return task


def estimated(step: FinetuneStep) -> float:
    """Operations that are forecast for a step over long texts, all of which are cut."""
    size = CollectionSize(TextLengths(100, np.full(4, 50.0)), None, {"train": 10.0}, np.full(4, 30.0), "made-up")
    return trainings.amounts(step, SHAPE, size, 1.0)["flops"]


def _filled(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int8)


@pytest.mark.parametrize(("kind", "fields"), [(Contrastive, {}), (Pairwise, {"loss": "pairwise"})])
def test_vector_tasks_count_the_same(kind: Any, fields: dict[str, Any]) -> None:
    task = _task(kind, **fields)
    passages = {f"passage_ids_{number}": _filled(3, 20) for number in range(4)}
    batch = {"query_ids": _filled(4, 10), "passages": _filled(4, 3), **passages}
    assert estimated(task.step) == pytest.approx(task.flops(Named(SHAPE), batch), rel=0.1)


def test_late_interaction_counts_the_same() -> None:
    task = _task(LateInteraction, scorer="late-interaction")
    passages = {f"passage_ids_{number}": _filled(3, 20) for number in range(4)}
    batch = {"query_ids": _filled(4, 10), "passages": _filled(4, 3), **passages}
    assert estimated(task.step) == pytest.approx(task.flops(Named(SHAPE), batch), rel=0.1)


def test_a_cross_encoder_reads_query_and_passage_as_one() -> None:
    task = _task(CrossEncoder, scorer="cross-encoder")
    batch = {"places": _filled(4, 3), **{f"pair_ids_{number}": _filled(3, 29) for number in range(4)}}
    assert estimated(task.step) == pytest.approx(task.flops(Named(SHAPE), batch), rel=0.1)


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


@pytest.mark.parametrize(
    ("packing", "short", "filled"),
    [
        ("section", 0.0, sizes.FITTING),
        ("article", 0.0, sizes.FITTING),
        ("overfull", 0.0, 1.15),
        ("overfull", 0.4, 1.15),
    ],
)
def test_chunks_are_about_as_many_as_packing_gives(packing: str, short: float, filled: float) -> None:
    store = small_store.random_store()
    chunks, usable = text_chunks(store, 30, PackingFields(packing=packing, short_texts=short))
    bounds = store.sections if packing == "section" else store.sections[store.articles]
    sources = np.diff(np.concatenate([[0], np.cumsum(store.sentences.lengths)])[bounds])
    estimated = sizes.packed(sizes.sampled(sources), 30, filled, short)
    assert estimated.count == pytest.approx(len(usable), rel=0.45)
    assert estimated.tokens == pytest.approx(chunks.lengths.sum(), rel=0.25)  # a sentence here is half a text


def test_assumed_lengths_have_the_mean_that_was_asked_for() -> None:
    texts = sizes.assumed(1000, 80.0, "passages")
    assert texts.mean == pytest.approx(80.0, rel=0.01)
    assert texts.tokens == pytest.approx(80_000, rel=0.01)
    assert texts.read(64).max() == 64


def test_a_batch_is_halved_until_it_fits() -> None:
    step = FinetuneStep.model_validate({**JUDGED, "batch": 64})
    whole, memory = trainings.fit(step, SHAPE, 64, "fp32", float("inf"))
    assert whole == 64
    at_once, less = trainings.fit(step, SHAPE, 64, "fp32", 0.6 * memory)
    assert at_once in (16, 32)
    assert less <= 0.6 * memory
    assert trainings.fit(step, SHAPE, 64, "fp32", 1.0)[0] == 1


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
        encoder.query_tower.embed(ids[:, :10], torch.ones_like(ids[:, :10], dtype=torch.bool))
    counted = sum(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in own)
    step = FinetuneStep.model_validate({**JUDGED, "negatives": "none", "length": length})
    assert trainings.activations(step, shape, 8, precision) == pytest.approx(counted, rel=0.25)


def test_decoders_and_predicted_pieces_take_memory() -> None:
    def memory(objective: str, **fields: Any) -> float:
        return trainings.activations(small_objective.make(objective, length=30, **fields).fields, SHAPE, 8, "fp32")

    plain = memory("mlm")
    assert memory("mlm", mask_ratio=0.6) > plain
    assert min(memory("enhanced"), memory("seed")) > 1.3 * plain
    assert memory("cpdae") == pytest.approx(2 * plain, rel=0.1)  # two views of each text


def test_predicted_pieces_take_the_memory_of_states_not_of_logits() -> None:
    """But for a block of logits, which is full with BERT's vocabulary and so many texts."""
    shape = replace(SHAPE, vocabulary=30_522)
    step = small_objective.make("mlm", length=30, batch=4096).fields

    def of_masks(examples: int) -> float:
        half, all_masked = (step.model_copy(update={"mask_ratio": ratio}) for ratio in (0.5, 1.0))
        return trainings.activations(all_masked, shape, examples, "fp32") - trainings.activations(
            half, shape, examples, "fp32"
        )

    assert of_masks(4096) == pytest.approx(4096 * 14 * 4 * 4 * shape.hidden)  # 14 pieces more of each text
    assert of_masks(8) > 8 * 14 * 4 * shape.vocabulary  # less than a block: each has logits of its own


@pytest.mark.parametrize("name", ["mlm", "simcse", "costa", "prop"])
def test_texts_that_an_objective_leaves_out_are_not_counted(name: str) -> None:
    kind, lengths = objectives.load(name), np.array([3.0, 50.0, 400.0])
    fields = small_objective.make(name).fields
    assert kind.learned_share(fields.model_copy(update={"min_tokens": 10}), lengths).tolist()[0] == 0
    assert kind.learned_share(fields.model_copy(update={"min_tokens": 1}), lengths).tolist()[2] == 1


def test_a_share_of_short_texts_gives_no_word_sets() -> None:
    fields = small_objective.make("prop").fields.model_copy(update={"skip_below": 100, "skip_share": 0.8})
    shares = objectives.load("prop").learned_share(fields, np.array([50.0, 400.0]))
    assert shares == pytest.approx([0.2, 1.0])
