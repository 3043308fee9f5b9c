"""The encoder against Hugging Face's BertModel; pooling, heads, and padding."""

import numpy as np
import pytest
import torch

from encore.errors import EncoreError
from encore.models import heads, inputs
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.heads import MlmHead
from tests.support.small_models import random_batch, random_encoder

LENGTHS = [9, 4, 12, 2]


def bert_of(encoder: Encoder) -> torch.nn.Module:
    """Hugging Face's model with the same weights."""
    from transformers import BertConfig, BertModel

    shape = encoder.config
    config = BertConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=shape.max_length,
    )
    bert = BertModel(config, add_pooling_layer=False).eval()
    bert.load_state_dict(encoder.state_dict())
    return bert


@pytest.mark.parametrize("lengths", [LENGTHS, [7, 7, 7]])
def test_states_equal_those_of_bert(lengths: list[int]) -> None:
    encoder = random_encoder().eval()
    ids, mask = random_batch(encoder.config, lengths)
    with torch.inference_mode():
        own = encoder(ids, mask)
        theirs = bert_of(encoder)(ids, attention_mask=mask.long()).last_hidden_state
    torch.testing.assert_close(own[mask], theirs[mask], atol=1e-5, rtol=0)
    assert own[mask].std() > 0.1  # the comparison sees something


def test_segments_equal_those_of_bert() -> None:
    encoder = random_encoder().eval()
    ids, mask = random_batch(encoder.config, LENGTHS)
    segments = (torch.arange(ids.shape[1]) > 2).long().expand_as(ids)
    with torch.inference_mode():
        own = encoder(ids, mask, segments)
        theirs = bert_of(encoder)(ids, attention_mask=mask.long(), token_type_ids=segments).last_hidden_state
    torch.testing.assert_close(own[mask], theirs[mask], atol=1e-5, rtol=0)
    assert (own - encoder(ids, mask)).abs().max() > 0.01


@pytest.mark.parametrize("pooling", ["cls", "mean", "content"])
@pytest.mark.parametrize("similarity", ["dot", "cosine"])
@pytest.mark.parametrize("head", [None, 5])
def test_vectors(pooling: str, similarity: str, head: int | None) -> None:
    encoder = random_encoder(pooling=pooling, similarity=similarity, projection_dim=head).eval()
    ids, mask = random_batch(encoder.config, [9, 4, 12])
    with torch.inference_mode():
        states, own = encoder(ids, mask).double().numpy(), encoder.embed(ids, mask).numpy()
    assert own.shape == (3, encoder.dimension)
    for row, length in enumerate([9, 4, 12]):
        chosen = {"cls": slice(0, 1), "mean": slice(0, length), "content": slice(1, length - 1)}[pooling]
        vector = states[row, chosen].mean(0)
        if encoder.head is not None:
            vector = encoder.head.weight.detach().double().numpy() @ vector + encoder.head.bias.detach().numpy()
        if similarity == "cosine":
            vector = vector / np.linalg.norm(vector)
        np.testing.assert_allclose(own[row], vector, atol=1e-5)


def test_an_empty_text_has_a_finite_vector() -> None:
    encoder = random_encoder(pooling="content", similarity="cosine").eval()
    ids, mask = random_batch(encoder.config, [2, 5])
    assert torch.isfinite(encoder.embed(ids, mask)).all()


def test_no_mask_reaches_attention_when_nothing_is_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    attention = torch.nn.functional.scaled_dot_product_attention

    def watched(*args: torch.Tensor, attn_mask: torch.Tensor | None, dropout_p: float) -> torch.Tensor:
        seen.append(attn_mask)
        return attention(*args, attn_mask=attn_mask, dropout_p=dropout_p)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    encoder = random_encoder(layers=1).eval()
    encoder(*random_batch(encoder.config, [6, 6]))
    encoder(*random_batch(encoder.config, [6, 3]))
    assert [mask is None for mask in seen] == [True, False]


def test_with_dropout_training_is_random() -> None:
    encoder = random_encoder(dropout=0.1)
    batch = random_batch(encoder.config, LENGTHS)
    assert not torch.equal(encoder.train()(*batch), encoder(*batch))
    assert torch.equal(encoder.eval()(*batch), encoder(*batch))


def test_texts_longer_than_the_positions_are_refused() -> None:
    encoder = random_encoder()
    with pytest.raises(EncoreError, match=r"21 tokens.*20 positions"):
        encoder(*random_batch(encoder.config, [21]))


def test_a_width_that_heads_do_not_divide_is_refused() -> None:
    with pytest.raises(EncoreError, match="width 16 cannot have 3"):
        EncoderConfig(vocabulary=10, hidden=16, heads=3)


def test_mlm_head_equals_that_of_bert() -> None:
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertLMPredictionHead

    encoder = random_encoder()
    head = MlmHead(encoder.config)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    theirs = BertLMPredictionHead(BertConfig(vocab_size=96, hidden_size=16))
    theirs.load_state_dict(head.state_dict() | {"decoder.weight": encoder.word_embeddings, "decoder.bias": head.bias})
    hidden = torch.randn(3, 7, 16)
    positions = torch.tensor([0, 8, 20])
    own = head(heads.at(hidden, positions), encoder.word_embeddings)
    torch.testing.assert_close(own, theirs(hidden).flatten(0, 1)[positions], atol=1e-5, rtol=1e-5)


def test_initial_weights_are_berts() -> None:
    encoder = Encoder(EncoderConfig(vocabulary=500, layers=1, hidden=64, heads=2, intermediate=64, projection_dim=64))
    torch.manual_seed(3)
    heads.initialise(encoder)
    again = Encoder(encoder.config)
    torch.manual_seed(3)
    heads.initialise(again)
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])
        if name.endswith("LayerNorm.weight"):
            assert (tensor == 1).all()
        elif name.endswith("bias"):
            assert (tensor == 0).all()
        else:
            assert tensor.std().item() == pytest.approx(0.02, rel=0.2), name
    assert (encoder.word_embeddings[0] == 0).all()


def test_padded_texts() -> None:
    shape = EncoderConfig(vocabulary=50, hidden=4, heads=1)
    ids, mask = inputs.pad([np.array([7, 8, 9], dtype=np.uint16), np.array([], dtype=np.uint16)], 4, shape)
    assert ids.tolist() == [[2, 7, 8, 3], [2, 3, 0, 0]]
    assert mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert (ids.dtype, mask.dtype) == (np.int64, np.bool_)


@pytest.mark.parametrize("count", [0, 1, 9])
@pytest.mark.parametrize("length", [0, 2, 3, 8])
def test_texts_are_padded_at_once_as_one_by_one(count: int, length: int) -> None:
    shape = EncoderConfig(vocabulary=50, hidden=4, heads=1)
    generator = np.random.default_rng(count)
    texts = [generator.integers(5, 50, generator.integers(12)).astype(np.uint16) for _ in range(count)]
    expected = inputs.stack([inputs.wrap(text, length, shape) for text in texts], shape.pad)
    for found, array in zip(inputs.pad(texts, length, shape), expected, strict=True):
        assert (found.dtype, found.tolist()) == (array.dtype, array.tolist())
