"""From pre-training to search with two towers, a head and a projector: what a step goes on from, what search uses."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from encore import objectives
from encore.config.entries import Backbone
from encore.data.collection import Collection, Judgment, QuerySample, write_collection
from encore.data.runs import read_run
from encore.data.tokens import TokenStore, write_store
from encore.finetuning.step import FinetuneInputs
from encore.models import checkpoint, embed, towers
from encore.models.start import start_model
from encore.objectives.parts import step as pretraining
from encore.retrieval.dense import Queries, answer_exactly, vectors_by_row
from encore.storage import manifest
from encore.training.checkpoint import Resume
from tests.support.small_home import finetuned
from tests.support.small_models import TEXTS, tokenizer_folder
from tests.support.small_shard import encode_all

NUMERICS = {"precision": "fp32", "threads": 1}
STEP = {"collection": "c", "batch": 4, "learning_rate": 1e-3, "length": 16, "query_length": 8, "source": "a test"}
FINETUNE = {"kind": "finetune", "negatives": "bm25", "per_query": 1, "temperature": 0.5, "validate_every": 1, **STEP}
BACKBONE = {"start": "random", "layers": 1, "hidden": 16, "heads": 2, "intermediate": 16, "max_length": 16}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight passages, each with a query; models that start with two towers and a head of dimension 6."""
    home = tmp_path_factory.mktemp("home")
    sentences = [f"{text} And more of it, {number} times." for number, text in enumerate(TEXTS * 2)]
    roles = {"train": range(5), "valid": range(5, 7), "test": range(7, 8)}
    write_collection(
        home / "c",
        [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(sentences)],
        [{"_id": f"q{i}", "text": text[:12]} for i, text in enumerate(sentences)],
        {role: [Judgment(f"q{i}", f"d{i}", 1) for i in rows] for role, rows in roles.items()},
        [{"_id": f"a{i}", "title": "list", "sections": [{"title": "", "sentences": [text, "Some memory.", TEXTS[2]]}],
          "links": []} for i, text in enumerate(sentences)],
    )  # fmt: skip
    write_store(Collection(home / "c"), tokenizer_folder(home / "tokenizer"), home / "tokens")
    (home / "negatives").mkdir()
    from encore.finetuning.negatives import mining

    mined, statistics = mining.mine({"q0": ["d5"]}, {"q0": {"d0": 1}}, depth=1, keep=1)
    mining.write_negatives(home / "negatives", mined, statistics)
    for kind in ("shared", "separate"):
        encoder, heads = start_model(Backbone(**BACKBONE, encoders=kind, projection_dim=6), 0, home / "tokenizer")
        checkpoint.save_model(encoder, heads, home / kind, home / "tokenizer")
    return home


def pretrained(home: Path, weights: Path, output: Path, **fields: Any) -> Path:
    step = objectives.fields({"kind": "pretrain", "steps": 2, **STEP, **fields})
    inputs = pretraining.PretrainInputs(home / "tokens", weights)
    pretraining.pretrain(step, 0, NUMERICS, inputs, output, Resume(output.parent / "s"))
    return output


def tuned(home: Path, weights: Path, output: Path, **fields: Any) -> Path:
    inputs = FinetuneInputs(home / "tokens", home / "c", weights, home / "negatives")
    finetuned({**FINETUNE, "steps": 1, **fields}, inputs, output, output.parent / "t")
    return output


@pytest.fixture(scope="module")
def path(home: Path) -> dict[str, Path]:
    """Untied: start, ICT, fine-tuning."""
    ict = pretrained(home, home / "separate", home / "ict/model", objective="ict")
    return {"start": home / "separate", "ict": ict, "tuned": tuned(home, ict, home / "tuned/model")}


def test_both_towers_learn_at_every_step(path: dict[str, Path]) -> None:
    before, ict, after = (checkpoint.load_encoder(path[name]).state_dict() for name in ("start", "ict", "tuned"))
    weight = "encoder.layer.0.output.dense.weight"
    for tower in ("", towers.QUERY):
        assert not torch.equal(before[tower + weight], ict[tower + weight])
        assert not torch.equal(ict[tower + weight], after[tower + weight])
    assert torch.equal(before[weight], before[towers.QUERY + weight])
    assert not torch.equal(after[weight], after[towers.QUERY + weight])


def test_towers_stay_one_where_no_query_is_read(home: Path, path: dict[str, Path]) -> None:
    mlm = checkpoint.load_encoder(
        pretrained(home, home / "separate", home / "mlm/model", objective="mlm", min_tokens=1)
    )
    before = checkpoint.load_encoder(home / "separate").word_embeddings
    assert not torch.equal(mlm.word_embeddings, before)
    assert torch.equal(mlm.word_embeddings, mlm.query_tower.word_embeddings)
    apart = checkpoint.load_encoder(pretrained(home, path["ict"], home / "apart/model", objective="mlm", min_tokens=1))
    ict = checkpoint.load_encoder(path["ict"])
    assert torch.equal(apart.query_tower.word_embeddings, ict.query_tower.word_embeddings)
    assert not torch.equal(apart.word_embeddings, ict.word_embeddings)


def test_fine_tuning_goes_on_from_the_head_of_pre_training(path: dict[str, Path], home: Path) -> None:
    before, ict = (checkpoint.load_encoder(path[name]).state_dict()["head.weight"] for name in ("start", "ict"))
    assert not torch.equal(before, ict), "pre-training trains the head"
    stored = checkpoint.read_tensors(path["ict"] / "2_Dense/model.safetensors")
    assert torch.equal(stored["linear.weight"], ict)
    still = tuned(home, path["ict"], home / "still/model", learning_rate=1e-12)
    torch.testing.assert_close(checkpoint.load_encoder(still).state_dict()["head.weight"], ict, atol=1e-9, rtol=0)
    assert not torch.equal(checkpoint.load_encoder(path["tuned"]).state_dict()["head.weight"], ict), (
        "and so does fine-tuning"
    )


def test_fine_tuning_hands_on_that_a_checkpoint_gave_no_vocabulary_head(home: Path, tmp_path: Path) -> None:
    step = {**FINETUNE, "steps": 1, "validate_every": None}
    inputs = FinetuneInputs(home / "tokens", home / "c", tmp_path / "start", home / "negatives")
    for told in ({}, {"no_vocabulary_head": 1}):
        shutil.rmtree(tmp_path / "start", ignore_errors=True)
        shutil.copytree(home / "shared", tmp_path / "start")
        with manifest.record(tmp_path / "start", stage="start", spec={}, inputs=[]) as facts:
            facts["results"] = told
        done = finetuned(step, inputs, tmp_path / "made", tmp_path / "state")
        assert done.counts == {"queries": 5} | told


def test_search_scores_are_products_of_the_two_towers(path: dict[str, Path], home: Path) -> None:
    model = path["tuned"]
    encode_all({"length": 16, "numerics": NUMERICS}, model, home / "tokens", home / "index")
    queries = Queries(QuerySample("test"), 8, 8, NUMERICS, "x")
    answer_exactly(queries, model, home / "tokens", home / "c", [home / "index"], home / "run")
    ranking = read_run(home / "run")["q7"]
    encoder, store = checkpoint.load_encoder(model).eval(), TokenStore(home / "tokens")
    passages = embed.embed_texts(encoder, store.passages, np.arange(8), 16)
    scores = {}
    for name, tower in (("queries", encoder.query_tower), ("passages", encoder)):
        query = embed.embed_texts(tower, store.queries, np.array([store.queries.names.index("q7")]), 8)[0]
        scores[name] = [float(passages[int(document[1:])] @ query) for document in ranking.documents]
    np.testing.assert_allclose(ranking.scores, scores["queries"], atol=1e-5)
    assert np.abs(np.array(ranking.scores) - scores["passages"]).max() > 1e-4


def test_the_projector_of_costa_is_fine_tuned_and_kept(home: Path) -> None:
    costa = pretrained(home, home / "shared", home / "costa/model", objective="costa", min_tokens=1)
    trained = checkpoint.load_heads(costa)["projector.2.weight"]
    first = tuned(home, costa, home / "first/model", projector="nonlinear", learning_rate=1e-12)
    second = tuned(home, first, home / "second/model", learning_rate=1e-2)
    one, two = checkpoint.load_encoder(first), checkpoint.load_encoder(second)
    assert one.config.projector == two.config.projector == "nonlinear"
    torch.testing.assert_close(one.state_dict()["projector.2.weight"], trained, atol=1e-9, rtol=0)
    assert (two.state_dict()["projector.2.weight"] - trained).abs().max() > 1e-3
    plain = tuned(home, costa, home / "plain/model")
    assert checkpoint.load_encoder(plain).config.projector == "none"


@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_against_an_index_the_passage_tower_stays_and_its_vectors_serve(home: Path, tmp_path: Path, kind: str) -> None:
    """ADORE: only the encoder of queries learns, so the passages of the start are those of the trained model."""
    encode_all({"length": 16, "numerics": NUMERICS}, home / kind, home / "tokens", tmp_path / "index")
    step = {**FINETUNE, "steps": 2, "negatives": "index", "loss": "lambda", "depth": 3, "validate_every": None}
    index = partial(vectors_by_row, [tmp_path / "index"])
    inputs = FinetuneInputs(home / "tokens", home / "c", home / kind, index=index)
    finetuned(step, inputs, tmp_path / "model", tmp_path / "state")
    before, after = (checkpoint.load_encoder(folder) for folder in (home / kind, tmp_path / "model"))
    for name, value in towers.passage_weights(before).items():
        assert torch.equal(value, after.state_dict()[name]), name
    moved = "encoder.layer.0.output.dense.weight"
    assert not torch.equal(before.query_tower.state_dict()[moved], after.query_tower.state_dict()[moved])
