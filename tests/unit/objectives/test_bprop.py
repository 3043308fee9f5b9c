"""B-PROP: attention of the parent's [CLS], the contrastive distribution, and word sets drawn from it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from encore.errors import EncoreError
from encore.objectives.bprop import BpropSets, ContrastiveDistribution, contrastive, saturated
from encore.objectives.parts import attention
from encore.objectives.parts.attention import cls_attention, text_attention
from encore.objectives.parts.lexicon import Sums
from encore.objectives.parts.word_sets import PreparedPairs
from encore.training.randomness import generator
from tests.support import small_models, small_objective, small_store
from tests.support.little_memory import in_little_memory
from tests.support.small_objective import batch_of, encoder, heads_of, make
from tests.support.whole_loss import whole_loss


def plain_attention(model: torch.nn.Module, hidden: np.ndarray, length: int) -> np.ndarray:
    """Attention of the first row of ``hidden`` [L, H] in the last layer, by the formula."""
    own = model.encoder.layer[-1].attention.self
    weights = {name: part.detach().double().numpy() for name, part in own.named_parameters()}
    query = hidden[0] @ weights["query.weight"].T + weights["query.bias"]
    keys = hidden[:length] @ weights["key.weight"].T + weights["key.bias"]
    heads, width = own.heads, len(query) // own.heads
    shares = []
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        scores = np.exp(keys[:, part] @ query[part] / np.sqrt(width))
        shares.append(scores / scores.sum())
    return np.mean(shares, axis=0)


@pytest.mark.parametrize("layers", [1, 3])
def test_attention_is_that_of_the_last_layer_averaged_over_heads(layers: int) -> None:
    model = small_models.random_encoder(layers=layers).eval()
    ids, mask = small_models.random_batch(model.config, [9, 5])
    with torch.no_grad():
        attention = cls_attention(model, ids, mask)
        hidden = model.embeddings(ids, None)
        for layer in model.encoder.layer[:-1]:
            hidden = layer(hidden, hidden, mask[:, None, None, :])
    assert attention.shape == (2, 9)
    assert attention.sum(dim=1).numpy() == pytest.approx(1.0, abs=1e-6)
    assert attention[1, 5:].abs().sum() == 0  # padding is not seen
    for row, length in enumerate([9, 5]):
        expected = plain_attention(model, hidden[row].double().numpy(), length)
        assert attention[row, :length].numpy() == pytest.approx(expected, rel=1e-5)


def test_attention_to_texts_does_not_depend_on_what_they_are_batched_with() -> None:
    model = encoder()
    rng = np.random.default_rng(0)
    texts = [rng.integers(5, 80, size=length) for length in (30, 3, 46, 12)]
    together = text_attention(model, texts, 48)
    for text, found in zip(texts, together, strict=True):
        assert len(found) == len(text)
        assert found == pytest.approx(text_attention(model, [text], 48)[0], rel=1e-4)


def test_attention_is_read_in_smaller_batches_where_memory_runs_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, rng = encoder(), np.random.default_rng(0)
    texts = [rng.integers(5, 80, size=length) for length in (30, 3, 46, 12, 20)]
    expected = text_attention(model, texts, 48)
    sizes = in_little_memory(monkeypatch, attention, "cls_attention", 2)
    for found, own in zip(text_attention(model, texts, 48), expected, strict=True):
        assert found == pytest.approx(own, rel=1e-4)
    assert "out of memory; continuing with " in capsys.readouterr().out
    assert sizes[0] == 5


# Numbers of Albert-Ma/PROP at 8f0248f (bprop/multiprocessing_generate_word_sets.py, method "entropy"): one document
# with these saturated attentions in a collection whose mean is 1 / (10 + 3i), np.random.seed(0), 20,000 pairs.

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", ".", "a1"]
ATTENTION = np.array([0.9, 0.7, 0.35, 0.2, 0.15, 0.1, 0.05, 0.04, 0.03, 0.02, 0.5, 0.4])
USABLE = np.array([word.isalpha() for word in WORDS])
REFERENCE_WEIGHTS = [
    *(0.6435768190621065, 0.5775824621936053, 0.3192697481464008, 0.1968542464001452, 0.15686324752657888),
    *(0.10993667774458245, 0.057344773934542376, 0.04758327715146263, 0.036849665981592304, 0.025275691222487563),
]
REFERENCE_SHARES = [0.4243, 0.4024, 0.3328, 0.3064, 0.2977, 0.2874, 0.273, 0.2743, 0.2698, 0.2686]  # of sets


def reference_distribution() -> ContrastiveDistribution:
    """Text 0 is the reference's document; five more give the collection its mean."""
    mean = 25 / (10 + 3 * np.arange(12))
    wanted = np.concatenate([ATTENTION, *[(mean - ATTENTION) / 5] * 5])
    raw = 0.01 * wanted / (1 - wanted)
    fields, words = BpropSets(length=512), np.tile(np.arange(12), 6)
    total = np.bincount(words, weights=saturated(raw, fields))
    return ContrastiveDistribution(fields, Sums(np.arange(7) * 12, words, raw), total / total.sum(), USABLE)


def test_contrastive_weights_are_those_of_the_reference() -> None:
    distribution = reference_distribution()
    assert distribution.weights.of(0)[1][USABLE] == pytest.approx(REFERENCE_WEIGHTS, rel=1e-9)
    assert contrastive(np.array([1.0, 1.0]), np.array([0.5, 1e-300]), 100.0).tolist() == [1.0, 100.0]
    assert contrastive(np.array([0.0, 0.5]), np.array([0.0, 0.5]), 100.0).tolist() == [0.0, 0.5]


def test_words_are_in_sets_as_often_as_in_the_references() -> None:
    rng = generator(0)
    sizes = rng.poisson(3, size=50_000)
    sizes = sizes[sizes > 0]
    drawn = reference_distribution().draw(0, sizes, rng)
    assert drawn is not None
    assert np.array_equal(drawn.sizes, np.minimum(sizes, 10))
    shares = np.bincount(drawn.words, minlength=12) / len(sizes)
    assert shares[~USABLE].tolist() == [0, 0]
    assert shares[USABLE] == pytest.approx(REFERENCE_SHARES, abs=0.01)


def test_a_set_never_repeats_a_word_and_its_score_is_the_sum_of_the_weights() -> None:
    distribution, sizes = reference_distribution(), np.repeat([2, 9, 30], 2)
    drawn = distribution.draw(0, sizes, generator(3))
    assert drawn is not None
    assert drawn.sizes.tolist() == [2, 2, 9, 9, 10, 10]  # ten words are all that there are
    sets = np.split(drawn.words, np.cumsum(drawn.sizes)[:-1])
    assert all(len(set(part.tolist())) == len(part) for part in sets)
    weights = np.array([*REFERENCE_WEIGHTS, 0, 0])
    assert drawn.totals == pytest.approx([weights[part].sum() for part in sets], rel=1e-9)


def test_documents_with_too_few_words_have_no_sets() -> None:
    distribution = reference_distribution()
    fields = BpropSets(length=512, least_words=11)
    few = ContrastiveDistribution(fields, distribution.weights, np.full(12, 1 / 12), USABLE)
    assert few.draw(0, np.array([2, 2]), generator(0)) is None


# Preparation and training


@pytest.mark.parametrize("reading", ["first", "sum"])
def test_preparation_reads_the_parent_and_is_repeatable(reading: str, tmp_path: Path) -> None:
    fields = BpropSets(length=48, skip_share=0.0, least_words=3, drawn_words="content", word_attention=reading)
    store = small_store.random_store(8)
    files = []
    for name in "ab":
        counts = fields.write(store, tmp_path / name, small_objective.attention_to(store, fields))
        files.append((tmp_path / name / "scores.npy").read_bytes())
    assert files[0] == files[1]
    assert 0 < counts["documents"] <= counts["texts"]
    assert (PreparedPairs(tmp_path / "a").scores > 0).all()
    with pytest.raises(EncoreError, match="need a model's attention to the texts"):
        fields.write(store, tmp_path / "c")
    other = small_objective.attention_to(small_store.random_store(7), fields)
    with pytest.raises(EncoreError, match=r"attention-000000.f4 has \d+ pieces, and the block's texts have \d+"):
        fields.write(store, tmp_path / "c", other)


def test_the_attention_readings_differ_for_words_of_several_pieces(tmp_path: Path) -> None:
    store = small_store.store([[[[20, 80, 21, 81, 82, 22, 20]]]] * 3)
    for reading in ("first", "sum"):
        fields = BpropSets(length=48, skip_share=0.0, least_words=2, drawn_words="content", word_attention=reading)
        fields.write(store, tmp_path / reading, small_objective.attention_to(store, fields))
    first, summed = (np.load(tmp_path / reading / "scores.npy") for reading in ("first", "sum"))
    assert not np.allclose(first, summed)


def test_bprop_trains_as_prop_does_on_its_own_sets() -> None:
    objective, model = make("bprop"), encoder()
    _, batch = batch_of(objective)
    terms = whole_loss(objective, model, heads_of(objective, model), batch)
    assert set(terms) == {"loss", "mlm", "preference", "accuracy"}
    assert terms["loss"].item() == pytest.approx(terms["mlm"].item() + terms["preference"].item(), rel=1e-6)
