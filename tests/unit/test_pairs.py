"""The two-tower objectives: which pairs they make, and their contrast."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import small_store
import torch
from small_objective import STEP, batch_of, encoder, heads_of, make
from torch import nn

from encore.errors import EncoreError
from encore.modeling.encoder import Encoder
from encore.training.randomness import generator


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
        pair = objective.example(0, generator(seed))
        (query,), (document,) = sections_of(pair.query), sections_of(pair.document)
        counts["ict" if query == document else "bfs" if query // 3 == document // 3 else "wlp"] += 1
    assert np.array(list(counts.values())) / 1500 == pytest.approx(np.full(3, 1 / 3), abs=0.04)


@pytest.mark.parametrize(
    ("name", "texts", "message"),
    [
        ("ict", [[[[20] * 5]]], "ict needs texts of two or more sentences"),
        ("bfs", [[[[20] * 5, [21]]]], "bfs needs articles with a first section and others"),
        ("bfs", [[[], [[21] * 5]]], "bfs needs articles with a first section and others"),
        ("wlp", [[[[20] * 5], [[21] * 5]]], "wlp needs links"),
        ("ict_bfs_wlp", [[[[20] * 5, [22]], [[21] * 5, [23]]]], "wlp needs links"),
        ("ict", [], "ict needs texts"),
        ("bfs", [], "bfs needs articles"),
        ("wlp", [], "wlp needs links"),
    ],
)
def test_collections_without_the_needed_structure_are_refused(name: str, texts: Any, message: str) -> None:
    with pytest.raises(EncoreError, match=message):
        make(name, small_store.store(texts))


def embedded_queries(model: Encoder, batch: dict[str, torch.Tensor]) -> np.ndarray:
    numbers = range(sum(name.startswith("query_ids") for name in batch))
    return torch.cat([model.embed(batch[f"query_ids_{i}"], batch[f"query_mask_{i}"]) for i in numbers]).double().numpy()


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


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_the_two_tower_loss_is_info_nce_of_the_embeddings(similarity: str) -> None:
    objective, model = make("wlp", temperature=0.5), encoder(head=16, similarity=similarity)
    _, batch = batch_of(objective)
    terms = objective.loss(model, heads_of(objective, model), batch)
    with torch.no_grad():
        queries = embedded_queries(model, batch)
        documents = model.embed(batch["document_ids"], batch["document_mask"]).double().numpy()
    assert queries.shape == (8, 16)
    assert terms["loss"].item() == pytest.approx(oracles.info_nce(queries, documents, np.arange(8), 0.5), rel=1e-5)


def test_copies_of_the_positive_are_no_negatives() -> None:
    objective, model = make("bfs"), encoder()
    pair = objective.example(0, generator(0))
    arrays = objective.collate([pair, pair, objective.example(5, generator(0))])
    same = arrays["kind"][:, None] == arrays["kind"]
    assert same.sum() == 5  # each with itself, and the copies with each other
    batch = {name: torch.from_numpy(array) for name, array in arrays.items()}
    with torch.no_grad():
        queries = embedded_queries(model, batch)
        documents = model.embed(batch["document_ids"], batch["document_mask"]).double().numpy()
        loss = objective.loss(model, nn.ModuleDict(), batch)["loss"].item()
    others = same & ~np.eye(3, dtype=bool)
    assert loss == pytest.approx(oracles.info_nce(queries, documents, np.arange(3), 1.0, others), rel=1e-5)
    assert loss < oracles.info_nce(queries, documents, np.arange(3), 1.0)
