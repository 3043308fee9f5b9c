"""Model folders: read back, read by Hugging Face and Sentence Transformers, damaged ones refused."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from encore.data import vocabulary
from encore.errors import EncoreError
from encore.models import checkpoint, inputs
from encore.models.decoders import AutoEncodingDecoder, AutoRegressionDecoder
from encore.models.encoder import Encoder
from encore.models.heads import MlmHead
from encore.storage.files import sha256
from tests.support.small_models import TEXTS, random_encoder, tokenizer_folder


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokenizer_folder(tmp_path_factory.mktemp("tokenizer"))


def own_vectors(encoder: Encoder, tokenizer: Path, length: int) -> np.ndarray:
    rows = vocabulary.load_tokenizer(tokenizer).encode_batch(TEXTS, add_special_tokens=False)
    ids, mask = inputs.pad([np.array(row.ids) for row in rows], length, encoder.config)
    with torch.inference_mode():
        return encoder.eval().embed(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()


def test_a_folder_reads_back(tokenizer: Path, tmp_path: Path) -> None:
    encoder = random_encoder(pooling="mean", similarity="cosine", projection_dim=6, dropout=0.1)
    checkpoint.save_model(encoder, {}, tmp_path, tokenizer, length=12, query_length=8)
    again = checkpoint.load_encoder(tmp_path)
    assert again.config == encoder.config
    assert {name: tuple(tensor.shape) for name, tensor in again.named_parameters()} == {
        name: tuple(tensor.shape) for name, tensor in encoder.named_parameters()
    }
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in encoder.state_dict().items())
    assert all(parameter.requires_grad for parameter in again.parameters())
    assert not (tmp_path / "heads.safetensors").exists()


def test_equal_weights_give_equal_bytes(tokenizer: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        encoder = random_encoder(projection_dim=6)
        checkpoint.save_model(
            encoder, {"mlm.bias": torch.arange(3.0), "other": torch.ones(2)}, tmp_path / name, tokenizer
        )
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert len(files) > 8
    assert all(sha256(tmp_path / "a" / path) == sha256(tmp_path / "b" / path) for path in files)


def test_heads_are_saved_under_their_usual_names(tokenizer: Path, tmp_path: Path) -> None:
    encoder = random_encoder()
    heads = torch.nn.ModuleDict({"mlm": MlmHead(encoder.config), "projector": torch.nn.Linear(16, 16)})
    checkpoint.save_model(encoder, heads, tmp_path, tokenizer)
    assert "cls.predictions.transform.dense.weight" in checkpoint.read_tensors(tmp_path / "heads.safetensors")
    assert set(checkpoint.load_heads(tmp_path)) == set(heads.state_dict())
    fresh = torch.nn.ModuleDict({"mlm": MlmHead(encoder.config), "projector": torch.nn.Linear(16, 3)})
    restored = checkpoint.restore_heads(fresh, tmp_path)
    assert [name for name in restored if not name.startswith("mlm.")] == []
    assert len(restored) == 5
    assert all(torch.equal(fresh.state_dict()[name], heads.state_dict()[name]) for name in restored)


def test_a_module_of_another_kind_under_the_same_name_gives_nothing(tokenizer: Path, tmp_path: Path) -> None:
    encoder = random_encoder()
    parent = {"decoder": AutoEncodingDecoder(encoder.config, 1)}
    checkpoint.save_model(encoder, torch.nn.ModuleDict(parent), tmp_path, tokenizer)
    others = [AutoRegressionDecoder(encoder.config, 1), AutoEncodingDecoder(encoder.config, 2)]
    assert [checkpoint.restore_heads(torch.nn.ModuleDict({"decoder": other}), tmp_path) for other in others] == [[], []]
    same = torch.nn.ModuleDict({"decoder": AutoEncodingDecoder(encoder.config, 1)})
    assert checkpoint.restore_heads(same, tmp_path) == sorted(same.state_dict())


def test_a_vocabulary_head_goes_on_from_a_bias_alone(tokenizer: Path, tmp_path: Path) -> None:
    encoder = random_encoder()
    bias = torch.arange(float(encoder.config.vocabulary))
    checkpoint.save_model(encoder, {"mlm.bias": bias}, tmp_path, tokenizer)
    fresh = torch.nn.ModuleDict({"mlm": MlmHead(encoder.config)})
    assert checkpoint.restore_heads(fresh, tmp_path) == ["mlm.bias"]
    assert torch.equal(fresh["mlm"].bias, bias)


def test_auto_model_finds_every_weight(tokenizer: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    encoder = random_encoder(projection_dim=6).eval()
    checkpoint.save_model(encoder, {}, tmp_path, tokenizer)
    model, report = AutoModel.from_pretrained(tmp_path, add_pooling_layer=False, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    ids = torch.tensor([[2, 9, 10, 11, 3]])
    torch.testing.assert_close(model.eval()(ids).last_hidden_state, encoder(ids, None), atol=1e-5, rtol=0)


def test_auto_tokenizer_gives_the_same_ids(tokenizer: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    encoder = random_encoder()
    checkpoint.save_model(encoder, {}, tmp_path, tokenizer)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    odd = [*TEXTS, "  ÄÖ ctl\x00\x01 [MASK] [SEP] don't   日本 🙂 ﬁn", ""]
    own = [row.ids for row in vocabulary.load_tokenizer(tokenizer).encode_batch(odd)]
    assert theirs(odd)["input_ids"] == own
    specials = vocabulary.special_tokens(vocabulary.load_tokenizer(tokenizer), tokenizer)
    assert theirs.mask_token_id == specials.mask
    assert theirs.pad_token_id == encoder.config.pad
    assert theirs(TEXTS[0], TEXTS[1])["token_type_ids"][-1] == 1


@pytest.mark.parametrize("pooling", ["cls", "mean", "content"])
@pytest.mark.parametrize(("similarity", "head"), [("dot", None), ("cosine", None), ("dot", 6), ("cosine", 6)])
def test_sentence_transformer_gives_the_same_vectors(
    tokenizer: Path, tmp_path: Path, pooling: str, similarity: str, head: int | None
) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = random_encoder(pooling=pooling, similarity=similarity, projection_dim=head)
    checkpoint.save_model(encoder, {}, tmp_path, tokenizer, length=9)
    model = SentenceTransformer(str(tmp_path), device="cpu")
    assert model.max_seq_length == 9
    assert model.similarity_fn_name == similarity
    assert model[0].auto_model.pooler is None, "nothing is missing that it would draw at random and report"
    theirs = model.encode(TEXTS)
    np.testing.assert_allclose(own_vectors(encoder, tokenizer, 9), theirs, atol=1e-5)
    assert np.abs(theirs - own_vectors(random_encoder(seed=1, projection_dim=head), tokenizer, 9)).max() > 0.05


def test_damage_is_named(tokenizer: Path, tmp_path: Path) -> None:
    checkpoint.save_model(random_encoder(), {}, tmp_path, tokenizer)
    (tmp_path / "encoder.json").write_text(json.dumps({"shape": {"vocabulary": 96, "wings": 2}}))
    with pytest.raises(EncoreError, match=r"encoder\.json (is damaged|is not a JSON object)"):
        checkpoint.load_encoder(tmp_path)
    checkpoint.save_model(random_encoder(layers=1), {}, tmp_path / "small", tokenizer)
    checkpoint.save_model(random_encoder(), {}, tmp_path, tokenizer)
    (tmp_path / "model.safetensors").write_bytes((tmp_path / "small" / "model.safetensors").read_bytes())
    with pytest.raises(EncoreError, match="do not fit"):
        checkpoint.load_encoder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(EncoreError, match=r"model\.safetensors is damaged"):
        checkpoint.load_encoder(tmp_path)
    checkpoint.write_tensors(tmp_path / "model.safetensors", {f"{at:040}": torch.zeros(0) for at in range(12_000)})
    with pytest.raises(
        EncoreError, match=r"model\.safetensors lists its tensors in 1,\d{3},\d{3} bytes, which no model"
    ):
        checkpoint.load_encoder(tmp_path)
    with pytest.raises(EncoreError, match="is missing"):
        checkpoint.load_encoder(tmp_path / "none")
