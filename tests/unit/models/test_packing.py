"""Texts in a row without padding give what the padded rectangle gives."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from encore.models import encoder as encoders
from encore.models import packing
from encore.models.encoder import Encoder
from encore.models.packing import Bounds, Packing, Rectangle, attend
from tests.support.simulated_gpu import simulated_gpu
from tests.support.small_models import random_batch, random_encoder

LENGTHS = [9, 4, 12, 2]


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on an accelerator, where every ragged batch is packed."""
    monkeypatch.setattr(encoders, "layout", lambda mask, _: Rectangle(None) if mask is None else Packing(mask))


def in_a_row(encoder: Encoder, ids: Tensor, mask: Tensor, segments: Tensor | None = None) -> Tensor:
    texts = Packing(mask)
    embedded = encoder.embeddings(
        texts.take(ids), segments if segments is None else texts.take(segments), texts.positions
    )
    assert embedded.shape == (sum(LENGTHS), encoder.config.hidden)
    return texts.spread(encoder.encoder(embedded, texts.visible))


@pytest.mark.parametrize("segmented", [False, True])
def test_packed_states_are_the_padded_ones_and_zero_at_padding(segmented: bool) -> None:
    encoder = random_encoder().eval()
    ids, mask = random_batch(encoder.config, LENGTHS)
    segments = (torch.arange(ids.shape[1]) > 2).long().expand_as(ids) if segmented else None
    own, padded = in_a_row(encoder, ids, mask, segments), encoder(ids, mask, segments)
    torch.testing.assert_close(own[mask], padded[mask], atol=1e-5, rtol=0)
    assert (own[~mask] == 0).all()
    assert padded[mask].std() > 0.1  # the comparison sees something
    if segmented:
        assert (own - in_a_row(encoder, ids, mask)).abs().max() > 0.01


@pytest.mark.parametrize("segmented", [False, True])
def test_texts_in_parts_by_length_have_the_states_and_vectors_of_the_batch_with_less_padding(segmented: bool) -> None:
    encoder, lengths = random_encoder().eval(), [9, 4, 12, 2, 3, 11]
    ids, mask = random_batch(encoder.config, lengths)
    segments = (torch.arange(ids.shape[1]) > 2).long().expand_as(ids) if segmented else None
    shapes: list[torch.Size] = []

    def run(ids: Tensor, *others: Tensor) -> Tensor:
        shapes.append(ids.shape)
        return encoder(ids, *others)

    states, whole = packing.in_parts(run, ids, mask, segments), encoder(ids, mask, segments)
    torch.testing.assert_close(states[mask], whole[mask], atol=1e-5, rtol=0)
    assert states.shape == whole.shape
    assert shapes == [(2, 3), (2, 9), (1, 11), (1, 12)]
    vectors = packing.in_parts(encoder.embed, ids, mask, segments)
    torch.testing.assert_close(vectors, encoder.embed(ids, mask, segments), atol=1e-5, rtol=0)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("lengths", [[2, 4, 9, 12], [9, 12, 2, 4]])
@pytest.mark.parametrize("pooling", ["cls", "mean", "content"])
def test_a_gpu_reads_parts_of_like_length_at_once_and_a_processor_one_by_one(pooling: str, lengths: list[int]) -> None:
    """Pairs that are cut need not come from short to long."""
    encoder = random_encoder(pooling=pooling).eval()
    ids, mask = random_batch(encoder.config, lengths)
    texts = ids, mask, (torch.arange(12) > 2).long().expand_as(ids)
    parts = [tuple(each[rows, : max(lengths[rows])] for each in texts) for rows in (slice(2), slice(2, 4))]
    assert encoder.joined(parts) is parts
    there = [(ids.to("cuda"), mask, segments.to("cuda")) for ids, mask, segments in parts]  # masks are on the host
    (whole,) = encoder.to("cuda").joined(there)
    assert (whole[0].cpu() == torch.where(mask, ids, encoder.config.pad)).all()
    one_by_one = torch.cat([encoder.embed(*part) for part in there])
    torch.testing.assert_close(encoder.embed(*whole), one_by_one, atol=1e-5, rtol=0)
    assert one_by_one.std() > 0.1  # the comparison sees something


@pytest.mark.parametrize("pooling", ["cls", "mean", "content"])
def test_gradients_are_those_of_the_padded_batch(pooling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = random_encoder(pooling=pooling, projection_dim=5)
    ids, mask = random_batch(encoder.config, LENGTHS)
    found = []
    for choose in (packing.layout, Packing):
        monkeypatch.setattr(encoders, "layout", choose)
        encoder.zero_grad()
        encoder.embed(ids, mask, (ids % 2)).square().sum().backward()
        found.append({name: parameter.grad.clone() for name, parameter in encoder.named_parameters()})
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, atol=1e-5, rtol=1e-4, msg=name)
    assert max(gradient.abs().max() for gradient in found[0].values()) > 0.1


@pytest.mark.usefixtures("packed")
def test_dropout_reaches_packed_attention() -> None:
    encoder = random_encoder(dropout=0.1)
    batch = random_batch(encoder.config, LENGTHS)
    assert not torch.equal(encoder.train()(*batch), encoder(*batch))
    assert torch.equal(encoder.eval()(*batch), encoder(*batch))
    query = torch.randn(sum(LENGTHS), 4, 8)
    alike = [attend(query, query, query, Packing(batch[1]), rate) for rate in (0.0, 0.0, 0.5, 0.5)]
    assert torch.equal(alike[0], alike[1])
    assert not torch.equal(alike[2], alike[3])


@pytest.mark.parametrize("attention", [packing.flash, packing.efficient])
@pytest.mark.parametrize("count", [9, 2], ids=["all tokens", "first tokens"])
def test_the_kernel_takes_what_it_is_given_and_has_gradients(attention: packing.RaggedAttention, count: int) -> None:
    """PyTorch's own check of shapes needs no GPU; the operators are not public, so a version may change them."""
    query, key, value = (
        torch.empty(tokens, 4, 16, dtype=torch.bfloat16, device="meta", requires_grad=True) for tokens in (count, 9, 9)
    )
    tokens, texts = (
        Bounds(torch.empty(3, dtype=torch.int32, device="meta"), most) for most in (5 if count == 9 else 1, 5)
    )
    out = attention(query, key, value, tokens, texts, 0.1)
    assert (out.shape, out.dtype) == (query.shape, query.dtype)
    out.sum().backward()
    for part in (query, key, value):
        assert part.grad is not None
        assert part.grad.shape == part.shape


@pytest.mark.parametrize(
    ("capability", "dtype", "width", "attention"),
    [
        ((9, 0), torch.bfloat16, 64, packing.flash),
        ((8, 0), torch.float16, 256, packing.flash),
        ((8, 0), torch.bfloat16, 264, packing.efficient),
        ((7, 5), torch.float16, 64, packing.efficient),
        ((9, 0), torch.float32, 64, packing.efficient),
        ((9, 0), torch.float32, 12, packing.efficient),
        ((9, 0), torch.bfloat16, 12, packing.one_by_one),
        ((9, 0), torch.float32, 10, packing.one_by_one),
    ],
)
def test_a_gpu_has_a_kernel_for_most_widths(
    capability: tuple[int, int],
    dtype: torch.dtype,
    width: int,
    attention: packing.RaggedAttention,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with simulated_gpu():
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        ampere = Packing(torch.tensor([[True, False]]), torch.device("cuda")).ampere
    query: Any = SimpleNamespace(is_cuda=True, dtype=dtype, shape=(9, 12, width))
    assert packing.attention_for(query, ampere) is attention
    query.is_cuda = False
    assert packing.attention_for(query, ampere) is packing.one_by_one


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("tokens", ["all", "first"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_is_the_same_in_both_passes(dtype: torch.dtype, tokens: str) -> None:
    """Attention is linear in the values, so their gradient gives the exact change that a step makes."""
    torch.manual_seed(0)
    texts = Packing((torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).to("cuda"))
    queries = len(LENGTHS) if tokens == "first" else sum(LENGTHS)
    counts = (queries, queries, sum(LENGTHS), sum(LENGTHS), sum(LENGTHS))
    query, upstream, key, value, step = (torch.randn(count, 2, 8).to(dtype).to("cuda") for count in counts)

    def attended(values: Tensor) -> Tensor:
        torch.manual_seed(1)
        return attend(query, key, values, texts.visible_to_first if tokens == "first" else texts, 0.5).float()

    before = attended(value.requires_grad_())
    (before * upstream.float()).sum().backward()
    change = (attended((value + step).detach()) - before.detach()) * upstream.float()
    assert float(change.sum()) == pytest.approx(float((value.grad.float() * step.float()).sum()), rel=0.05)
    assert abs(float(change.sum())) > 0.1


@pytest.mark.parametrize("place", ["padded", "packed"])
@pytest.mark.parametrize("layers", [1, 3])
def test_a_text_is_its_first_state_with_the_gradients_of_all(layers: int, place: str, request: Any) -> None:
    if place == "packed":
        request.getfixturevalue("packed")
    encoder = random_encoder(layers=layers, pooling="cls")
    ids, mask = random_batch(encoder.config, LENGTHS)
    found = []
    for texts in (encoder.representations(ids, mask, ids % 2), encoder(ids, mask, ids % 2)[:, 0]):
        encoder.zero_grad()
        texts.square().sum().backward()
        found.append((texts.detach(), {name: own.grad.clone() for name, own in encoder.named_parameters()}))
    (first, gradients), (expected, of_all) = found
    torch.testing.assert_close(first, expected, atol=1e-5, rtol=0)
    for name, gradient in of_all.items():
        torch.testing.assert_close(gradients[name], gradient, atol=1e-5, rtol=1e-4, msg=name)
    assert max(gradient.abs().max() for gradient in of_all.values()) > 0.1


@pytest.mark.parametrize("place", ["padded", "packed"])
def test_the_last_layer_computes_no_other_state_of_a_text(place: str, request: Any) -> None:
    if place == "packed":
        request.getfixturevalue("packed")
    encoder = random_encoder(layers=2, pooling="cls").eval()
    rows: list[int] = []
    for layer in encoder.encoder.layer:
        layer.intermediate.register_forward_hook(lambda module, given, out: rows.append(out[0][..., 0].numel()))
    encoder.embed(*random_batch(encoder.config, LENGTHS))
    assert rows == [sum(LENGTHS) if place == "packed" else len(LENGTHS) * max(LENGTHS), len(LENGTHS)]


def test_only_ragged_batches_on_an_accelerator_are_packed() -> None:
    ragged = torch.tensor([[True, True], [True, False]])
    assert isinstance(packing.layout(ragged, ragged.device), Rectangle)
    assert packing.layout(ragged, ragged.device).visible is not None
    assert packing.layout(torch.ones(2, 2, dtype=torch.bool), ragged.device).visible is None
    assert packing.layout(None, ragged.device).visible is None


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_the_kernels_of_a_gpu_agree_with_the_cpu(rate: float) -> None:
    encoder = random_encoder(hidden=64, intermediate=64, dropout=rate).eval()
    ids, mask = random_batch(encoder.config, LENGTHS)
    with torch.no_grad():
        expected = encoder(ids, mask)
    encoder, ids, mask = encoder.cuda(), ids.cuda(), mask.cuda()
    assert isinstance(packing.layout(mask, mask.device), Packing)
    with torch.no_grad():
        own = encoder(ids, mask)
        with torch.autocast("cuda", torch.bfloat16):
            half = encoder(ids, mask)
    encoder.train()(ids, mask).square().sum().backward()
    torch.testing.assert_close(own.cpu()[mask.cpu()], expected[mask.cpu()], atol=1e-4, rtol=0)
    torch.testing.assert_close(half.cpu().float()[mask.cpu()], expected[mask.cpu()], atol=0.1, rtol=0)
    assert all(parameter.grad.isfinite().all() for parameter in encoder.parameters())
