"""Two towers and projectors: which weights learn, what is saved, and what fine-tuning goes on from."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from encore.config.entries import Backbone
from encore.errors import EncoreError
from encore.models import checkpoint, flops, towers
from encore.models.encoder import Encoder
from encore.models.heads import projector
from encore.models.start import start_model
from encore.models.towers import project
from encore.storage.files import sha256
from encore.storage.manifest import read_manifest, record, verify
from tests.support.small_models import random_batch, random_encoder, tokenizer_folder
from tests.support.small_objective import batch_of, heads_of, make
from tests.support.small_objective import encoder as small_encoder
from tests.support.whole_loss import whole_loss


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokenizer_folder(tmp_path_factory.mktemp("tokenizer"))


def different_towers(**changes: object) -> Encoder:
    encoder = towers.separate_encoders(random_encoder(**changes))
    encoder.query_encoder.load_state_dict(random_encoder(seed=1, **changes).state_dict())
    return encoder


def learning(encoder: Encoder) -> Iterator[str]:
    """The towers that have a gradient."""
    for name, parameter in encoder.named_parameters():
        if parameter.grad is not None and parameter.grad.abs().max() > 0:
            yield "queries" if name.startswith(towers.QUERY) else "passages"


@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_towers_start_as_one(tokenizer: Path, kind: str) -> None:
    backbone = Backbone(start="random", layers=1, hidden=8, heads=2, intermediate=8, max_length=16, encoders=kind)
    encoder, _ = start_model(backbone, 3, tokenizer)
    alone, _ = start_model(backbone.model_copy(update={"encoders": "shared"}), 3, tokenizer)
    own = alone.state_dict()
    assert all(torch.equal(tensor, encoder.query_tower.state_dict()[name]) for name, tensor in own.items())
    assert all(torch.equal(tensor, encoder.state_dict()[name]) for name, tensor in own.items())
    assert (encoder.query_tower is encoder) == (kind == "shared")
    assert encoder.query_tower.config == alone.config


def test_gradients_reach_only_the_tower_that_read_the_text() -> None:
    for text in ("queries", "passages"):
        encoder = different_towers()
        batch = random_batch(encoder.config, [5, 3])
        (encoder.query_tower if text == "queries" else encoder).embed(*batch).square().sum().backward()
        assert set(learning(encoder)) == {text}


def test_pairs_train_both_towers_and_a_step_parts_them() -> None:
    objective, model = make("ict"), towers.separate_encoders(small_encoder(projection_dim=16)).train()
    _, batch = batch_of(objective)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    whole_loss(objective, model, heads_of(objective, model), batch)["loss"].backward()
    assert set(learning(model)) == {"queries", "passages"}
    optimiser.step()
    same = [torch.equal(tensor, model.state_dict()[name]) for name, tensor in model.query_tower.state_dict().items()]
    assert not any(same)


def test_both_towers_are_saved_and_each_folder_is_a_whole_model(tokenizer: Path, tmp_path: Path) -> None:
    encoder = different_towers(projection_dim=6, similarity="cosine")
    checkpoint.save_model(encoder, {"mlm.bias": torch.ones(3)}, tmp_path / "a", tokenizer, length=12, query_length=8)
    again = checkpoint.load_encoder(tmp_path / "a")
    assert again.config == encoder.config
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in encoder.state_dict().items())
    query = checkpoint.load_encoder(tmp_path / "a" / checkpoint.QUERY)
    assert query.config == encoder.query_tower.config
    assert all(
        torch.equal(tensor, query.state_dict()[name]) for name, tensor in encoder.query_tower.state_dict().items()
    )
    checkpoint.save_model(
        again, checkpoint.load_heads(tmp_path / "a"), tmp_path / "b", tokenizer, length=12, query_length=8
    )
    files = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert all(sha256(tmp_path / "a" / path) == sha256(tmp_path / "b" / path) for path in files)
    assert Path("query/model.safetensors") in files
    assert Path("query/heads.safetensors") not in files


@pytest.mark.parametrize(("kind", "head"), [("linear", None), ("nonlinear", 6)])
def test_sentence_transformer_opens_either_tower(tokenizer: Path, tmp_path: Path, kind: str, head: int | None) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = different_towers(projector=kind, projection_dim=head, similarity="cosine").eval()
    checkpoint.save_model(encoder, {}, tmp_path, tokenizer, length=12, query_length=8)
    text = "a list of calls"
    for place, tower, length in ((tmp_path, encoder, 12), (tmp_path / "query", encoder.query_tower, 8)):
        model = SentenceTransformer(str(place), device="cpu")
        assert model.max_seq_length == length
        ids = torch.tensor(model.tokenizer([text])["input_ids"])
        with torch.inference_mode():
            np.testing.assert_allclose(model.encode([text]), tower.embed(ids, None).numpy(), atol=1e-5)


def test_the_manifest_watches_the_query_tower(tokenizer: Path, tmp_path: Path) -> None:
    with record(tmp_path, stage="start", spec={}, inputs=[]):
        checkpoint.save_model(different_towers(), {}, tmp_path, tokenizer)
    assert "query/model.safetensors" in read_manifest(tmp_path)["outputs"]
    verify(tmp_path)
    (tmp_path / "query/model.safetensors").write_bytes(b"nothing")
    with pytest.raises(EncoreError, match=r"query/model\.safetensors"):
        verify(tmp_path)


@pytest.mark.parametrize("kind", ["linear", "nonlinear"])
def test_a_projector_is_counted_as_torch_does(kind: str) -> None:
    encoder = random_encoder(projector=kind, projection_dim=5)
    ids, _ = random_batch(encoder.config, [12, 12])
    with FlopCounterMode(display=False) as counter, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        encoder.pool(encoder(ids, None), ids, None)
    assert counter.get_total_flops() == flops.forward(encoder.config, 2, 12)


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
@pytest.mark.parametrize("kind", ["linear", "nonlinear"])
def test_the_projector_stands_between_pooling_and_head(kind: str, similarity: str) -> None:
    encoder = random_encoder(projector=kind, projection_dim=5, similarity=similarity).eval()
    ids, mask = random_batch(encoder.config, [9, 4])
    weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
    vector = encoder(ids, mask)[:, 0].double()
    if kind == "linear":
        vector = vector @ weights["projector.weight"].T + weights["projector.bias"]
    else:
        vector = vector @ weights["projector.0.weight"].T + weights["projector.0.bias"]
        vector = vector * (1 + torch.erf(vector / 2**0.5)) / 2
        vector = vector @ weights["projector.2.weight"].T + weights["projector.2.bias"]
    vector = vector @ weights["head.weight"].T + weights["head.bias"]
    if similarity == "cosine":
        vector = vector / vector.norm(dim=1, keepdim=True)
    torch.testing.assert_close(encoder.embed(ids, mask).double(), vector, atol=1e-5, rtol=0)


def heads_of_costa(kind: str) -> dict[str, torch.Tensor]:
    torch.manual_seed(5)
    return nn.ModuleDict({"projector": projector(kind, 16)}).state_dict()


@pytest.mark.parametrize("kind", ["linear", "nonlinear"])
@pytest.mark.parametrize("two", [False, True])
def test_a_pre_trained_projector_goes_on(kind: str, two: bool) -> None:
    encoder = towers.separate_encoders(random_encoder()) if two else random_encoder()
    heads = heads_of_costa(kind)
    project(encoder, kind, heads, chance=0)
    assert heads
    for tower in (encoder, encoder.query_tower):
        assert tower.config.projector == kind
        assert all(torch.equal(tower.state_dict()[name], tensor) for name, tensor in heads.items())
    if two:
        own = [parameter.data_ptr() for parameter in encoder.projector.parameters()]
        assert not set(own) & {parameter.data_ptr() for parameter in encoder.query_tower.projector.parameters()}


@pytest.mark.parametrize("heads", ["none", "linear"])
def test_without_a_fitting_one_it_is_drawn_from_the_seed(heads: str) -> None:
    drawn = []
    for seed in (0, 0, 1):
        encoder = random_encoder()
        project(encoder, "nonlinear", heads_of_costa(heads), seed)
        drawn.append(encoder.state_dict()["projector.0.weight"])
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_a_projector_stays_in_further_steps_and_is_never_exchanged() -> None:
    encoder = random_encoder(projector="linear")
    before = encoder.state_dict()["projector.weight"].clone()
    for kind in ("none", "linear"):
        project(encoder, kind, heads_of_costa("linear"), chance=0)
        assert torch.equal(encoder.state_dict()["projector.weight"], before)
    with pytest.raises(EncoreError, match="has a linear projector, the step wants a nonlinear one"):
        project(encoder, "nonlinear", {}, chance=0)
