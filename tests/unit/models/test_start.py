"""Starts: reproducible, LSA equal to a dense decomposition, refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from encore.config.entries import Backbone
from encore.data import vocabulary
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.tokens import TokenStore, write_store
from encore.errors import EncoreError
from encore.models import checkpoint, lsa
from encore.models.start import start_model
from tests.support.small_models import tokenizer_folder

WORDS = ["stack", "calls", "list", "sorting", "time", "memory", "holds", "takes", "some", "end", "of", "the"]
SMALL = {"layers": 2, "hidden": 8, "heads": 2, "intermediate": 16, "max_length": 20, "dropout": 0.0, "source": "test"}


def backbone(kind: str, **changes: Any) -> Backbone:
    return Backbone.model_validate({"start": kind, **SMALL, **changes})


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 60 passages that each speak of one of two topics."""
    place = tmp_path_factory.mktemp("start")
    rng = np.random.default_rng(0)
    halves = [WORDS[:6], WORDS[6:]]
    corpus = [
        {"_id": f"p{row}", "title": "", "text": " ".join(rng.choice(halves[row % 2], 8)).capitalize() + "."}
        for row in range(60)
    ]
    write_collection(place / "collection", corpus, [{"_id": "q", "text": "list"}], {"train": [Judgment("q", "p0", 1)]})
    tokenizer_folder(place / "tokenizer")
    write_store(Collection(place / "collection"), place / "tokenizer", place / "tokens")
    return place / "tokens"


def numpy_tf_idf(store: TokenStore) -> np.ndarray:
    rows = [np.concatenate([store.sentences[s] for s in range(*store.sections[i : i + 2])]) for i in range(60)]
    counts = np.array([np.bincount(row, minlength=store.vocabulary) for row in rows], dtype=float)
    idf = np.log(len(counts) / np.maximum((counts > 0).sum(axis=0), 1))
    weighted = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    return weighted / np.linalg.norm(weighted, axis=1, keepdims=True)


def test_tf_idf_is_that_of_the_formula(tokens: Path) -> None:
    store = TokenStore(tokens)
    np.testing.assert_allclose(lsa.tf_idf(lsa.piece_counts(store)).toarray(), numpy_tf_idf(store), atol=1e-12)


def test_embeddings_are_those_of_a_dense_decomposition(tokens: Path) -> None:
    store = TokenStore(tokens)
    _, values, right = np.linalg.svd(numpy_tf_idf(store), full_matrices=False)
    known, own = lsa.embeddings(store, 4, power=0.5, seed=0)
    expected = (right[:4].T * values[:4] ** 0.5)[known]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(own @ own.T, expected @ expected.T, atol=1e-6)
    np.testing.assert_allclose(np.abs(own), np.abs(expected), atol=1e-6)
    assert known.tolist() == sorted(set(store.sentences.ids.tolist()) - in_every_text(store))


def in_every_text(store: TokenStore) -> set[int]:
    """Pieces whose weight is log 1; here the full stop."""
    return set(np.flatnonzero(lsa.piece_counts(store).toarray().all(axis=0)).tolist())


def test_the_randomised_decomposition_finds_a_falling_spectrum() -> None:
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.standard_normal((size, 50)))[0] for size in (200, 120))
    spectrum = 0.8 ** np.arange(50)
    matrix = sparse.csr_matrix(left * spectrum @ right.T)
    values, vectors = lsa.right_singular(matrix, 10, seed=0)
    np.testing.assert_allclose(values, spectrum[:10], rtol=1e-8)
    np.testing.assert_allclose(np.abs((vectors * right[:, :10]).sum(axis=0)), 1.0, atol=1e-8)
    assert (vectors[np.abs(vectors).argmax(axis=0), range(10)] > 0).all()


@pytest.mark.parametrize("texts", [1, 12])
def test_fewer_texts_than_dimensions_leave_the_others_at_zero(texts: int) -> None:
    """The decomposition has no further singular values: a dozen passages train, instead of ending the job."""
    matrix = sparse.csr_matrix(np.random.default_rng(2).random((texts, 30)))
    values, vectors = lsa.right_singular(matrix, 16, seed=0)
    _, expected, right = np.linalg.svd(matrix.toarray(), full_matrices=False)
    np.testing.assert_allclose(values, [*expected, *[0] * (16 - texts)], atol=1e-9)
    np.testing.assert_allclose(np.abs((vectors[:, :texts] * right.T).sum(axis=0)), 1.0, atol=1e-6)
    assert not vectors[:, texts:].any()


def test_the_bias_of_an_lsa_start_is_how_often_a_piece_occurs(tokens: Path) -> None:
    _, heads = start_model(backbone("lsa"), 0, tokens / "tokenizer", tokens)
    store = TokenStore(tokens)
    assert heads["mlm.bias"].exp().sum().item() == pytest.approx(1.0, abs=1e-5)
    totals = np.bincount(store.sentences.ids, minlength=store.vocabulary) + 1
    np.testing.assert_allclose(heads["mlm.bias"], np.log(totals / totals.sum()), atol=1e-5)


def test_pieces_that_no_text_has_stay_random(tokens: Path) -> None:
    encoder, _ = start_model(backbone("lsa"), 0, tokens / "tokenizer", tokens)
    chance, _ = start_model(backbone("random"), 0, tokens / "tokenizer")
    mask = TokenStore(tokens).special.mask
    assert torch.equal(encoder.word_embeddings[mask], chance.word_embeddings[mask])
    lengths = torch.linalg.norm(encoder.word_embeddings, dim=1)
    assert ((lengths - 1).abs() < 1e-6).sum() == len(lsa.embeddings(TokenStore(tokens), 8, 0.5, 0)[0])
    assert not torch.equal(encoder.word_embeddings, chance.word_embeddings)
    name = "encoder.layer.0.output.dense.weight"
    assert torch.equal(encoder.state_dict()[name], chance.state_dict()[name])


@pytest.mark.parametrize("kind", ["random", "lsa"])
def test_a_start_is_a_function_of_its_seed(kind: str, tokens: Path) -> None:
    made = [start_model(backbone(kind), seed, tokens / "tokenizer", tokens)[0].state_dict() for seed in (0, 0, 1)]
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])
    assert not torch.equal(
        made[0]["encoder.layer.0.output.dense.weight"], made[2]["encoder.layer.0.output.dense.weight"]
    )


def test_a_trained_model_is_taken_with_its_heads_and_pooled_anew(tokens: Path, tmp_path: Path) -> None:
    encoder, heads = start_model(backbone("lsa", pooling="mean"), 0, tokens / "tokenizer", tokens)
    checkpoint.save_model(encoder, heads, tmp_path / "model", tokens / "tokenizer")
    described = backbone("lineage", lineage="tiny+mlm", pooling="cls", dropout=0.1)
    taken, own = start_model(described, 5, tokens / "tokenizer", pretrained=tmp_path / "model")
    assert all(torch.equal(taken.state_dict()[name], tensor) for name, tensor in encoder.state_dict().items())
    assert torch.equal(own["mlm.bias"], heads["mlm.bias"])
    assert (taken.config.pooling, taken.config.dropout, encoder.config.pooling) == ("cls", 0.1, "mean")
    ids = torch.tensor([[2, 7, 8, 3]])
    hidden = taken.eval()(ids, ids > 0)
    expected = torch.nn.functional.normalize(hidden[:, 0], dim=1) if described.similarity == "cosine" else hidden[:, 0]
    torch.testing.assert_close(taken.embed(ids, ids > 0), expected)
    with pytest.raises(EncoreError, match="give --pretrained"):
        start_model(described, 0, tokens / "tokenizer")


def test_two_towers_start_from_one_trained_model_and_stay_two(tokens: Path, tmp_path: Path) -> None:
    encoder, heads = start_model(backbone("lsa"), 0, tokens / "tokenizer", tokens)
    checkpoint.save_model(encoder, heads, tmp_path / "model", tokens / "tokenizer")
    described = backbone("lineage", lineage="tiny+mlm", encoders="separate")
    pair, _ = start_model(described, 5, tokens / "tokenizer", pretrained=tmp_path / "model")
    assert pair.query_tower is not pair
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(pair.state_dict()[name], tensor)
        assert torch.equal(pair.query_tower.state_dict()[name], tensor)
    with torch.no_grad():
        pair.query_tower.word_embeddings.add_(1)
    checkpoint.save_model(pair, heads, tmp_path / "pair", tokens / "tokenizer")
    again, _ = start_model(described, 5, tokens / "tokenizer", pretrained=tmp_path / "pair")
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in pair.state_dict().items())


def test_refusals(tokens: Path, tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="give --tokens"):
        start_model(backbone("lsa"), 0, tokens / "tokenizer")
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(vocabulary.train(["abc"], 20)), tmp_path / "other")
    with pytest.raises(EncoreError, match="another vocabulary"):
        start_model(backbone("lsa"), 0, tmp_path / "other", tokens)
