"""What stages say that their jobs take, next to what trainings count, modules have and torch keeps."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from encore import objectives, stages
from encore.config.finetuning import FinetuneStep
from encore.finetuning.contrastive import Contrastive, LateInteraction, Pairwise
from encore.finetuning.cross_encoder import CrossEncoder
from encore.models import towers
from encore.models.config import EncoderConfig
from encore.objectives.parts.chunks import PackingFields, text_chunks
from encore.stages import finetune, pretrain
from encore.stages.build_index import FETCHED, looked_at
from encore.stages.needs import FITTING, CollectionSize, Example, Size, Texts, activations, training_memory
from encore.stages.tokenizer import words_in
from tests.support import small_objective, small_store

ROOT = Path(__file__).parents[3]
SHAPE = EncoderConfig(vocabulary=96, layers=2, hidden=16, heads=4, intermediate=24, max_length=64, dropout=0.0)
JUDGED = {"kind": "finetune", "collection": "made-up", "steps": 1, "batch": 4, "learning_rate": 1.0, "length": 20}
JUDGED |= {"query_length": 10, "negatives": "bm25", "per_query": 2, "token_dimension": 8}
NUMERICS = {"precision": "fp32", "micro_batch": None}


class Named:
    """The parts of an encoder that counters look at."""

    def __init__(self, shape: EncoderConfig) -> None:
        self.config, self.dimension = shape, shape.dimension


@pytest.mark.parametrize("name", objectives.names())
def test_pre_training_is_counted_before_there_is_a_text_as_the_training_counts_it(name: str) -> None:
    task, rng = small_objective.make(name, length=30, query_length=12), np.random.default_rng(0)
    batch = task.collate([task.example(i, rng) for i in range(min(len(task), task.fields.batch))])
    texts = next(array for key, array in batch.items() if "ids" in key and not key.startswith(("query_ids", "set_ids")))
    estimated = pretrain.example(task.fields, SHAPE, float(texts.shape[1]), 12.0).operations(SHAPE)
    counted = task.flops(Named(SHAPE), batch) / task.fields.batch
    assert counted / 2 < estimated < 2 * counted


def _filled(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int8)


TEXTS = {"query_ids": _filled(4, 10), "passages": _filled(4, 3)}
TEXTS |= {f"passage_ids_{number}": _filled(3, 20) for number in range(4)}
PAIRS = {"places": _filled(4, 3), **{f"pair_ids_{number}": _filled(3, 29) for number in range(4)}}


@pytest.mark.parametrize(
    ("kind", "fields", "batch"),
    [
        (Contrastive, {}, TEXTS),
        (Pairwise, {"loss": "pairwise"}, TEXTS),
        (LateInteraction, {"scorer": "late-interaction"}, TEXTS),
        (CrossEncoder, {"scorer": "cross-encoder"}, PAIRS),
    ],
)
def test_fine_tuning_is_counted_as_the_training_counts_it(kind: Any, fields: dict[str, Any], batch: Any) -> None:
    task = kind.__new__(kind)  # which can count without queries
    task.step = FinetuneStep.model_validate({**JUDGED, **fields})
    estimated = task.step.batch * finetune.example(task.step, SHAPE, 20.0, 10.0).operations(SHAPE)
    assert estimated == pytest.approx(task.flops(Named(SHAPE), batch), rel=0.1)


def test_steps_that_warm_the_heads_are_counted_too() -> None:
    step = small_objective.make("mlm").fields.model_copy(update={"steps": 6, "epochs": None})
    size = Size(CollectionSize(Texts(100, 50.0)), SHAPE)
    spent = []
    for more in (0, 3):
        spec = {"step": step.model_copy(update={"head_warmup": more}).model_dump(), "seed": 0, "numerics": NUMERICS}
        stage: Any = stages.load("pretrain")
        spent.append(stage(stage.spec_of(spec, (), "here"), None).needs(size).operations)
    assert spent[1] == 1.5 * spent[0]


def test_texts_of_random_length_are_packed_as_often_as_is_computed() -> None:
    lengths = np.random.default_rng(0).exponential(300.0, 100_000)
    packed = Texts(len(lengths), 300.0).packed(202)
    assert packed.count == pytest.approx(np.ceil(lengths / 200).sum(), rel=0.01)
    assert packed.tokens == pytest.approx(lengths.sum(), rel=0.01)
    long = lengths[lengths >= 50] - 50
    kept = Texts(len(lengths), 300.0).of_at_least(50)
    assert (kept.count, kept.mean) == (pytest.approx(len(long), rel=0.01), pytest.approx(long.mean() + 50, rel=0.01))


@pytest.mark.parametrize(
    ("packing", "short", "filled"),
    [("section", 0.0, FITTING), ("article", 0.0, FITTING), ("overfull", 0.0, 1.15), ("overfull", 0.4, 1.15)],
)
def test_chunks_are_about_as_many_as_packing_gives(packing: str, short: float, filled: float) -> None:
    store = small_store.random_store()
    chunks, usable = text_chunks(store, 30, PackingFields(packing=packing, short_texts=short))
    count = len(store.sections if packing == "section" else store.articles) - 1
    estimated = Texts(count, store.sentences.lengths.sum() / count).packed(30, filled, short)
    assert estimated.count == pytest.approx(len(usable), rel=0.5)
    assert estimated.tokens == pytest.approx(chunks.lengths.sum(), rel=0.25)  # a sentence here is half a text


def test_a_batch_is_halved_until_it_fits() -> None:
    step, example = FinetuneStep.model_validate({**JUDGED, "batch": 64}), Example(3.5, 20.0)
    whole, notes = training_memory(step, example, Size(shape=SHAPE), NUMERICS)
    assert notes == ()
    less, notes = training_memory(step, example, Size(shape=SHAPE, gpu_memory=0.6 * whole), NUMERICS)
    assert less <= 0.6 * whole
    assert notes in (("16 of 64 examples at once",), ("32 of 64 examples at once",))
    assert training_memory(step, example, Size(shape=SHAPE, gpu_memory=1.0), NUMERICS)[1] == (
        "1 of 64 examples at once",
    )


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
    estimated = 8 * activations(shape, Example(1 + 10 / length, length), precision)
    assert counted / 2 < estimated < 2 * counted


def test_a_text_has_as_many_words_as_were_counted() -> None:
    """The terms of Anserini's index of MS MARCO's passages, as Pyserini lists it, of which some were stemmed alike."""
    assert words_in(352_316_036) == pytest.approx(2_660_824, rel=0.05)


def test_a_query_looks_at_a_part_of_an_approximate_index() -> None:
    """In an HNSW at the neighbours of each candidate, however many vectors there are; in 16 bits at all of them."""
    hnsw = {"kind": "hnsw", "m": 32, "ef_search": 256}
    assert looked_at(hnsw, 1e6, 64, 10) == looked_at(hnsw, 1e9, 64, 10) == 256 * 64 * (64 + FETCHED)
    assert looked_at(hnsw, 1e6, 64, 1000) == 1000 * 64 * (64 + FETCHED)
    assert looked_at(hnsw, 100, 64, 10) == 100 * (64 + FETCHED)
    assert looked_at({"kind": "ivfpq", "nlist": 10, "nprobe": 2, "m": 8}, 1000, 64, 10) == 10 * 64 + 200 * 8
    assert looked_at({"kind": "fp16"}, 1000, 64, 10) == 1000 * 64


def test_examples_are_made_at_least_as_fast_as_is_assumed() -> None:
    measured = [
        row["examples_per_second"]
        for part in json.loads((ROOT / "benchmarks/results/examples-cpu-2core.json").read_text())["parts"]
        for row in part["rows"]
        if "Transformers" not in row["way"]
    ]
    assert len(measured) == 28
    assert min(measured) > pretrain.EXAMPLES
