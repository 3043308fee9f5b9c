"""What figures ask models: coverage by Algorithm 1 word for word, named pieces, a decoder's words, a map."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from encore.data import tokens, vocabulary
from encore.data.collection import Collection, write_collection
from encore.data.judgments import Judgment
from encore.data.rankings import Ranking
from encore.data.runs import describe, write_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import checkpoint
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.heads import MlmHead, WordDecoder, initialise
from encore.objectives.inspection import Inspection, inspect_model, pieces, vectors
from encore.objectives.inspection.pieces import hits
from encore.objectives.inspection.vectors import sample
from encore.storage import manifest
from tests.support import inside
from tests.support.little_memory import in_little_memory

NUMERICS = {"precision": "fp32", "threads": 1}
KS = [2, 5, 10]
COVERAGE = {"kind": "coverage", "texts": 6, "sample": 0, "length": 12, "ks": KS, "numerics": NUMERICS}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A collection of twelve passages and two queries, as tokens."""
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(30)]
    corpus = [{"_id": f"d{i}", "title": "", "text": " ".join(rng.choice(words, size=8))} for i in range(12)]
    queries = [{"_id": "q1", "text": "word1 word2"}, {"_id": "q2", "text": "word3"}]
    judged = [Judgment("q1", "d3", 1), Judgment("q1", "d4", 0), Judgment("q2", "d5", 0)]
    with manifest.record(tmp_path / "collection", stage="collection.beir", spec={}, inputs=[]):
        write_collection(tmp_path / "collection", corpus, queries, {"test": judged})
    pieces = vocabulary.train([row["text"] for row in corpus], 120)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(pieces), tmp_path / "tokenizer")
    with manifest.record(tmp_path / "tokens", stage="tokens", spec={}, inputs=[]):
        tokens.write_store(Collection(tmp_path / "collection"), tmp_path / "tokenizer", tmp_path / "tokens")
    return tmp_path


def model(made: Path, name: str, heads: str = "mlm", seed: int = 0) -> Path:
    """A small model with some of the heads ``mlm`` and ``decoder``."""
    torch.manual_seed(seed)
    store = TokenStore(made / "tokens")
    shape = EncoderConfig(
        vocabulary=store.vocabulary, layers=1, hidden=16, heads=2, intermediate=32, max_length=32, dropout=0.0
    )
    encoder = initialise(Encoder(shape))
    every = {"mlm": initialise(MlmHead(shape)), "decoder": WordDecoder(shape, 0.0)}
    for part in (encoder, *every.values()):
        for parameter in part.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape)
    own = nn.ModuleDict({each: every[each] for each in heads.split()})
    with manifest.record(made / name, stage="start", spec={}, inputs=[]):
        checkpoint.save_model(encoder, own, made / name, store.tokenizer_folder)
    return made / name


def found(made: Path, spec: dict[str, Any], at: Path, **given: Path) -> dict[str, Any]:
    inspect_model(Inspection(**spec), at, made / "tokens", made / "inspection", **given)
    told: dict[str, Any] = json.loads((made / "inspection/inspection.json").read_text())
    return told


def by_the_algorithm(made: Path, at: Path, head: Path) -> list[tuple[float, float]]:
    """Algorithm 1 text by text, unpadded, in Python's own sets."""
    store, encoder, asked = (
        TokenStore(made / "tokens"),
        checkpoint.load_encoder(at).eval(),
        checkpoint.load_encoder(head),
    )
    heads = nn.ModuleDict({"mlm": MlmHead(encoder.config)}).eval()
    whole = len(checkpoint.restore_heads(heads, head)) == len(heads.state_dict())
    shares: list[list[tuple[float, float]]] = []
    for row in sample(len(store.passages), COVERAGE["texts"], 0):
        ids = store.passages[int(row)][: COVERAGE["length"] - 2].tolist()
        text = torch.tensor([[store.special.cls, *ids, store.special.sep]])
        with torch.no_grad():
            vector = encoder(text, None)[:, 0]
            logits = heads["mlm"](vector, asked.word_embeddings) if whole else vector @ asked.word_embeddings.T
        ranked = sorted(range(store.vocabulary), key=lambda piece: -float(logits[0, piece]))
        inside = set(ids)
        shares.append([(len(inside & set(ranked[:k])) / len(inside), len(inside & set(ranked[:k])) / k) for k in KS])
    return [tuple(np.mean([text[place] for text in shares], axis=0)) for place in range(len(KS))]


@pytest.mark.parametrize(("heads", "says"), [("mlm", "head"), ("decoder", "embeddings")])
def test_coverage_is_the_algorithm_s(made: Path, heads: str, says: str) -> None:
    at, start = model(made, "model", "mlm", seed=1), model(made, "start", heads)
    told = found(made, COVERAGE, at, head=start)
    assert (told["texts"], told["head"]) == (6, says)
    values = [(value["of_text"], value["of_top"]) for value in told["values"]]
    np.testing.assert_allclose(values, by_the_algorithm(made, at, start), rtol=2e-5)
    assert [value["k"] for value in told["values"]] == KS


def test_coverage_of_texts_without_pieces_is_refused(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "sample", lambda *_: np.zeros(0, np.int64))
    with pytest.raises(EncoreError, match="none of 6 texts has a piece of the vocabulary"):
        found(made, COVERAGE, model(made, "empty", "mlm", seed=1))


def test_hits_are_counted_once_for_each_k() -> None:
    top = np.array([[7, 1, 2, 9], [4, 3, 2, 1]])
    bag = np.array([[1, 2, 3, -1], [4, -1, -1, -1]])
    assert hits(top, bag, [1, 2, 3, 4, 10]).tolist() == [[0, 1, 2, 2, 2], [1, 1, 1, 1, 1]]


def test_words_are_the_best_pieces_and_say_which_the_text_has(made: Path) -> None:
    at, spec = model(made, "model"), {"kind": "words", "length": 12, "top": 8, "numerics": NUMERICS}
    told = found(made, spec | {"text": "word1 word2 word3"}, at)
    assert told["text"] == "word1 word2 word3"
    logits = [each["logit"] for each in told["pieces"]]
    assert logits == sorted(logits, reverse=True)
    store = TokenStore(made / "tokens")
    ids = vocabulary.load_tokenizer(store.tokenizer_folder).encode("word1 word2 word3", add_special_tokens=False).ids
    inside = {store.pieces[piece] for piece in ids}
    assert [each["hit"] for each in told["pieces"]] == [each["piece"] in inside for each in told["pieces"]]


def test_an_example_is_of_the_length_that_is_asked_for(made: Path) -> None:
    spec = {"kind": "words", "length": 32, "top": 3, "shortest": 5, "longest": 32, "sample": 0, "numerics": NUMERICS}
    at = model(made, "model")
    assert found(made, spec, at)["text"] == found(made, spec, model(made, "other", seed=3))["text"]
    with pytest.raises(EncoreError, match="no passage has 100 to 200 pieces"):
        found(made, spec | {"shortest": 100, "longest": 200}, at)


def test_a_word_has_the_sum_of_its_pieces() -> None:
    ids, continues = np.array([3, 4, 5, 3]), np.array([False, False, False, False, True, False])
    p = np.array([0.0, 0.0, 0.0, 0.5, 0.25, 0.125])
    assert pieces.summed(ids, continues, p) == [([3, 4], 0.75), ([5], 0.125), ([3], 0.5)]
    assert pieces.joined(["nano", "##tech", "##nology"]) == "nanotechnology"


def test_a_decoder_s_words_are_its_normalised_sigmoids(made: Path) -> None:
    at, spec = model(made, "model", "mlm decoder"), {"kind": "heat", "length": 12, "numerics": NUMERICS}
    told = found(made, spec | {"text": "word1 word2"}, at)
    store, encoder = TokenStore(made / "tokens"), checkpoint.load_encoder(at).eval()
    ids = vocabulary.load_tokenizer(store.tokenizer_folder).encode("word1 word2", add_special_tokens=False).ids
    heads = nn.ModuleDict({"decoder": WordDecoder(encoder.config, 0.0)}).eval()
    checkpoint.restore_heads(heads, at)
    with torch.no_grad():
        vector = encoder(torch.tensor([[store.special.cls, *ids, store.special.sep]]), None)[:, 0]
        raw = torch.sigmoid(heads["decoder"](vector))[0]
    shares = (raw / raw.sum()).tolist()
    assert [each["word"] for each in told["words"]] == ["word1", "word2"]
    assert sum(each["probability"] for each in told["words"]) == pytest.approx(
        sum(shares[piece] for piece in ids), rel=1e-5
    )
    with pytest.raises(EncoreError, match="keeps no decoder"):
        found(made, spec | {"text": "word1"}, model(made, "without", "mlm"))


def test_a_map_has_the_query_its_candidates_and_what_is_relevant(made: Path) -> None:
    ranked = [f"d{number}" for number in (0, 1, 2, 6, 7, 8, 3)]
    run = {name: Ranking(ranked, np.arange(7, 0, -1, dtype=np.float32)) for name in ("q1", "q2")}
    with manifest.record(made / "run", stage="search", spec={}, inputs=[]):
        write_run(made / "run", run, describe("x", collection="c", split="test", retrieval=[]))
    spec = {"kind": "map", "split": "test", "sample": 0, "candidates": 5, "perplexity": 30.0, "seed_of_map": 0}
    spec |= {"length": 12, "query_length": 12, "numerics": NUMERICS}
    given = {"run": made / "run", "collection": made / "collection"}
    told = found(made, spec, model(made, "model"), **given)
    assert told["query"] == "q1"  # nothing is relevant to the other one
    kinds = [(point["name"], point["kind"], point["rank"]) for point in told["points"]]
    assert kinds[0] == ("q1", "query", None)
    assert kinds[1:6] == [(name, "candidate", rank) for rank, name in enumerate(ranked[:5], 1)]
    assert kinds[6:] == [("d3", "relevant", 7)]
    assert told == found(made, spec, made / "model", **given)


def test_a_map_of_a_query_without_an_answer_is_refused(made: Path) -> None:
    with manifest.record(made / "run", stage="search", spec={}, inputs=[]):
        write_run(made / "run", {}, describe("x", collection="c", split="test", retrieval=[]))
    spec = {"kind": "map", "split": "test", "sample": 0, "candidates": 5, "perplexity": 30.0, "seed_of_map": 0}
    spec |= {"length": 12, "query_length": 12, "numerics": NUMERICS}
    with pytest.raises(EncoreError, match="no answer to the query of the map, 'q1'; draw another with `sample`"):
        found(made, spec, model(made, "model"), run=made / "run", collection=made / "collection")


def test_vectors_are_compared_text_by_text(made: Path) -> None:
    at, store = model(made, "m"), TokenStore(made / "tokens")
    spec = {"kind": "vectors", "texts": 9, "sample": 0, "length": 14, "numerics": NUMERICS}
    told, encoder = found(made, spec, at), checkpoint.load_encoder(at).eval()

    def embedded(pooling: str, *texts: list[int]) -> np.ndarray:
        ids = [torch.tensor([[store.special.cls, *text, store.special.sep]]) for text in texts]
        with torch.no_grad():
            states = [encoder(each, torch.ones_like(each, dtype=torch.bool))[0].double().numpy() for each in ids]
        return np.array([each.mean(0) if pooling == "mean" else each[0] for each in states])

    texts = [store.passages[int(row)][:12].tolist() for row in sample(12, 9, 0)]
    assert told["texts"] == 9
    for pooling, prefix in (("cls", ""), ("mean", "mean_")):
        whole = embedded(pooling, *texts)
        norms = np.linalg.norm(whole, axis=1)
        cosines = [whole[i] @ whole[j] / norms[i] / norms[j] for i in range(9) for j in range(9) if i != j]
        assert told[f"{prefix}cosine"] == pytest.approx(np.mean(cosines), abs=1e-5)
        variances = np.linalg.eigvalsh(np.cov(whole.T))
        assert told[f"{prefix}effective_dimension"] == pytest.approx(
            variances.sum() ** 2 / (variances**2).sum(), rel=1e-4
        )
        first = embedded(pooling, *(text[: len(text) // 2] for text in texts))
        second = embedded(pooling, *(text[len(text) // 2 :] for text in texts))
        first, second = (half / np.linalg.norm(half, axis=1, keepdims=True) for half in (first, second))
        assert told[f"{prefix}own_half"] == pytest.approx(np.mean((first @ second.T).argmax(1) == np.arange(9)))


def test_the_effective_dimension_is_the_number_of_directions_that_vectors_spread_in() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([np.eye(7), -np.eye(7)])[:, :5]  # alike in five directions
    turned = points @ np.linalg.qr(rng.normal(size=(9, 5)))[0].T
    assert vectors.effective_dimension(points[:, :5] * 3) == pytest.approx(5)
    assert vectors.effective_dimension(turned + 100) == pytest.approx(5), "neither turning nor moving changes it"
    assert vectors.effective_dimension(np.outer(rng.normal(size=20), np.ones(4))) == pytest.approx(1)
    assert vectors.effective_dimension(np.ones((4, 3))) == 0


def test_cosines_and_halves_at_their_limits() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 20, 16))
    assert vectors.mean_cosine(np.outer(np.arange(1, 6), np.ones(3))) == pytest.approx(1)
    assert vectors.mean_cosine(np.eye(4)) == pytest.approx(0)
    assert vectors.own_half(one, 7 * one) == 1
    assert vectors.own_half(one, np.roll(one, 1, axis=0)) == 0
    assert vectors.own_half(np.ones((5, 3)), np.ones((5, 3))) == 0, "all alike find nothing"
    assert 0 < vectors.own_half(one, one + 2 * other) < 1


def test_vectors_of_too_few_texts_are_refused(made: Path) -> None:
    spec = {"kind": "vectors", "texts": 1, "sample": 0, "length": 14, "numerics": NUMERICS}
    with pytest.raises(EncoreError, match="fewer than two of 1 passages have 8 word pieces"):
        found(made, spec, model(made, "m"))


def test_near_points_stay_near_on_a_map() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 20)
    points = rng.normal(0, 1, size=(40, 16)).astype(np.float32) + 12 * groups[:, None].astype(np.float32)
    found = vectors.mapped(points, 10.0, 0)
    distances = np.linalg.norm(found[:, None] - found[None], axis=-1) + np.eye(40) * 1e9
    assert (groups[distances.argmin(1)] == groups).all()


def test_the_program_writes_a_manifest(made: Path) -> None:
    at = model(made, "model")
    inside.made("inspect_model", COVERAGE, {"model": at, "tokens": made / "tokens"}, made / "out/manifest.json")
    assert manifest.read_manifest(made / "out")["results"]["texts"] == 6


def test_texts_are_looked_into_a_few_at_a_time_where_memory_runs_out(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store, encoder = TokenStore(made / "tokens"), checkpoint.load_encoder(model(made, "model")).eval()
    texts = [store.passages[row] for row in range(12)]
    expected = torch.cat(list(vectors.representations(encoder, texts, 12)))
    sizes = in_little_memory(monkeypatch, Encoder, "representations", 5)
    found = torch.cat(list(vectors.representations(encoder, texts, 12)))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert "out of memory; continuing with " in capsys.readouterr().out
    assert sizes[0] == 12
