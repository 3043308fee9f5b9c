"""Scorers of pairs: trained by the library, opened from their folders, against scores computed one pair at a time."""

import json

import numpy as np
import pytest
import torch

from encore.config.finetuning import FinetuneStep
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning import scoring
from encore.finetuning.scoring import open_scorer, passage_blocks
from encore.finetuning.step import FinetuneInputs
from encore.models import checkpoint, embed, inputs
from encore.models.encoder import Encoder
from encore.models.memory import PartSize
from tests.support.little_memory import in_little_memory
from tests.support.simulated_gpu import simulated_gpu
from tests.support.small_home import STEP, finetuned

OWN = {
    "vector": {"validate_every": None},
    "late-interaction": {"validate_every": None, "token_dimension": 6},
    "cross-encoder": {"validate_every": None, "length": 8, "steps": 60, "learning_rate": 1e-2},
}  # fmt: skip
PAIRS = np.random.default_rng(0).integers(0, 64, (2, 150))


@pytest.fixture(scope="module", params=OWN)
def trained(request, home, negatives):
    kind = request.param
    places = [home / name for name in ("tokens", "collection", "start", "negatives")]
    changed = {**STEP, "scorer": kind, **OWN[kind]}
    step = {name: value for name, value in changed.items() if value is not None}
    finetuned(step, FinetuneInputs(*places), home / kind, home / "state")
    return kind, home / kind, TokenStore(home / "tokens")


def one_pair(kind, model, store, query, passage):
    """A pair's score from the encoder and the heads alone, without padding."""
    encoder, heads = checkpoint.load_encoder(model).eval(), checkpoint.load_heads(model)
    if kind == "cross-encoder":
        asked, known = store.queries[query].tolist()[:6], store.passages[passage].tolist()[:7]
        ids = torch.tensor([[encoder.config.cls, *asked, encoder.config.sep, *known, encoder.config.sep]])
        segments = torch.tensor([[0] * (len(asked) + 2) + [1] * (len(known) + 1)])
        pooled = encoder(ids, None, segments)[0].mean(0)
        return (pooled @ heads["cross.weight"][0] + heads["cross.bias"][0]).item()
    states = []
    for sequences, row, length in ((store.queries, query, 8), (store.passages, passage, 16)):
        ids = torch.from_numpy(inputs.wrap(sequences[row], length, encoder.config))[None]
        states.append(encoder(ids, None)[0].detach())
    if kind == "vector":
        one, other = (torch.nn.functional.normalize(found.mean(0), dim=0) for found in states)
        return float(one @ other)
    one, other = (found[1:-1] @ heads["late.weight"].T + heads["late.bias"] for found in states)
    return float((one @ torch.nn.functional.normalize(other, dim=-1).T).max(dim=1).values.sum())


def test_scores_are_those_of_the_pairs_one_by_one(trained):
    kind, model, store = trained
    found = open_scorer(model, store).score(*PAIRS)
    assert found.dtype == np.float32
    some = slice(None, None, 3)
    expected = [one_pair(kind, model, store, *pair) for pair in PAIRS.T[some].tolist()]
    np.testing.assert_allclose(found[some], expected, rtol=1e-4, atol=1e-5)
    assert np.ptp(found) > 0.1, "the scores must differ for this to be a test"


def test_a_score_belongs_to_its_pair_and_comes_again(trained):
    _, model, store = trained
    scorer = open_scorer(model, store)
    order = np.random.default_rng(1).permutation(PAIRS.shape[1])
    np.testing.assert_allclose(scorer.score(*PAIRS[:, order]), scorer.score(*PAIRS)[order], rtol=1e-4, atol=1e-5)
    assert scorer.score(*PAIRS).tobytes() == open_scorer(model, store).score(*PAIRS).tobytes()
    assert scorer.score(*PAIRS[:, :0]).shape == (0,)


def test_training_is_what_makes_a_scorer_good(trained):
    """The answer of a training query scores above others more often than not."""
    _, model, store = trained
    answers = np.arange(40)
    scorer = open_scorer(model, store)
    right = scorer.score(answers, answers)
    wrong = scorer.score(answers, (answers + 11) % 64)
    assert (right > wrong).mean() > 0.6


def test_a_folder_says_its_scorer_and_what_it_cannot_open(trained):
    kind, model, _ = trained
    said = json.loads((model / "encoder.json").read_text())
    assert said.get("scorer", {"kind": "vector"})["kind"] == kind == checkpoint.load_use(model).scorer["kind"]
    assert (model / "modules.json").exists() == (kind == "vector")
    use, length = checkpoint.load_use(model), {"cross-encoder": 8}.get(kind, 16)
    assert (use.length, use.query_length) == (length, 8)


def test_a_scorers_weights_start_a_vector_model_and_its_own_go_on(home, negatives, trained, tmp_path):
    kind, model, store = trained
    places = [home / "tokens", home / "collection", model, negatives]
    step = {**STEP, "steps": 1, "learning_rate": 1e-12, "validate_every": None}
    step = {name: value for name, value in step.items() if value is not None}
    finetuned(step, FinetuneInputs(*places), tmp_path / "student", tmp_path / "state")
    assert checkpoint.load_use(tmp_path / "student").scorer["kind"] == "vector"
    before, after = (
        checkpoint.load_encoder(model).state_dict(),
        checkpoint.load_encoder(tmp_path / "student").state_dict(),
    )
    assert all(torch.allclose(before[name], after[name]) for name in before)
    assert checkpoint.load_heads(tmp_path / "student").keys() == checkpoint.load_heads(model).keys()
    again = {**OWN[kind], **step, "scorer": kind, "length": checkpoint.load_use(model).length}
    del again["validate_every"]
    finetuned(again, FinetuneInputs(*places), tmp_path / "more", tmp_path / "state2", seed=5)
    one, other = (open_scorer(each, store).score(*PAIRS) for each in (model, tmp_path / "more"))
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_an_unknown_scorer_is_refused(home, tmp_path):
    store = TokenStore(home / "tokens")
    checkpoint.save_model(
        embed.load_for_tokens(home / "start", store), {}, tmp_path, store.tokenizer_folder, scorer={"kind": "oracle"}
    )
    with pytest.raises(EncoreError, match="scores by 'oracle', which is unknown"):
        open_scorer(tmp_path, store)


@pytest.mark.parametrize("most", [1, 3, 100])
def test_blocks_hold_few_passages_and_every_pair_once(most):
    passages = np.random.default_rng(2).integers(0, 9, 60)
    parts = list(passage_blocks(passages, most))
    assert np.concatenate([np.arange(60)[part] for part in parts]).tolist() == list(range(60))
    assert max(len(set(passages[part].tolist())) for part in parts) == min(most, 9)


@pytest.mark.parametrize("field", [{"projector": "linear"}, {"validate_every": 3}])
def test_what_is_about_vectors_is_refused_of_a_scorer_without(field):
    plain = {**STEP, **OWN["late-interaction"], "scorer": "late-interaction"}
    FinetuneStep.model_validate(plain)
    with pytest.raises(ValueError, match="has none; remove it"):
        FinetuneStep.model_validate(plain | field)


def test_a_gpu_gives_the_scores_of_the_processor_and_is_waited_for_once_a_part(trained, monkeypatch):
    """Not for each batch, and not before the next part is begun."""
    kind, model, store = trained
    expected = open_scorer(model, store).score(*PAIRS)
    monkeypatch.setitem(embed.PASS, "cuda", PartSize(64, 100))  # many batches
    monkeypatch.setattr(scoring.passage_blocks, "__defaults__", (30,))
    with simulated_gpu() as gpu:
        on_gpu = open_scorer(model, store).to(torch.device("cuda"))
        gpu.waits.clear()
        gpu.calls.clear()
        begun, begin = [], type(on_gpu).begun
        monkeypatch.setattr(type(on_gpu), "begun", lambda *given: begun.append(len(begun)) or begin(*given))
        ahead = []
        found = on_gpu.score(*PAIRS, report=lambda _: ahead.append(len(begun)))
        assert gpu.calls["embedding"] > 10, "many batches"
    np.testing.assert_allclose(found, expected, atol=1e-4)
    waits = {"vector": 2}.get(kind, 1) * len(begun)  # a vector's scorer waits for queries, and for passages
    assert len(begun) > 2
    assert gpu.waits == {"models/transfer.py: self._copied.synchronize()": waits}
    assert ahead == [min(number + 2, len(begun)) for number in range(len(begun))]


def test_memory_that_runs_out_changes_nothing_but_the_parts(trained, monkeypatch, capsys):
    """There is memory for three texts at a time; scoring continues with as many at a time as fit."""
    _, model, store = trained
    pairs = PAIRS[:, :60]
    expected = open_scorer(model, store).score(*pairs)
    narrow = in_little_memory(monkeypatch, Encoder, "forward", 3)
    found = open_scorer(model, store).score(*pairs)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert capsys.readouterr().out.count("out of memory; continuing with ") < 5, "it is learned once"
    assert max(narrow) == 16
    assert sorted(narrow)[len(narrow) // 2] <= 3
