"""The two-tower objectives: which pairs they make, and their contrast."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from encore.models.encoder import Encoder
from encore.objectives.parts import pairs
from encore.training.randomness import generator
from tests.support import oracles, small_store
from tests.support.small_decoding import assert_gradient
from tests.support.small_objective import STEP, batch_of, encoder, heads_of, make
from tests.support.whole_loss import whole_loss


def articles() -> Any:
    """Three articles; every sentence has its own pieces, so that a text tells where it is from."""
    sentence = iter(range(20, 70))
    texts = [[[[next(sentence)] * 4 for _ in range(3)] for _ in range(3)] for _ in range(3)]
    return small_store.store(texts, links=[(4, 0), (7, 1), (8, 8)], titles=[[10, 11], [12], []])


def sections_of(pieces: np.ndarray) -> set[int]:
    return {(int(piece) - 20) // 3 for piece in pieces if piece >= 20}


def test_ict_removes_the_query_and_keeps_the_order_of_the_rest() -> None:
    objective = make("ict", articles(), titles=False)
    assert len(objective) == 9
    drawn = set()
    for seed in range(30):
        pair = objective.example(4, generator(seed))
        drawn.add(int(pair.query[0]))
        assert set(pair.query) & set(pair.document) == set()
        assert sections_of(pair.query) == sections_of(pair.document) == {4}
        assert np.all(np.diff(pair.document.astype(int)) >= 0)
        assert len(pair.document) == 8
    assert len(drawn) == 3


def test_ict_keeps_the_sentence_in_the_share_that_it_says() -> None:
    objective = make("ict", articles(), keep_sentence=0.3)
    kept = [int(pair.query[0]) in pair.document for s in range(500) if (pair := objective.example(0, generator(s)))]
    assert np.mean(kept) == pytest.approx(0.3, abs=0.06)


def test_documents_read_title_sep_passage_where_there_is_a_title() -> None:
    objective = make("ict", articles())
    assert objective.example(0, generator(0)).document[:3].tolist() == [10, 11, 3]
    assert objective.example(3, generator(0)).document[:2].tolist() == [12, 3]
    assert objective.example(6, generator(0)).document[0] >= 20


def test_titles_never_push_a_passage_over_the_length() -> None:
    store = small_store.store([[[[20] * 13, [21] * 13, [22] * 13, [23] * 13]] * 2], titles=[[9] * 30])
    objective = make("bfs", store)
    for index in range(len(objective)):
        pair = objective.example(index, generator(0))
        assert len(pair.document) <= STEP["length"] - 2
        assert pair.document[:12].tolist() == [9] * 11 + [3]  # a quarter of the length


def test_bfs_pairs_the_first_section_with_chunks_of_the_others() -> None:
    objective = make("bfs", articles(), titles=False)
    assert len(objective) == 6
    for index, section in enumerate([1, 2, 4, 5, 7, 8]):
        pair = objective.example(index, generator(index))
        assert sections_of(pair.query) == {section // 3 * 3}
        assert sections_of(pair.document) == {section}


def test_wlp_pairs_a_sentence_of_what_is_linked_to_with_the_text_that_links() -> None:
    objective = make("wlp", articles(), titles=False)
    assert len(objective) == 2  # the link of a section to itself is none
    for index, (linking, linked) in enumerate([(4, 0), (7, 1)]):
        pair = objective.example(index, generator(index))
        assert sections_of(pair.query) == {linked}
        assert sections_of(pair.document) == {linking}


def test_the_mixture_draws_tasks_uniformly_whatever_their_sizes() -> None:
    objective = make("ict_bfs_wlp", articles(), titles=False)
    counts = {"ict": 0, "bfs": 0, "wlp": 0}
    for seed in range(1500):
        pair = objective.example(seed % len(objective), generator(seed))
        (query,), (document,) = sections_of(pair.query), sections_of(pair.document)
        counts["ict" if query == document else "bfs" if query // 3 == document // 3 else "wlp"] += 1
    assert np.array(list(counts.values())) / 1500 == pytest.approx(np.full(3, 1 / 3), abs=0.04)


@pytest.mark.parametrize("name", ["ict", "bfs", "wlp", "ict_bfs_wlp"])
def test_sizes_are_known_without_reading_a_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process requests those of the whole batch."""
    objective = make(name, **({"keep_sentence": 0.5} if name.startswith("ict") else {}))
    indices = np.arange(len(objective))
    for epoch in range(3):
        chance = partial(generator, epoch)
        expected = [len(objective.example(index, chance(index)).document) for index in indices.tolist()]
        with monkeypatch.context() as patch:
            patch.setattr(type(objective.store.sentences), "__getitem__", _unread)
            assert objective.sizes(indices, chance).tolist() == expected
    assert len(set(expected)) > 1


def _unread(*_: Any) -> None:
    raise AssertionError("a text was read")


def test_queries_come_in_parts_from_short_to_long_and_stay_with_their_documents() -> None:
    objective = make("ict", titles=False)
    examples = [objective.example(index, generator(0, index)) for index in range(10)]
    arrays = objective.collate(examples)
    parts = [arrays[f"query_ids_{i}"] for i in range(4)]
    assert [len(part) for part in parts] == [3, 3, 2, 2]
    widths = [part.shape[1] for part in parts]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]
    queries = [row[row > 4].tolist() for part in parts for row in part]
    documents = [row[row > 4].tolist() for row in arrays["document_ids"]]
    expected = {(tuple(pair.query[:22].tolist()), tuple(pair.document.tolist())) for pair in examples}
    assert {(tuple(query), tuple(document)) for query, document in zip(queries, documents, strict=True)} == expected


@torch.no_grad()
def embedded(model: Encoder, batch: dict[str, torch.Tensor]) -> tuple[np.ndarray, np.ndarray]:
    """Queries, whose parts follow each other, and documents."""
    numbers = range(sum(name.startswith("query_ids") for name in batch))
    queries = torch.cat([model.embed(batch[f"query_ids_{i}"], batch[f"query_mask_{i}"]) for i in numbers])
    return queries.numpy(), model.embed(batch["document_ids"], batch["document_mask"]).numpy()


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_the_contrast_and_its_gradient_are_info_nce_of_the_embeddings(similarity: str) -> None:
    """Copies of the positive are no negatives."""
    objective = make("bfs", temperature=0.5)
    model = encoder(projection_dim=16, similarity=similarity).double()
    pair = objective.example(0, generator(0))
    arrays = objective.collate([pair, pair, *(objective.example(index, generator(0)) for index in (5, 6))])
    same = arrays["kind"][:, None] == arrays["kind"]
    assert same.sum() == 6  # each with itself, and the copies with each other
    copies = same & ~np.eye(4, dtype=bool)
    batch = {name: torch.from_numpy(array) for name, array in arrays.items()}

    def expected(ignored: np.ndarray = copies) -> float:
        return oracles.info_nce(*embedded(model, batch), np.arange(4), 0.5, ignored)

    loss = whole_loss(objective, model, nn.ModuleDict(), batch)["loss"]
    assert loss.item() == pytest.approx(expected(), rel=1e-9)
    assert loss.item() < expected(np.zeros((4, 4), dtype=bool))
    assert_gradient(loss, model, expected, directions=2)


# ICT + MLM, segments, and what the tasks share


def test_mlm_masks_the_documents_but_never_the_sep_behind_a_title() -> None:
    objective = make("ict", articles(), mlm_weight=1.0, mask_ratio=0.5)
    for seed in range(40):
        pair = objective.example(0, generator(seed))
        assert pair.title == 3
        assert 2 not in pair.masked.positions
        assert pair.masked.ids[2] == 3
        assert np.array_equal(pair.document[pair.masked.positions], pair.masked.labels)
        untouched = np.setdiff1d(np.arange(len(pair.document)), pair.masked.positions)
        assert np.array_equal(pair.document[untouched], pair.masked.ids[untouched])
    assert any(position > 2 for position in pair.masked.positions)


def test_ict_with_mlm_is_the_contrast_and_the_loss_of_the_masked_pieces() -> None:
    objective, model = make("ict", mlm_weight=0.5, temperature=0.7), encoder().double()
    heads = heads_of(objective, model).double()
    arrays, batch = batch_of(objective)
    with torch.no_grad():
        hidden = model(batch["document_ids"], batch["document_mask"])
        logits = heads["mlm"](hidden.flatten(0, 1)[batch["masked"]], model.word_embeddings).numpy()
    contrast = oracles.info_nce(*embedded(model, batch), np.arange(8), 0.7)
    mlm = oracles.cross_entropy(logits, arrays["labels"])
    terms = whole_loss(objective, model, heads, batch)
    assert terms["contrast"].item() == pytest.approx(contrast, rel=1e-5)
    assert terms["mlm"].item() == pytest.approx(mlm, rel=1e-5)
    assert terms["loss"].item() == pytest.approx(contrast + 0.5 * mlm, rel=1e-5)
    assert objective.loss_denominators(arrays) == {"mlm": len(arrays["labels"])}
    seen = arrays["document_ids"].ravel()[arrays["masked"]]
    assert np.mean(seen == arrays["labels"]) < 0.3


def test_without_mlm_there_is_no_head_and_examples_are_drawn_as_before() -> None:
    plain, masked = make("ict"), make("ict", mlm_weight=1.0)
    assert list(plain.heads(encoder())) == []
    assert list(masked.heads(encoder())) == ["mlm"]
    one, other = (objective.example(5, generator(0)) for objective in (plain, masked))
    assert np.array_equal(one.query, other.query)
    assert np.array_equal(one.document, other.document)
    kinds = [objective.collate([objective.example(5, generator(0))])["kind"] for objective in (plain, masked)]
    assert kinds[0] == kinds[1]  # copies are known by what they are, not by how they are masked


@pytest.mark.parametrize("name", ["ict", "bfs", "wlp", "ict_bfs_wlp"])
def test_segments_tell_the_title_from_the_passage(name: str) -> None:
    objective, model = make(name, segments=True), encoder().double()  # in float32 two losses can round to one
    arrays, batch = batch_of(objective)
    for ids, segments, mask in zip(
        arrays["document_ids"], arrays["document_segments"], arrays["document_mask"], strict=True
    ):
        title_end = int(np.flatnonzero(ids == 3)[0])
        assert segments[: title_end + 1].sum() == 0
        assert segments[title_end + 1 : mask.sum()].all()
        assert not segments[~mask].any()
    terms = whole_loss(objective, model, nn.ModuleDict(), batch)
    without = whole_loss(
        objective, model, nn.ModuleDict(), {k: v for k, v in batch.items() if k != "document_segments"}
    )
    assert terms["loss"].item() != without["loss"].item()


def test_a_passage_without_a_title_is_one_segment() -> None:
    objective = make("ict", articles(), segments=True)
    arrays = objective.collate([objective.example(index, generator(0)) for index in (0, 8)])
    assert sorted(arrays["document_segments"].any(axis=1).tolist()) == [False, True]


def test_the_tasks_of_the_mixture_share_one_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = pairs.Chunks
    monkeypatch.setattr(pairs, "Chunks", lambda *arguments: calls.append(1) or original(*arguments))
    objective = make("ict_bfs_wlp")
    assert len(calls) == 1
    assert all(task.passages is objective.passages for task in objective.tasks)


def test_examples_of_the_mixture_have_pairs_of_their_own() -> None:
    """Else what is held out would be trained on under another number."""
    objective = make("ict_bfs_wlp")
    drawn: dict[tuple[int, int], set[int]] = {}
    for which, task in enumerate(objective.tasks):
        task.choose = lambda index, rng, which=which: (which, index)
    for index in range(len(objective)):
        for epoch in range(20):
            drawn.setdefault(objective.choose(index, generator(0, epoch, index)), set()).add(index)
    assert all(len(examples) == 1 for examples in drawn.values())
    smallest = min(map(len, objective.tasks))
    owners = [{next(iter(drawn[pair])) for pair in drawn if pair[0] == which} for which in range(3)]
    assert [len(one) for one in owners] == [smallest] * 3


def test_texts_without_links_are_in_no_pair_of_wlp_and_do_no_harm() -> None:
    objective = make("wlp", small_store.store([[[[20] * 5]], [[[21] * 5]], [[[22] * 5]], [[]]], links=[(1, 0), (3, 0)]))
    assert len(objective) == 1  # the empty section that links gives no document
    pair = objective.example(0, generator(0))
    assert (set(pair.query), set(pair.document)) == ({20}, {21})


def test_queries_and_documents_keep_to_their_lengths() -> None:
    store = small_store.store([[[[20] * 90, [21] * 90], [[22] * 90]]], links=[(1, 0)], titles=[[9]])
    for name in ("bfs", "wlp"):
        objective = make(name, store)
        arrays, _ = batch_of(objective, range(1))
        assert arrays["document_ids"].shape[1] == STEP["length"]
        assert arrays["query_ids_0"].shape[1] == STEP["query_length"]
