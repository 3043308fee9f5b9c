"""Objectives on masked texts: MLM and bag-of-words prediction."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from encore.models.encoder import Encoder
from encore.objectives.parts.chunks import Chunks, PackingFields, text_chunks
from encore.objectives.parts.masked_texts import bags
from encore.training.randomness import generator
from tests.support import oracles, small_store, transformer_oracles
from tests.support.small_decoding import assert_gradient, draw, numbers
from tests.support.small_objective import STEP, batch_of, encoder, heads_of, make
from tests.support.whole_loss import whole_loss


def test_chunks_pack_sentences_and_never_cross_a_section() -> None:
    store = small_store.store([[[[5] * 4, [6] * 4, [7] * 3], [[8] * 2]], [[[9] * 20, [10] * 5]], [[]]])
    chunks = Chunks(store.sentences, store.sections, np.full(4, 10))
    assert [chunks[i].tolist() for i in range(len(chunks))] == [[5] * 4 + [6] * 4, [7] * 3, [8] * 2, [9] * 10, [10] * 5]
    assert chunks.section.tolist() == [0, 0, 1, 2, 2]
    assert [list(chunks.of_section(section)) for section in range(4)] == [[0, 1], [2], [3, 4], []]
    assert chunks.sizes.tolist() == [2, 1, 1, 1, 1]
    assert chunks.lengths.tolist() == [8, 3, 2, 10, 5]


def small_articles() -> small_store.Store:
    return small_store.store([[[[5] * 4, [6] * 4, [7] * 3], [[8] * 2]], [[[9] * 20, [10] * 5]], [[]]])


def texts_of(packing: str, short: float = 0.0) -> list[list[int]]:
    chunks, usable = text_chunks(small_articles(), 12, PackingFields(packing=packing, short_texts=short))
    return [chunks[i].tolist() for i in usable]


def test_texts_are_packed_over_sections_unless_a_step_says_otherwise() -> None:
    """COSTA cuts documents; 12 tokens leave room for 10 pieces."""
    assert PackingFields().packing == "article"
    assert texts_of("article") == [[5] * 4 + [6] * 4, [7] * 3 + [8] * 2, [9] * 10, [10] * 5]
    assert texts_of("section") == [[5] * 4 + [6] * 4, [7] * 3, [8] * 2, [9] * 10, [10] * 5]


def released_packing(sizes: list[int], most: int, short: float, rng: random.Random) -> list[tuple[int, int]]:
    """``pad_one_article`` of bowdpr's prepare_pretrain_data.py, of sentences' sizes: bounds of its texts."""
    found: list[tuple[int, int]] = []
    start, length = 0, 0
    target = rng.randint(2, most) if rng.random() < short else most
    for place, size in enumerate(sizes):
        length += size
        if length > target:
            found.append((start, place + 1))
            start, length = place + 1, 0
            target = rng.randint(2, most) if rng.random() < short else most
    return found + ([(start, len(sizes))] if start < len(sizes) and length else [])


@pytest.mark.parametrize("short", [0.0, 0.15])
def test_overfull_texts_are_packed_as_the_released_code_packs_them(short: float) -> None:
    store = small_store.random_store()
    chunks, _ = text_chunks(store, 30, PackingFields(packing="overfull", short_texts=short))
    rng, expected = random.Random(0), []
    for first, last in itertools.pairwise(store.sections[store.articles].tolist()):
        own = released_packing(store.sentences.lengths[first:last].tolist(), 28, short, rng)
        expected += [(first + start, first + end) for start, end in own]
    assert chunks.bounds.tolist() == [list(pair) for pair in expected]
    assert chunks.lengths.max() == 28


def test_an_overfull_text_is_cut_at_a_random_place_each_time() -> None:
    chunks, _ = text_chunks(small_articles(), 12, PackingFields(packing="overfull"))
    whole = [5] * 4 + [6] * 4 + [7] * 3
    reads = [chunks.read(0, generator(seed, "test")).tolist() for seed in range(40)]
    assert {tuple(read) for read in reads} == {tuple(whole[:10]), tuple(whole[1:])}
    assert chunks.read(1, generator(0, "test")).tolist() == [8] * 2, "what fits is read whole"


def test_without_articles_texts_are_passages() -> None:
    objective = make("mlm", small_store.store([], passages=[[5] * 6, [6] * 60]))
    assert len(objective) == 2
    assert len(objective.example(1, generator(0)).ids) == STEP["length"] - 2


@pytest.mark.parametrize("name", ["mlm", "bow", "costa"])
def test_only_pieces_of_the_text_are_masked_and_labelled(name: str) -> None:
    objective = make(name)
    examples = [objective.example(index, generator(0, index)) for index in range(8)]
    arrays = objective.collate(examples)
    flat, mask = arrays["ids"].ravel(), arrays["mask"].ravel()
    original = flat.copy()
    original[arrays["masked"]] = arrays["labels"]
    rows = original.reshape(arrays["ids"].shape)
    for row, example in zip(rows, examples, strict=True):
        n = len(example.ids)
        assert row.tolist() == [2, *example.ids.tolist(), 3, *[0] * (len(row) - n - 2)]
    assert mask[arrays["masked"]].all()
    assert arrays["ids"].shape[1] == max(len(example.ids) for example in examples) + 2  # no more padding than needed


def length_of(example: Any) -> int:
    return len(example.ids)


@pytest.mark.parametrize("name", ["mlm", "bow", "costa"])
def test_padding_changes_no_loss(name: str) -> None:
    objective, model = make(name), encoder()
    heads = heads_of(objective, model)
    short, *_, long = sorted((objective.example(index, generator(0, index)) for index in range(8)), key=length_of)
    assert length_of(long) > length_of(short)
    alone = [objective.collate([one]) for one in (short, long)]
    counts = [len(arrays["labels"]) for arrays in alone]
    losses = [mlm_loss(objective, model, heads, arrays) for arrays in (*alone, objective.collate([short, long]))]
    assert losses[2] == pytest.approx(np.average(losses[:2], weights=counts), rel=1e-4)


def mlm_loss(objective: Any, model: Encoder, heads: nn.ModuleDict, arrays: dict[str, np.ndarray]) -> float:
    batch = {name: torch.from_numpy(array) for name, array in arrays.items()}
    terms = whole_loss(objective, model, heads, batch)
    return terms.get("mlm", terms["loss"]).item()


def test_whole_word_masking_masks_whole_words() -> None:
    objective, parts = make("mlm", whole_word=True, mask_ratio=0.3), 0
    for index in range(len(objective)):
        text = objective.example(index, generator(0, index))
        starts = ~objective.store.continues[text.ids]
        starts[0] = True
        word = np.cumsum(starts)
        chosen = set(text.masked.positions.tolist())
        assert chosen == {i for i in range(len(word)) if word[i] in {word[j] for j in chosen}}
        parts += len(chosen) - len({word[i] for i in chosen})
    assert parts > 0, "words of several pieces"


@pytest.mark.parametrize("name", ["bow", "cpdae"])
def test_the_bag_holds_no_special_tokens_and_the_text_before_masking(name: str) -> None:
    objective = make(name, small_store.store([[[[20, 20, 1, 21]]]]), mask_ratio=1.0)
    arrays = objective.collate([objective.example(0, generator(0))])
    assert arrays["bag"].tolist() == [[20, 21]]


def test_the_bow_weight_is_constant_or_falls_to_a_tenth() -> None:
    assert [make("bow").loss_weights(progress)["bow"] for progress in (0, 0.5, 1)] == [1, 1, 1]
    falling = make("bow", weight_schedule="cosine_01", bow_weight=2.0)
    assert [falling.loss_weights(progress)["bow"] for progress in (0, 0.5, 1)] == pytest.approx([2, 1.1, 0.2])


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("variant", ["code", "paper"])
def test_bow_loss_and_gradient_are_those_of_the_formula(variant: str, pooling: str) -> None:
    objective = make("bow", variant=variant, bow_weight=0.7)
    model = encoder(pooling=pooling, layers=1, hidden=8, heads=2, intermediate=12)
    heads = objective.heads(model)
    draw(model, 1)
    draw(heads, 2)
    arrays, batch = batch_of(objective, range(3))

    @torch.no_grad()
    def expected() -> float:
        """Of the encoder's states; the targets are the pieces of the texts before masking."""
        hidden, words = model(batch["ids"], batch["mask"]).numpy(), model.word_embeddings.numpy()
        means = [row[real].mean(axis=0) for row, real in zip(hidden, arrays["mask"], strict=True)]
        h = hidden[:, 0] if pooling == "cls" else np.stack(means)

        def head(states: np.ndarray) -> np.ndarray:
            return transformer_oracles.mlm_logits(states, words, numbers(heads["mlm"]), model.config.epsilon)

        logits = head(h) if variant == "code" else h @ words.T
        targets = np.zeros(logits.shape)
        for row in range(3):
            pieces = {*objective.example(row, generator(0, "example", 0, row)).ids.tolist()} - {*range(5)}
            targets[row, sorted(pieces)] = 1 / len(pieces)
        mlm = oracles.cross_entropy(head(hidden.reshape(-1, 8)[arrays["masked"]]), arrays["labels"])
        return mlm + 0.7 * oracles.soft_cross_entropy(logits, targets)

    loss = whole_loss(objective, model, heads, batch)["loss"]
    assert loss.item() == pytest.approx(expected(), rel=1e-8)
    assert_gradient(loss, nn.ModuleDict({"encoder": model, "heads": heads}), expected, directions=2)


def test_bags_hold_the_pieces_of_vocabularies_above_65536() -> None:
    texts = [[80000, 70000, 2], [], [4464, 70000], [80000], [2**32 - 1, 80000]]
    found = bags([np.array(text, dtype=np.uint32) for text in texts], [1, 2])
    assert found.tolist() == [[70000, 80000], [-1, -1], [4464, 70000], [80000, -1], [80000, 2**32 - 1]]
    assert found.dtype == np.int64
