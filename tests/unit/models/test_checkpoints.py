"""Checkpoints of several kinds become encoders with the same output; what does not fit is refused in one line."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import torch.nn.functional as F

from encore.config import checkpoints
from encore.data import checkpoint_vocabulary, vocabulary
from encore.errors import EncoreError
from encore.models.heads import MlmHead
from encore.models.start import start_model
from tests.support.small_checkpoints import SEED_PIECES, backbone, bert, seed_encoder
from tests.support.small_models import tokenizer_folder

IDS = torch.tensor([[2, 8, 9, 3]])


def rewritten(place: Path, change: Any) -> None:
    """Change the tensors of a safetensors checkpoint by name."""
    path = place / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    safetensors.torch.save_file(change(tensors), path, metadata={"format": "pt"})


@pytest.mark.parametrize("binary", [False, True])
def test_a_checkpoint_gives_its_weights_and_its_head(binary: bool, tmp_path: Path) -> None:
    model = bert(tmp_path / "bert", binary)
    tokenizer = tokenizer_folder(tmp_path / "tokenizer")
    encoder, tensors = start_model(backbone(projection_dim=4), 0, tokenizer, checkpoint=tmp_path / "bert")
    expected = model(IDS)
    states = encoder.eval()(IDS, None)
    head = MlmHead(encoder.config)
    head.load_state_dict({name.removeprefix("mlm."): tensor for name, tensor in tensors.items()})
    logits = head(states[0], encoder.word_embeddings)
    assert encoder.config.vocabulary == logits.shape[1] == len(vocabulary.pieces(vocabulary.load_tokenizer(tokenizer)))
    torch.testing.assert_close(logits, expected.prediction_logits[0, :, : logits.shape[1]], atol=1e-5, rtol=1e-5)
    assert encoder.dimension == 4
    assert encoder.head is not None
    assert encoder.head.weight.std() > 0


@pytest.mark.parametrize("prefix", ["", "bert.", "encoder.bert.", "lm.bert."])
def test_an_encoder_is_found_under_any_prefix(prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = bert(tmp_path / "bert")

    def moved(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        outer = prefix.removesuffix("bert.")
        return {
            (prefix + name.removeprefix("bert.") if name.startswith("bert.") else outer + name): tensor
            for name, tensor in tensors.items()
        }

    rewritten(tmp_path / "bert", moved)
    tokenizer = tokenizer_folder(tmp_path / "tokenizer")
    encoder, head = start_model(backbone(), 0, tokenizer, checkpoint=tmp_path / "bert")
    expected = model(IDS, output_hidden_states=True).hidden_states[-1]
    torch.testing.assert_close(encoder.eval()(IDS, None), expected, atol=1e-5, rtol=1e-5)
    assert "mlm.bias" in head
    said = capsys.readouterr().out
    assert "pooler.dense.bias, pooler.dense.weight" in said
    assert "cls.seq_relationship.weight" in said
    assert "no file names a similarity, so dot\n" in said


DECODER = "cls.predictions.decoder."


def test_a_bias_that_is_stored_with_the_decoder_alone_is_the_heads(tmp_path: Path) -> None:
    model = bert(tmp_path / "bert", pieces=93)
    bias = model.cls.predictions.bias.detach().clone()

    def moved(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return without("cls.predictions.bias")(tensors) | {DECODER + "bias": bias}

    rewritten(tmp_path / "bert", moved)
    _, head = start_model(backbone(), 0, tokenizer_folder(tmp_path / "tokenizer"), checkpoint=tmp_path / "bert")
    assert torch.equal(head["mlm.bias"], bias)


def test_a_head_with_word_embeddings_of_its_own_is_refused(tmp_path: Path) -> None:
    model = bert(tmp_path / "bert", pieces=93)
    words = model.bert.embeddings.word_embeddings.weight.detach().clone()
    tokenizer = tokenizer_folder(tmp_path / "tokenizer")
    rewritten(tmp_path / "bert", lambda tensors: tensors | {DECODER + "weight": words})
    start_model(backbone(), 0, tokenizer, checkpoint=tmp_path / "bert")  # stored twice, and the same
    words[5, 3] += 1
    rewritten(tmp_path / "bert", lambda tensors: tensors | {DECODER + "weight": words})
    with pytest.raises(
        EncoreError, match=r"does not share the word embeddings \(tie_word_embeddings: false\)"
    ) as caught:
        start_model(backbone(), 0, tokenizer, checkpoint=tmp_path / "bert")
    assert f"or take {DECODER}weight out of its weights" in str(caught.value)


def test_half_precision_is_widened(tmp_path: Path) -> None:
    bert(tmp_path / "bert")
    rewritten(tmp_path / "bert", lambda tensors: {name: tensor.half() for name, tensor in tensors.items()})
    encoder, _ = start_model(backbone(), 0, tokenizer_folder(tmp_path / "tokenizer"), checkpoint=tmp_path / "bert")
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}


def without(name: str) -> Any:
    return lambda tensors: {key: tensor for key, tensor in tensors.items() if key != name}


WEIGHT = "bert.encoder.layer.1.output.dense.weight"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without(WEIGHT), r"lacks encoder\.layer\.1\.output\.dense\.weight, so it is not the model"),
        (without("bert.embeddings.word_embeddings.weight"), r"has no embeddings\.word_embeddings\.weight"),
        (lambda tensors: tensors | {WEIGHT: torch.zeros(8, 16).char()}, r"weight is of type I8, and weights are read"),
        (lambda tensors: tensors | {WEIGHT: torch.zeros(8, 15)}, r"another shape of .*\(8 × 15, not 8 × 16\)"),
        (lambda tensors: tensors | {"bert.encoder.layer.2.x": torch.zeros(1)}, r"unknown encoder\.layer\.2\.x"),
        (
            lambda tensors: tensors | {"query.embeddings.word_embeddings.weight": torch.zeros(1)},
            r"several encoders \(bert\., query\.\)",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(change: Any, says: str, tmp_path: Path) -> None:
    bert(tmp_path / "bert")
    rewritten(tmp_path / "bert", change)
    with pytest.raises(EncoreError, match=says) as caught:
        start_model(backbone(), 0, tokenizer_folder(tmp_path / "tokenizer"), checkpoint=tmp_path / "bert")
    assert "\n" not in str(caught.value)


def test_a_configuration_that_is_not_the_backbones_is_refused(tmp_path: Path) -> None:
    bert(tmp_path / "bert")
    tokenizer, config = tokenizer_folder(tmp_path / "tokenizer"), tmp_path / "bert" / "config.json"
    with pytest.raises(EncoreError, match="write hidden: 8"):
        start_model(backbone(hidden=16), 0, tokenizer, checkpoint=tmp_path / "bert")
    with pytest.raises(EncoreError, match="write max_length: 20"):
        start_model(backbone(max_length=512), 0, tokenizer, checkpoint=tmp_path / "bert")
    with pytest.raises(EncoreError, match="give --checkpoint or --source"):
        start_model(backbone(), 0, tokenizer)
    said = json.loads(config.read_text())
    config.write_text(json.dumps(said | {"model_type": "roberta"}))
    with pytest.raises(EncoreError, match="says architecture 'transformers', but the backbone says 'bert'"):
        start_model(backbone(), 0, tokenizer, checkpoint=tmp_path / "bert")
    config.write_text(json.dumps(said | {"vocab_size": 50}))
    with pytest.raises(EncoreError, match="50 word embeddings for a tokenizer of 93 pieces"):
        start_model(backbone(), 0, tokenizer, checkpoint=tmp_path / "bert")
    bert(tmp_path / "more", pieces=93 + 129)
    with pytest.raises(EncoreError, match="weights for 222 pieces, and its tokenizer has 93; they do not belong"):
        start_model(backbone(), 0, tokenizer, checkpoint=tmp_path / "more")
    padded = bert(tmp_path / "padded", pieces=93 + 128)
    encoder, _ = start_model(backbone(), 0, tokenizer, checkpoint=tmp_path / "padded")
    own = padded.bert.embeddings.word_embeddings.weight[: len(vocabulary.pieces(vocabulary.load_tokenizer(tokenizer)))]
    torch.testing.assert_close(encoder.word_embeddings, own)
    for damaged in ("[1", '{"a": ' + "[" * 100_000):
        config.write_text(damaged)
        with pytest.raises(EncoreError, match="is not a JSON object"):
            start_model(backbone(), 0, tokenizer, checkpoint=tmp_path / "bert")
        with pytest.raises(EncoreError, match="is not a JSON object"):
            checkpoint_vocabulary.load_checkpoint_tokenizer(tmp_path / "bert")


class Harm:
    """What a pickle may run when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch harmed",)


@pytest.mark.parametrize("content", ["harm", "repeated", "cut short", "none"])
def test_a_binary_that_is_no_weights_is_refused_and_runs_nothing(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bert(tmp_path / "bert", binary=True)
    path = tmp_path / "bert" / "pytorch_model.bin"
    if content == "harm":
        torch.save({"bert.embeddings.word_embeddings.weight": Harm()}, path)
    if content == "repeated":
        torch.save({"bert.embeddings.word_embeddings.weight": torch.zeros(1).half().expand(10**6, 10**6)}, path)
    path.write_bytes(path.read_bytes()[: {"cut short": 2000, "none": 0}.get(content)])
    with pytest.raises(EncoreError, match=r"pytorch_model\.bin is damaged or holds no weights") as caught:
        start_model(backbone(), 0, tokenizer_folder(tmp_path / "tokenizer"), checkpoint=tmp_path / "bert")
    assert "\n" not in str(caught.value)
    assert "weights_only" not in str(caught.value), "nor is it advised"
    assert not Path("harmed").exists()


# Vocabularies


def checkpoint_folder(place: Path, **said: Any) -> Path:
    """A checkpoint that has its pieces in ``vocab.txt`` alone."""
    place.mkdir()
    for name, content in {"config.json": {}, "tokenizer_config.json": said}.items():
        (place / name).write_text(json.dumps(content))
    (place / "vocab.txt").write_text("\n".join([*vocabulary.SPECIAL, "A", "a", "stack", "é", "e", "##s", ""]))
    return place


@pytest.mark.parametrize(
    ("said", "pieces"),
    [
        ({}, ["a", "stack", "##s", "e"]),
        ({"do_lower_case": True}, ["a", "stack", "##s", "e"]),
        ({"do_lower_case": True, "strip_accents": False}, ["a", "stack", "##s", "é"]),
        ({"do_lower_case": False}, ["A", "stack", "##s", "é"]),
    ],
)
def test_a_list_of_pieces_is_read_as_transformers_reads_it(
    said: dict[str, bool], pieces: list[str], tmp_path: Path
) -> None:
    from transformers import BertTokenizerFast

    place = checkpoint_folder(tmp_path / "place", **said)
    ours = checkpoint_vocabulary.load_checkpoint_tokenizer(place).encode("A stacks é")
    assert ours.tokens == ["[CLS]", *pieces, "[SEP]"]
    theirs = BertTokenizerFast(str(place / "vocab.txt"), **said)
    assert ours.ids == theirs("A stacks é")["input_ids"]


def test_bad_lists_of_pieces_are_refused(tmp_path: Path) -> None:
    place = checkpoint_folder(tmp_path / "place")
    path = place / "vocab.txt"
    good = path.read_text()
    path.write_text(good + "stack\n")
    with pytest.raises(EncoreError, match=r"line 12: 'stack' is in line 8 already"):
        checkpoint_vocabulary.load_checkpoint_tokenizer(place)
    path.write_text(good.replace("[MASK]", "mask"))
    with pytest.raises(EncoreError, match=r"vocab\.txt lacks \[MASK\]"):
        checkpoint_vocabulary.load_checkpoint_tokenizer(place)


# SEED-Encoder


def roberta(tensors: dict[str, torch.Tensor], ids: torch.Tensor) -> torch.Tensor:
    """SEED-Encoder's forward pass by its own description, of one text without padding: states [L, 8]."""
    root = "seed_encoder.encoder.sentence_encoder."

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, tensors[f"{root}{name}.weight"], tensors[f"{root}{name}.bias"])

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, (8,), tensors[f"{root}{name}.weight"], tensors[f"{root}{name}.bias"], 1e-5)

    places = torch.arange(len(ids)) + 2  # behind the padding's id, 1
    x = tensors[f"{root}embed_tokens.weight"][ids] + tensors[f"{root}embed_positions.weight"][places]
    x = norm(x, "emb_layer_norm")
    for number in range(2):
        own = f"layers.{number}."
        q, k, v = (linear(x, f"{own}self_attn.{part}_proj").view(-1, 2, 4).transpose(0, 1) for part in "qkv")
        attended = ((q @ k.transpose(1, 2)) / 2).softmax(-1) @ v
        x = norm(
            x + linear(attended.transpose(0, 1).reshape(-1, 8), f"{own}self_attn.out_proj"),
            f"{own}self_attn_layer_norm",
        )
        x = norm(x + linear(F.gelu(linear(x, f"{own}fc1")), f"{own}fc2"), f"{own}final_layer_norm")
    return x


def test_seed_encoders_weights_give_its_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensors = seed_encoder(tmp_path / "archive" / "SEED-Encoder-3-decoder-layers")
    place = checkpoints.inside(tmp_path / "archive")
    vocabulary.save_tokenizer(checkpoint_vocabulary.load_checkpoint_tokenizer(place), tmp_path / "tokenizer")
    encoder, head = start_model(backbone(), 0, tmp_path / "tokenizer", checkpoint=place)
    assert (encoder.config.pad, encoder.config.cls, encoder.config.sep, encoder.config.mask) == (1, 0, 2, 12)
    ids = vocabulary.load_tokenizer(tmp_path / "tokenizer").encode("a stack!").ids
    states = encoder.eval()(torch.tensor([ids]), None)[0]
    torch.testing.assert_close(states, roberta(tensors, torch.tensor(ids)), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(head["mlm.transform.LayerNorm.bias"], tensors["lm_head.layer_norm.bias"])
    assert "decoder.layers.0.fc1.bias" in capsys.readouterr().out


def test_seed_encoders_vocabulary_is_lower_case_with_accents_and_a_mask_of_its_own(tmp_path: Path) -> None:
    seed_encoder(tmp_path / "seed")
    tokenizer = checkpoint_vocabulary.load_checkpoint_tokenizer(tmp_path / "seed")
    assert tokenizer.get_vocab_size() == len(SEED_PIECES) + 1
    assert tokenizer.encode("Café RÉSUMÉ!").tokens == ["[CLS]", "caf", "##é", "résumé", "!", "[SEP]"]
    assert tokenizer.encode("[MASK]").ids == [0, len(SEED_PIECES), 2]
    assert tokenizer.id_to_token(SEED_PIECES.index("[MASK]")) == "<mask>"
