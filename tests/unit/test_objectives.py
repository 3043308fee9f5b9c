"""Each objective: which examples it makes, which losses, and what these may and may not depend on."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import oracles
import pytest
import small_store
import torch
from torch import nn

from encore import objectives
from encore.errors import EncoreError
from encore.modeling import operations
from encore.modeling.encoder import Encoder
from encore.modeling.heads import initialise
from encore.modeling.shape import Shape
from encore.objectives.chunks import Chunks
from encore.objectives.costa import groups, span_means
from encore.objectives.stop_words import content_pieces
from encore.training.randomness import generator

ALL = ["bfs", "bow", "costa", "ict", "ict_bfs_wlp", "mlm", "wlp"]
TWO_TOWER = ["ict", "bfs", "wlp", "ict_bfs_wlp"]
STEP = {
    "kind": "pretrain",
    "collection": "made-up",
    "steps": 10,
    "batch": 8,
    "learning_rate": 1e-3,
    "length": 48,
    "query_length": 24,
    "source": "a test",
}


def make(name: str, store: Any = None, **fields: Any) -> Any:
    """An objective on a store, texts of any length allowed."""
    if name in ("mlm", "bow", "costa"):
        fields = {"shortest": 1, **fields}
    step = objectives.fields({**STEP, "objective": name, **fields})
    return objectives.load(name)(step, store or small_store.random_store())


def encoder(**fields: Any) -> Encoder:
    torch.manual_seed(0)
    shape = {"layers": 2, "hidden": 32, "heads": 2, "intermediate": 64, "max_length": 64, "dropout": 0.0, **fields}
    return initialise(Encoder(Shape(vocabulary=len(small_store.PIECES), **shape))).eval()


def batch_of(objective: Any, indices: range = range(8), epoch: int = 0) -> tuple[dict, dict[str, torch.Tensor]]:
    arrays = objective.collate([objective.example(i, generator(0, "example", epoch, i)) for i in indices])
    return arrays, {name: torch.from_numpy(array) for name, array in arrays.items()} | {"progress": torch.tensor(0.0)}


def heads_of(objective: Any, model: Encoder) -> nn.ModuleDict:
    torch.manual_seed(1)
    return initialise(objective.heads(model)).eval()


# The registry


def test_every_objective_is_found_by_its_file() -> None:
    assert objectives.names() == ALL


def test_an_unknown_objective_names_the_nearest() -> None:
    with pytest.raises(EncoreError, match="'itc' is unknown; did you mean ict"):
        objectives.load("itc")


@pytest.mark.parametrize(
    ("change", "message"),
    [({"temprature": 1.0}, "temprature"), ({"temperature": -1}, "temperature"), ({"towers": "free"}, "towers")],
)
def test_wrong_fields_are_refused_with_their_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(EncoreError, match=message):
        objectives.fields({**STEP, "objective": "ict", **change})


def test_importing_the_objectives_does_not_import_torch() -> None:
    code = "import sys; from encore import objectives; objectives.names(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mlm", {"mask_ratio": 0.15, "whole_word": False}),
        ("ict", {"keep_sentence": 0.0, "temperature": 1.0, "titles": True, "towers": "tied"}),
        ("bow", {"mask_ratio": 0.3, "whole_word": True, "reading": "code", "weight_schedule": "constant"}),
        ("costa", {"spans": 5, "temperature": 0.1, "gwc_weight": 0.1, "projector": "nonlinear", "shortest": 64}),
    ],
)
def test_defaults_are_the_papers(name: str, expected: dict[str, Any]) -> None:
    fields = objectives.fields({**STEP, "objective": name}).model_dump()
    assert {key: fields[key] for key in expected} == expected


# Texts


def test_chunks_pack_sentences_and_never_cross_a_section() -> None:
    store = small_store.store([[[[5] * 4, [6] * 4, [7] * 3], [[8] * 2]], [[[9] * 20, [10] * 5]], [[]]])
    chunks = Chunks(store.sentences, store.sections, np.full(4, 10))
    assert [chunks[i].tolist() for i in range(len(chunks))] == [
        [5] * 4 + [6] * 4,
        [7] * 3,
        [8] * 2,
        [9] * 10,
        [10] * 5,
    ]
    assert chunks.section.tolist() == [0, 0, 1, 2, 2]
    assert [list(chunks.of_section(section)) for section in range(4)] == [[0, 1], [2], [3, 4], []]
    assert chunks.sizes.tolist() == [2, 1, 1, 1, 1]
    assert chunks.lengths.tolist() == [8, 3, 2, 10, 5]


def test_without_articles_texts_are_passages() -> None:
    objective = make("mlm", small_store.store([], passages=[[5] * 6, [6] * 60]))
    assert len(objective) == 2
    assert len(objective.example(1, generator(0)).ids) == STEP["length"] - 2


def test_a_collection_without_long_enough_texts_is_refused() -> None:
    with pytest.raises(EncoreError, match="no text of 64 or more pieces; lower `shortest`"):
        make("costa", small_store.store([[[[5] * 20]]]), shortest=64)


# Pairs


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


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_the_two_tower_loss_is_info_nce_of_the_embeddings(similarity: str) -> None:
    objective, model = make("wlp", temperature=0.5), encoder(head=16, similarity=similarity)
    _, batch = batch_of(objective)
    terms = objective.loss(model, heads_of(objective, model), batch)
    with torch.no_grad():
        queries = model.embed(batch["query_ids"], batch["query_mask"]).double().numpy()
        documents = model.embed(batch["document_ids"], batch["document_mask"]).double().numpy()
    assert queries.shape == (8, 16)
    assert terms["loss"].item() == pytest.approx(oracles.info_nce(queries, documents, np.arange(8), 0.5), rel=1e-5)


def test_copies_of_the_positive_are_no_negatives() -> None:
    objective, model = make("bfs"), encoder()
    pair = objective.example(0, generator(0))
    arrays = objective.collate([pair, pair, objective.example(5, generator(0))])
    assert arrays["same"].tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    batch = {name: torch.from_numpy(array) for name, array in arrays.items()}
    with torch.no_grad():
        queries = model.embed(batch["query_ids"], batch["query_mask"]).double().numpy()
        documents = model.embed(batch["document_ids"], batch["document_mask"]).double().numpy()
        loss = objective.loss(model, nn.ModuleDict(), batch)["loss"].item()
    others = arrays["same"] & ~np.eye(3, dtype=bool)
    assert loss == pytest.approx(oracles.info_nce(queries, documents, np.arange(3), 1.0, others), rel=1e-5)
    assert loss < oracles.info_nce(queries, documents, np.arange(3), 1.0)


# Masked texts


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


def test_mlm_loss_is_the_cross_entropy_at_masked_positions() -> None:
    objective, model = make("mlm"), encoder()
    heads = heads_of(objective, model)
    _, batch = batch_of(objective)
    with torch.no_grad():
        logits = heads["mlm"](model(batch["ids"], batch["mask"]).flatten(0, 1), model.word_embeddings).double().numpy()
    expected = oracles.masked_lm(logits[batch["masked"]], batch["labels"].numpy())
    assert objective.loss(model, heads, batch)["loss"].item() == pytest.approx(expected, rel=1e-5)


def test_padding_changes_no_loss() -> None:
    for name in ALL:
        objective, model = make(name), encoder()
        heads = heads_of(objective, model)
        example = min((objective.example(i, generator(0, i)) for i in range(8)), key=objective.size)
        longer = max((objective.example(i, generator(0, i)) for i in range(8)), key=objective.size)
        assert objective.size(longer) > objective.size(example)
        alone = [objective.collate([one]) for one in (example, longer)]
        both = objective.collate([example, longer])
        losses = [_mlm(objective, model, heads, arrays) for arrays in (*alone, both)]
        if name in ("mlm", "bow", "costa"):
            counts = [len(arrays["labels"]) for arrays in alone]
            expected = (losses[0] * counts[0] + losses[1] * counts[1]) / sum(counts)
            assert losses[2] == pytest.approx(expected, rel=1e-4)


def _mlm(objective: Any, model: Encoder, heads: nn.ModuleDict, arrays: dict[str, np.ndarray]) -> float:
    batch = {name: torch.from_numpy(array) for name, array in arrays.items()} | {"progress": torch.tensor(0.0)}
    terms = objective.loss(model, heads, batch)
    return terms.get("mlm", terms["loss"]).item()


def test_whole_word_masking_masks_whole_words() -> None:
    objective = make("mlm", whole_word=True, mask_ratio=0.3)
    for index in range(len(objective)):
        text = objective.example(index, generator(0, index))
        starts = ~objective.store.continues[text.ids]
        starts[0] = True
        word = np.cumsum(starts)
        chosen = set(text.masked.positions.tolist())
        assert chosen == {i for i in range(len(word)) if word[i] in {word[j] for j in chosen}}


# Bag of words


@pytest.mark.parametrize("reading", ["code", "paper"])
def test_bow_loss_is_that_of_its_reading(reading: str) -> None:
    objective, model = make("bow", reading=reading, bow_weight=0.7), encoder(pooling="mean")
    heads = heads_of(objective, model)
    arrays, batch = batch_of(objective)
    with torch.no_grad():
        pooled = model.pooled(model(batch["ids"], batch["mask"]), batch["ids"], batch["mask"])
        full = heads["mlm"](pooled, model.word_embeddings)
        logits = (full if reading == "code" else pooled @ model.word_embeddings.T).double().numpy()
    targets = np.zeros(logits.shape)
    for row in range(8):
        pieces = {int(piece) for piece in objective.example(row, generator(0, "example", 0, row)).ids} - set(range(5))
        targets[row, sorted(pieces)] = 1 / len(pieces)
        assert pieces == set(arrays["bag"][row].tolist()) - {-1}
    terms = objective.loss(model, heads, batch)
    assert terms["bow"].item() == pytest.approx(oracles.soft_cross_entropy(logits, targets), rel=1e-5)
    assert terms["loss"].item() == pytest.approx(terms["mlm"].item() + 0.7 * terms["bow"].item(), rel=1e-5)


def test_the_bag_holds_no_special_tokens_and_the_text_before_masking() -> None:
    objective = make("bow", small_store.store([[[[20, 20, 1, 21]]]]), mask_ratio=1.0)
    arrays = objective.collate([objective.example(0, generator(0))])
    assert arrays["bag"].tolist() == [[20, 21]]


def test_the_bow_weight_is_constant_or_falls_to_a_tenth() -> None:
    assert [make("bow").weight(progress) for progress in (0, 0.5, 1)] == [1, 1, 1]
    falling = make("bow", weight_schedule="cosine_01", bow_weight=2.0)
    assert [falling.weight(progress) for progress in (0, 0.5, 1)] == pytest.approx([2, 1.1, 0.2])


def test_bow_reads_the_text_through_the_representation_alone() -> None:
    objective, model = make("bow", bow_weight=1.0), encoder()
    heads = heads_of(objective, model)
    _, batch = batch_of(objective)
    hidden = model(batch["ids"], batch["mask"]).detach().requires_grad_()
    objective._logits(model, heads, model.pooled(hidden, batch["ids"], batch["mask"])).sum().backward()
    assert hidden.grad[:, 0].abs().sum() > 0
    assert hidden.grad[:, 1:].abs().sum() == 0


# COSTA


def test_span_means_are_means_of_the_states_inside() -> None:
    hidden = torch.randn(2, 6, 3)
    means = span_means(hidden, torch.tensor([[[1, 4], [0, 0]], [[5, 6], [0, 6]]]))
    assert torch.allclose(means[0, 0], hidden[0, 1:4].mean(0))
    assert means[0, 1].abs().sum() == 0
    assert torch.allclose(means[1, 0], hidden[1, 5])
    assert torch.allclose(means[1, 1], hidden[1].mean(0), atol=1e-6)


def test_groups_of_two_texts() -> None:
    positive, allowed = groups(torch.tensor([[True, True], [True, False]]))
    assert positive.int().tolist() == [[0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0]]
    assert allowed.int().tolist() == [[0, 1, 1, 1, 1, 0], [1, 0, 1, 1, 1, 0]]


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("projector", ["nonlinear", "linear", "none"])
def test_costa_loss_is_that_of_the_equations(similarity: str, projector: str) -> None:
    objective = make("costa", similarity=similarity, projector=projector, spans=3, temperature=0.5, gwc_weight=0.2)
    model = encoder()
    heads = heads_of(objective, model)
    examples = [objective.example(index, generator(0, index)) for index in range(5)]
    batch = {name: torch.from_numpy(array) for name, array in objective.collate(examples).items()}
    with torch.no_grad():
        hidden = model(batch["ids"], batch["mask"])
        whole = heads["projector"](hidden[:, 0]).double().numpy()
    vectors, owner = [*whole], [-1] * 5
    for row, example in enumerate(examples):
        for start, end in example.spans:
            vectors.append(hidden[row, 1 + start : 1 + end].double().numpy().mean(axis=0))
            owner.append(row)
    candidates = np.array(vectors)
    if similarity == "cosine":
        candidates = candidates / np.linalg.norm(candidates, axis=1, keepdims=True)
    positive = np.array(owner) == np.arange(5)[:, None]
    allowed = np.arange(len(owner)) != np.arange(5)[:, None]
    expected = oracles.sup_con(candidates[:5], candidates, positive, allowed, 0.5)
    terms = objective.loss(model, heads, batch | {"progress": torch.tensor(0.0)})
    assert terms["gwc"].item() == pytest.approx(expected, rel=1e-5)
    assert terms["loss"].item() == pytest.approx(terms["mlm"].item() + 0.2 * terms["gwc"].item(), rel=1e-5)


def test_costa_spans_have_the_granularities_that_fit_the_text() -> None:
    objective = make("costa", small_store.store([[[list(range(20, 40))]]]), spans=4)
    spans = objective.example(0, generator(0)).spans
    lengths = spans[:, 1] - spans[:, 0]
    assert len(spans) == 12  # no paragraph in a text of 20 pieces
    assert (lengths[:4] == 1).all()
    assert ((lengths[4:8] >= 4) & (lengths[4:8] <= 16)).all()
    assert ((lengths[8:] >= 16) & (lengths[8:] <= 20)).all()


def test_costa_word_spans_are_no_stop_words_and_no_punctuation() -> None:
    assert content_pieces(small_store.PIECES)[5:9].tolist() == [False, False, False, True]
    the_of_dot = [5, 80, 6, 7, 20, 5]  # "the" with a continuation is a word of its own
    objective = make("costa", small_store.store([[[the_of_dot]]]), granularities=("word",))
    assert sorted(map(tuple, objective.example(0, generator(0)).spans.tolist())) == [(0, 2), (4, 5)]


# All of them


@pytest.mark.parametrize("name", ALL)
def test_a_batch_of_one_has_a_finite_loss_and_gradient(name: str) -> None:
    objective, model = make(name), encoder()
    heads = heads_of(objective, model)
    _, batch = batch_of(objective, range(1))
    objective.loss(model, heads, batch)["loss"].backward()
    grads = [p.grad for p in (*model.parameters(), *heads.parameters()) if p.grad is not None]
    assert grads
    assert all(torch.isfinite(grad).all() for grad in grads)


def test_costa_of_one_text_without_spans_has_a_finite_gradient() -> None:
    objective, model = make("costa", small_store.store([[[[20, 21]]]]), granularities=("paragraph",)), encoder()
    heads = heads_of(objective, model)
    _, batch = batch_of(objective, range(1))
    terms = objective.loss(model, heads, batch)
    terms["loss"].backward()
    assert terms["gwc"].item() == 0
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", ALL)
def test_the_loss_does_not_depend_on_the_order_of_a_batch(name: str) -> None:
    objective, model = make(name), encoder()
    heads = heads_of(objective, model)
    examples = [objective.example(index, generator(0, index)) for index in range(6)]
    values = []
    for order in (examples, examples[::-1]):
        batch = {key: torch.from_numpy(array) for key, array in objective.collate(order).items()}
        values.append(objective.loss(model, heads, batch | {"progress": torch.tensor(0.0)})["loss"].item())
    assert values[0] == pytest.approx(values[1], rel=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_examples_are_drawn_anew_in_every_epoch(name: str) -> None:
    objective = make(name)
    texts = [batch_of(objective, range(8), epoch)[0] for epoch in (0, 0, 1)]
    same = [all(np.array_equal(texts[0][key], other[key]) for key in texts[0]) for other in texts[1:]]
    assert same == [True, False]


@pytest.mark.parametrize("name", ALL)
def test_no_label_is_seen_by_the_encoder(name: str) -> None:
    """What stood at a masked place is nowhere in the arrays that the encoder reads, save by the 10 % that stay."""
    objective = make(name)
    arrays, _ = batch_of(objective)
    if "masked" in arrays:
        seen = arrays["ids"].ravel()[arrays["masked"]]
        assert np.mean(seen == arrays["labels"]) < 0.3


@pytest.mark.parametrize("name", ALL)
def test_operations_grow_with_the_batch_and_are_three_forward_passes_or_more(name: str) -> None:
    objective, model = make(name), encoder()
    small, _ = batch_of(objective, range(4))
    large, _ = batch_of(objective, range(8))
    inputs = [array.shape for key, array in large.items() if key.endswith("ids")]
    assert objective.operations(model, large) > objective.operations(model, small)
    assert objective.operations(model, large) >= 3 * sum(operations.forward(model.shape, *shape) for shape in inputs)
    assert math.isfinite(objective.operations(model, large))
