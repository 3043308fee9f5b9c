"""A whole collection ranked by vectors of tokens: the run is what the scores of all pairs say, in the order of ties."""

import json

import numpy as np
import pytest
import torch

from encore.data.collection import QuerySample
from encore.data.runs import read_header, read_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.scoring import open_scorer
from encore.finetuning.step import FinetuneInputs
from encore.models import checkpoint, inputs
from encore.retrieval import rerank
from encore.retrieval.rerank import Reranking, answer_by_tokens, best
from tests.support.small_home import NUMERICS, STEP, finetuned

QUERIES = Reranking(QuerySample("test"), 5, NUMERICS, "s", "c")
FIELDS = {"every token": {}, "first tokens": {"normalised": "none", "query_vectors": 1, "passage_vectors": 3}}


@pytest.fixture(scope="module", params=FIELDS)
def model(request, home, negatives):
    changed = {**STEP, "scorer": "late-interaction", "token_dimension": 6, **FIELDS[request.param]}
    step = {name: value for name, value in changed.items() if name != "validate_every"}
    places = [home / name for name in ("tokens", "collection", "start", "negatives")]
    finetuned(step, FinetuneInputs(*places), home / request.param, home / "state")
    return home / request.param


def every_score(model, store, queries):
    """Of each query and passage, one pair at a time."""
    passages = len(store.passages)
    pairs = np.repeat(queries, passages), np.tile(np.arange(passages), len(queries))
    return open_scorer(model, store).score(*pairs).reshape(len(queries), passages)


@pytest.mark.parametrize(("block", "together"), [(2048, 64), (7, 3)])
def test_the_best_of_all_blocks_are_the_best_of_all_pairs(home, model, monkeypatch, block, together):
    monkeypatch.setattr(rerank, "BLOCK", block)
    monkeypatch.setattr(rerank, "TOGETHER", together)
    store, queries = TokenStore(home / "tokens"), np.arange(0, 20, 2)
    expected = every_score(model, store, queries)
    scores, rows = best(open_scorer(model, store), queries, len(store.passages), 9)
    assert rows.shape == (10, 9)
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :9], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(expected, rows, axis=1), scores, rtol=1e-4, atol=1e-5)
    assert np.ptp(expected) > 0.01
    assert best(open_scorer(model, store), queries, len(store.passages), 10_000)[1].shape == (10, len(store.passages))


def test_scores_of_first_tokens_are_the_largest_product_by_definition(home, model):
    use, store = checkpoint.load_use(model), TokenStore(home / "tokens")
    encoder, heads = checkpoint.load_encoder(model).eval(), checkpoint.load_heads(model)
    found = []
    for sequences, row, length in ((store.queries, 3, use.query_length), (store.passages, 8, use.length)):
        ids = torch.from_numpy(inputs.wrap(sequences[row], length, encoder.config))[None]
        found.append((encoder(ids, None)[0] @ heads["late.weight"].T + heads["late.bias"]).detach())
    score = open_scorer(model, store).score(np.array([3]), np.array([8]))[0]
    expected = float((found[0][:1] @ found[1][:3].T).max())
    assert (score == pytest.approx(expected, rel=1e-4)) == ("passage_vectors" in use.scorer)


def test_the_run_answers_the_split_and_says_how(home, model, tmp_path):
    counts = answer_by_tokens(QUERIES, model, home / "tokens", home / "collection", tmp_path)
    store, run = TokenStore(home / "tokens"), read_run(tmp_path)
    assert counts == {"queries": len(run), "passages": len(store.passages)}
    expected = every_score(model, store, store.queries.names.rows(list(run)))
    for found, row in zip(run.values(), expected, strict=True):
        np.testing.assert_allclose(found.scores, -np.sort(-row)[:5], rtol=1e-4, atol=1e-5)
    (stage,) = read_header(tmp_path)["method"]["retrieval"]
    assert stage == {"name": "exact search", "method": "late interaction", "model": model.name, "depth": 5}
    assert json.loads((model / "encoder.json").read_text())["scorer"].get("passage_vectors") in (None, 3)


def test_a_tie_at_the_cut_is_complete(home, model, tmp_path, monkeypatch):
    """Copies of a passage: which of them are in the run is decided by their ids, not by their rows."""
    passages = len(TokenStore(home / "tokens").passages)
    sought = []

    def all_equal(scorer, queries, passages, wanted):
        sought.append(wanted)
        rows = np.tile(np.arange(min(wanted, passages)), (len(queries), 1))
        return np.ones(rows.shape, np.float32), rows

    monkeypatch.setattr(rerank, "best", all_equal)
    monkeypatch.setattr(rerank, "SPARE", 1)
    answer_by_tokens(QUERIES, model, home / "tokens", home / "collection", tmp_path)
    best_ids = sorted(TokenStore(home / "tokens").passages.names, reverse=True)[:5]
    assert all(list(found.documents) == best_ids for found in read_run(tmp_path).values())
    assert sought[:2] == [6, 24]
    assert sought[-1] >= passages > sought[-2]


def test_a_model_without_vectors_of_tokens_is_refused(home, tmp_path):
    with pytest.raises(EncoreError, match="has no vectors of tokens to rank a whole collection by; name a `first`"):
        answer_by_tokens(QUERIES, home / "start", home / "tokens", home / "collection", tmp_path)
