"""The comparison with sentence-transformers: its arithmetic with known values, and both sides at a tiny size."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from encore.config.finetuning import FinetuneStep
from encore.data import vocabulary
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.judged import judged_queries
from encore.data.tokens import TokenStore, write_store
from encore.errors import EncoreError
from encore.finetuning.contrastive import Contrastive
from encore.finetuning.queries import in_rows
from encore.models import checkpoint, embed
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from harness import equivalence, record
from harness.recipe import Recipe

WORDS = ["cat", "dog", "owl", "fox", "bee", "ant", "barn", "lake", "hill", "wood", "road", "roof"]
STEP = {
    "kind": "finetune", "collection": "c", "steps": 6, "batch": 8, "learning_rate": 2e-3, "length": 16,
    "query_length": 5, "negatives": "bm25", "per_query": 2, "temperature": 0.1, "source": "test",
}  # fmt: skip


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """36 passages of two words, a query for each with too many words for its length; a random model."""
    home = tmp_path_factory.mktemp("home")
    pairs = [(first, second) for first in WORDS[:6] for second in WORDS[6:]]
    texts = [f"the {first} sleeps near the {second} tonight" for first, second in pairs]
    roles = {"train": range(24), "valid": range(24, 36)}
    write_collection(
        home / "collection",
        [{"_id": f"d{i:02d}", "title": "Animals", "text": text} for i, text in enumerate(texts)],
        [{"_id": f"q{i}", "text": f"{second} {first} near tonight"} for i, (first, second) in enumerate(pairs)],
        {role: [Judgment(f"q{i}", f"d{i:02d}", 1) for i in rows] for role, rows in roles.items()},
    )
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(vocabulary.train([*texts, "Animals"], 90)), home / "tokenizer")
    collection = Collection(home / "collection")
    write_store(collection, home / "tokenizer", home / "tokens")
    store = TokenStore(home / "tokens")
    special = store.special.pad, store.special.cls, store.special.sep
    torch.manual_seed(0)
    encoder = Encoder(EncoderConfig(store.vocabulary, 1, 16, 2, 32, 16, 0.0, "mean", "cosine", None, *special))
    checkpoint.save_model(encoder, {}, home / "start", store.tokenizer_folder)
    step = FinetuneStep.model_validate(STEP)
    negatives = {f"q{i}": {f"d{(i + shift) % 36:02d}": shift for shift in (3, 5, 11)} for i in roles["train"]}
    judged = judged_queries(collection, **step.query_selection(0), negatives=negatives)
    task = Contrastive(step, in_rows(judged, store, negatives), store)
    numerics = {"precision": "fp32", "threads": 1}
    return Recipe(step, numerics, store, collection, home / "start", task, "RR@10")


def test_two_one_sided_tests_are_those_of_scipy() -> None:
    first, second = np.array([0.250, 0.255, 0.248, 0.260]), np.array([0.252, 0.254, 0.251, 0.259])
    found = equivalence.compare(first, second, margin=0.005)
    above = stats.ttest_1samp(second - first, -0.005, alternative="greater")
    below = stats.ttest_1samp(second - first, 0.005, alternative="less")
    assert found.p == pytest.approx(max(above.pvalue, below.pvalue))
    low, high = stats.ttest_1samp(second - first, 0.0).confidence_interval(0.90)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.equivalent
    assert found.mean == pytest.approx(0.00075)


def test_equivalence_is_an_interval_within_the_margin() -> None:
    rng = np.random.default_rng(0)
    said = []
    for shift in np.linspace(-0.02, 0.02, 41):
        first, second = rng.normal(0.25, 0.003, 6), rng.normal(0.25 + shift, 0.003, 6)
        found = equivalence.compare(first, second, margin=0.01)
        assert found.equivalent == (max(-found.low, found.high) < 0.01)
        said.append(found.equivalent)
    assert any(said)
    assert not any(said[:6] + said[-6:])  # differences of 0.015 and more


def test_batches_are_those_that_our_loop_draws(recipe: Recipe) -> None:
    batches = recipe.batches(0)
    assert [len(batch) for batch in batches] == [8] * 6
    query, positive, *negatives = recipe.texts(batches[0][0])
    words = query.split()
    assert positive == f"Animals the {words[1]} sleeps near the {words[0]} tonight"
    assert len(negatives) == 2
    assert recipe.texts(recipe.batches(1)[0][0]) != recipe.texts(batches[0][0])


def test_what_is_found_first_scores_one(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = embed.load_for_tokens(recipe.start, recipe.store)
    assert 0 < recipe.score(encoder) < 1
    own = np.roll(np.eye(36, 16, dtype=np.float32), 24, axis=0)  # a direction for each passage of the validation role
    monkeypatch.setattr("harness.recipe.encode", lambda *_: iter([own]))
    monkeypatch.setattr(embed, "embed_texts", lambda encoder, sequences, rows, length: own[rows])
    assert recipe.score(encoder) == 1


needs_peer = pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="the peer is sentence-transformers")


@pytest.mark.slow
@needs_peer
def test_a_batch_has_one_loss_and_one_gradient(recipe: Recipe) -> None:
    from harness import agreement
    from harness.sentence_transformers_peer import Peer

    found = agreement.agree(recipe, Peer(recipe), recipe.batches(0)[0])
    assert found["our_loss"] == pytest.approx(found["loss"], rel=1e-5)
    assert found["examples"] >= 2
    with pytest.raises(EncoreError, match="differs on both sides"):
        agreement.agree(recipe, Peer(recipe, scale=1.0), recipe.batches(0)[0])


@pytest.mark.slow
@needs_peer
def test_a_batch_without_copies_has_none(recipe: Recipe) -> None:
    from harness import agreement

    batch = recipe.batches(0)[0]
    assert agreement.left_out([batch[:1] * 2]) > 0  # a query twice: its positive is an answer of both
    kept = agreement.without_copies(batch)
    passages = [passage for example in kept for passage in example.passages]
    assert len(passages) == len(set(passages))
    assert agreement.left_out([kept]) == 0


@pytest.mark.slow
@needs_peer
@pytest.mark.skipif(find_spec("accelerate") is None, reason="the peer's trainer needs accelerate")
def test_both_sides_train_and_a_record_is_written(recipe: Recipe, tmp_path: Path) -> None:
    import finetuning

    contents = finetuning.measure(recipe, seeds=[0, 1], margin=0.5)
    contents["setting"] |= {"lineage": "tiny+step", "run": "none"}
    written = json.loads(record.write(tmp_path, "here", contents, 0.0, finetuning.PACKAGES).read_text())
    assert [arm["name"] for arm in written["arms"]] == [
        finetuning.OURS,
        finetuning.THEIRS,
        finetuning.OWN,
        finetuning.PLANTED,
    ]
    assert len(contents["differences"]) == 3
    same = contents["arms"][1]["values"]
    assert same == pytest.approx(contents["arms"][0]["values"], abs=0.2)
    assert written["versions"]["sentence-transformers"]


@pytest.mark.slow
@needs_peer
@pytest.mark.skipif(find_spec("accelerate") is None, reason="the peer's trainer needs accelerate")
def test_a_model_of_another_shape_is_timed_on_both_sides(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    import finetuning

    monkeypatch.setattr(finetuning, "STEPS", 2)
    shape = finetuning.of_shape(recipe, "nano")
    assert all(len(times) == finetuning.TURNS and min(times) > 0 for times in shape["cpu_seconds"].values())
    assert shape["ratio"]["low"] > 0
