"""The bag of words: its formula by NumPy, its gradient, its size, its folder, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from pydantic import ValidationError

from encore import objectives
from encore.config.entries import Backbone
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.tokens import TokenStore, write_store
from encore.errors import EncoreError
from encore.finetuning.step import FinetuneInputs
from encore.models import checkpoint, flops, lsa, towers
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.start import start_model
from encore.models.towers import BowMlp
from tests.support.small_decoding import assert_gradient, draw
from tests.support.small_home import finetuned
from tests.support.small_models import TEXTS, random_batch, tokenizer_folder
from tests.support.small_store import random_store
from tests.support.whole_loss import whole_loss

ROOT = Path(__file__).parents[3]
SHAPE = EncoderConfig(
    vocabulary=96, hidden=8, intermediate=5, projection_dim=3, pooling="content", architecture="bow-mlp"
)
BACKBONE = {
    "start": "random",
    "architecture": "bow-mlp",
    "hidden": 16,
    "intermediate": 8,
    "projection_dim": 6,
    "max_length": 16,
}
BACKBONE |= {"projection_dim": 6, "pooling": "content", "similarity": "cosine", "dropout": 0.0, "encoders": "separate"}
STEP = {"collection": "c", "batch": 4, "learning_rate": 1e-2, "length": 16, "query_length": 8, "source": "a test"}


def by_definition(encoder: BowMlp, ids: np.ndarray) -> np.ndarray:
    """W2 tanh(W1 mean + b1) + b2 of each row, word by word."""
    weights = {name: tensor.detach().numpy() for name, tensor in encoder.state_dict().items()}
    vectors = []
    for row in ids:
        rows = [weights["words.weight"][piece] for piece in row if piece not in (0, 2, 3)]  # padding, [CLS], [SEP]
        inner = np.tanh(weights["inner.weight"] @ np.mean(rows, axis=0) + weights["inner.bias"])
        vectors.append(weights["head.weight"] @ inner + weights["head.bias"])
    return np.array(vectors)


def test_a_vector_is_what_the_formula_says() -> None:
    torch.manual_seed(0)
    encoder = BowMlp(SHAPE).double()
    ids, mask = random_batch(SHAPE, [7, 4, 9])
    found = encoder.embed(ids, mask).detach().numpy()
    assert np.allclose(found, by_definition(encoder, ids.numpy()), atol=1e-12)
    cosine = BowMlp(replace(SHAPE, similarity="cosine")).double()
    cosine.load_state_dict(encoder.state_dict())
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    assert np.allclose(cosine.embed(ids, mask).detach().numpy(), found / lengths, atol=1e-12)


def test_a_text_without_words_has_a_finite_vector() -> None:
    assert torch.isfinite(BowMlp(SHAPE).embed(torch.tensor([[2, 3, 0]]), None)).all()


def test_the_gradient_is_that_of_the_formula() -> None:
    encoder = BowMlp(SHAPE)
    draw(encoder, 1)
    ids, mask = random_batch(SHAPE, [6, 5])
    mixing = torch.randn(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    loss = (encoder.embed(ids, mask) * mixing).sum()
    formula = lambda: float((by_definition(encoder, ids.numpy()) * mixing.numpy()).sum())  # noqa: E731
    assert_gradient(loss, encoder, formula, directions=4)


def test_the_papers_model_has_127_million_parameters_a_tower() -> None:
    backbone = Backbone(**yaml.safe_load((ROOT / "config/backbones.yaml").read_text())["bow-mlp"])
    shape = EncoderConfig(30522, hidden=backbone.hidden, intermediate=backbone.intermediate,
                  projection_dim=backbone.projection_dim,
                  architecture=backbone.architecture)  # fmt: skip
    with torch.device("meta"):
        one, two = towers.build_encoder(shape), towers.build_encoder(replace(shape, encoders="separate"))
    assert sum(parameter.numel() for parameter in one.parameters()) == 30522 * 4096 + 4097 * 512 + 513 * 512
    assert sum(parameter.numel() for parameter in one.parameters()) == 127_378_432
    assert sum(parameter.numel() for parameter in two.parameters()) == 2 * 127_378_432


def test_operations_are_those_of_its_two_layers() -> None:
    assert flops.forward(SHAPE, 4, 100) == 2 * 4 * (8 * 5 + 5 * 3)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    texts = [f"{text} And more of it, {number} times." for number, text in enumerate(TEXTS * 2)]
    roles = {"train": range(5), "valid": range(5, 7), "test": range(7, 8)}
    write_collection(
        home / "c",
        [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(texts)],
        [{"_id": f"q{i}", "text": text[:12]} for i, text in enumerate(texts)],
        {role: [Judgment(f"q{i}", f"d{i}", 1) for i in rows] for role, rows in roles.items()},
    )
    write_store(Collection(home / "c"), tokenizer_folder(home / "tokenizer"), home / "tokens")
    return home


def started(home: Path, **changes: object) -> Encoder:
    backbone = Backbone(**{**BACKBONE, **changes})
    return start_model(backbone, 0, home / "tokenizer", home / "tokens" if backbone.start == "lsa" else None)[0]


def test_a_random_start_tells_texts_apart(home: Path) -> None:
    encoder = started(home, encoders="shared", similarity="dot", hidden=512, intermediate=64, projection_dim=64)
    ids, mask = random_batch(encoder.config, [12] * 16)
    vectors = torch.nn.functional.normalize(encoder.embed(ids, mask), dim=1)
    assert (vectors @ vectors.T)[~torch.eye(16, dtype=torch.bool)].mean() < 0.5
    again = started(home, encoders="shared", similarity="dot", hidden=512, intermediate=64, projection_dim=64)
    assert torch.equal(encoder.embed(ids, mask), again.embed(ids, mask))


def test_an_lsa_start_has_rows_as_long_as_random_ones(home: Path) -> None:
    encoder = started(home, start="lsa", hidden=4, encoders="shared")
    known, _ = lsa.embeddings(TokenStore(home / "tokens"), 4, 0.5, 0)
    lengths = encoder.word_embeddings.norm(dim=1)[torch.from_numpy(known)]
    assert len(lengths) > 10
    assert torch.allclose(lengths, torch.tensor(2.0))  # the root of 4, as rows of deviation 1 have on average


def test_a_folder_gives_the_model_back(home: Path, tmp_path: Path) -> None:
    encoder = started(home)
    with torch.no_grad():
        encoder.query_tower.word_embeddings.mul_(2).add_(torch.randn_like(encoder.word_embeddings))
    checkpoint.save_model(encoder, {}, tmp_path / "m", home / "tokenizer", 16, 8)
    read = checkpoint.load_encoder(tmp_path / "m")
    assert type(read) is type(read.query_encoder) is BowMlp
    assert read.config == encoder.config
    ids, mask = random_batch(encoder.config, [9, 5])
    for one, other in ((encoder, read), (encoder.query_tower, read.query_tower)):
        assert torch.equal(one.embed(ids, mask), other.embed(ids, mask))
    assert not torch.equal(read.embed(ids, mask), read.query_tower.embed(ids, mask))
    assert json.loads((tmp_path / "m/config.json").read_text()) == {"model_type": "bow-mlp"}
    assert not (tmp_path / "m/modules.json").exists()


def test_a_transformers_folder_says_nothing_of_architectures() -> None:
    assert "architecture" not in EncoderConfig(96).to_json()
    assert SHAPE.to_json()["architecture"] == "bow-mlp"
    assert EncoderConfig.from_json(SHAPE.to_json()) == SHAPE


@pytest.mark.parametrize("name", ["ict", "bfs", "wlp", "ict_bfs_wlp"])
def test_the_objectives_of_pairs_train_it(name: str) -> None:
    """Loss and gradient in both towers; their contrast reads nothing but vectors."""
    kind = objectives.load(name)
    fields = kind.Fields(kind="pretrain", objective=name, steps=1, temperature=0.5, **{**STEP, "length": 40})
    task = kind(fields, random_store())
    torch.manual_seed(0)
    encoder = towers.build_encoder(replace(SHAPE, vocabulary=100, encoders="separate", max_length=64))
    rng = np.random.default_rng(0)
    batch = task.collate([task.example(index, rng) for index in range(4)])
    tensors = {key: torch.from_numpy(value) for key, value in batch.items()}
    heads = task.heads(encoder)
    whole_loss(task, encoder, heads, tensors)["loss"].backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in encoder.parameters())
    assert task.flops(encoder, batch) > 0


def test_it_is_fine_tuned_without_negatives(home: Path, tmp_path: Path) -> None:
    checkpoint.save_model(started(home), {}, tmp_path / "start", home / "tokenizer")
    step = {"kind": "finetune", "negatives": "none", "logq_correction": True, "temperature": 0.5, "steps": 30, **STEP}
    step |= {"validate_every": 10, "validation_measure": "R@10"}
    output = tmp_path / "out/model"
    inputs = FinetuneInputs(home / "tokens", home / "c", tmp_path / "start")
    done = finetuned(step, inputs, output, tmp_path / "state")
    assert done.losses[-1].terms["contrast"] < done.losses[0].terms["contrast"]
    assert (output / "validation.tsv").read_text().startswith("step\tr@10\n")
    before, after = checkpoint.load_encoder(tmp_path / "start"), checkpoint.load_encoder(output)
    assert not torch.equal(before.query_tower.word_embeddings, after.query_tower.word_embeddings)
    assert TokenStore(home / "tokens").vocabulary == after.config.vocabulary


def test_states_of_tokens_are_refused() -> None:
    with pytest.raises(
        EncoreError, match="has no states of tokens, which this step learns from; pre-train it with ict"
    ):
        BowMlp(SHAPE)(torch.tensor([[2, 7, 3]]), None)


@pytest.mark.parametrize("change", [{"projection_dim": None}, {"pooling": "mean"}, {"start": "checkpoint"}])
def test_a_backbone_that_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="architecture bow-mlp needs `projection_dim`"):
        Backbone(**{**BACKBONE, **change})
