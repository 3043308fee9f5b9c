"""CPDAE: bags of pieces from representations, and the contrast of two maskings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from encore import objectives
from encore.errors import EncoreError
from encore.models.encoder import Encoder
from encore.objectives.cpdae import Idf
from encore.training.randomness import generator
from tests.support import oracles, small_store
from tests.support.small_decoding import assert_gradient, draw, numbers
from tests.support.small_objective import STEP, batch_of, encoder, heads_of, make
from tests.support.whole_loss import whole_loss

VARIANTS: dict[str, dict[str, Any]] = {
    "cpdae": {},
    "cpdae-r": {"contrast": "vectors"},
    "cpdae-no-cl": {"contrast": "none"},
    "cpdae-idf": {"contrast": "none", "weighting": "idf"},
}


def variant(name: str, folder: Path, store: Any = None, **fields: Any) -> Any:
    """An objective of the paper's tables, its preparation made in ``folder``."""
    store = store or small_store.random_store(4)
    step = objectives.fields({**STEP, "objective": "cpdae", "length": 12, **VARIANTS[name], **fields})
    preparation = objectives.load("cpdae").preparation(step)
    if preparation is None:
        return objectives.load("cpdae")(step, store)
    preparation.write(store, folder)
    return objectives.load("cpdae")(step, store, folder)


def expected(name: str, objective: Any, model: Encoder, heads: nn.ModuleDict, count: int) -> dict[str, float]:
    """The terms of a batch of some texts, from the formulas over the encoder's states [2B, L, H]."""
    weights = numbers(heads)
    examples = [objective.example(i, generator(0, "example", 0, i)) for i in range(count)]
    views = [(example, view) for example in examples for view in example.views]
    _, batch = batch_of(objective, range(count))
    with torch.no_grad():
        hidden, words = model(batch["ids"], batch["mask"]).numpy(), model.word_embeddings.numpy()

    def transformed(head: str, states: np.ndarray) -> np.ndarray:
        dense, norm = f"{head}.transform.dense", f"{head}.transform.LayerNorm"
        states = oracles.gelu(states @ weights[f"{dense}.weight"].T + weights[f"{dense}.bias"])
        return oracles.layer_norm(states, weights[f"{norm}.weight"], weights[f"{norm}.bias"])

    states = np.array([hidden[row, 1 + place] for row, (_, view) in enumerate(views) for place in view.positions])
    scores = transformed("mlm", states) @ words.T + weights["mlm.bias"]
    logits = transformed("decoder", hidden[:, 0]) @ weights["decoder.output.weight"].T + weights["decoder.output.bias"]
    bags = np.array([[v if v in example.ids and v > 4 else -1 for v in range(100)] for example, _ in views])
    terms = {"mlm": oracles.cross_entropy(scores, np.concatenate([view.labels for _, view in views]))}
    terms["rec"] = oracles.bag_cross_entropy(logits, bags, "sum", inverse(objective) if name == "cpdae-idf" else None)
    if name == "cpdae":
        named = 1 / (1 + np.exp(-logits))
        divergences = oracles.jensen_shannon(named / named.sum(axis=1, keepdims=True))
        terms["contrast"] = oracles.nt_xent(-divergences, 1.0)
    if name == "cpdae-r":
        vectors = hidden[:, 0] / np.linalg.norm(hidden[:, 0], axis=1, keepdims=True)
        terms["contrast"] = oracles.nt_xent(vectors @ vectors.T, 0.05)
    return {"loss": terms["mlm"] + terms["rec"] + 0.1 * terms.get("contrast", 0.0), **terms}


def inverse(objective: Any) -> np.ndarray:
    """Inverse document frequencies, whose mean over known pieces is one."""
    texts = [set(objective.example(i, generator(0)).ids.tolist()) for i in range(len(objective))]
    counts = [sum(v in text for text in texts) for v in range(100)]
    idf = [max(np.log(len(texts) / (1 + count)), 0) for count in counts]
    return np.array(idf) / np.mean([value for value, count in zip(idf, counts, strict=True) if count])


@pytest.mark.parametrize("name", VARIANTS)
def test_the_terms_are_those_of_the_formula_and_so_is_the_gradient(name: str, tmp_path: Path) -> None:
    objective, model = variant(name, tmp_path), encoder(hidden=8, intermediate=16)
    heads = objective.heads(model)
    draw(model, 1)
    draw(heads, 2)
    terms = whole_loss(objective, model, heads, batch_of(objective, range(2))[1])
    right = expected(name, objective, model, heads, 2)
    assert {term: value.item() for term, value in terms.items()} == pytest.approx(right, rel=1e-5)
    both = nn.ModuleDict({"encoder": model, "heads": heads})
    assert_gradient(terms["loss"], both, lambda: expected(name, objective, model, heads, 2)["loss"], directions=2)


# Views


def test_two_views_are_masked_independently() -> None:
    objective = make("cpdae")
    pairs = [objective.example(index, generator(0, index)).views for index in range(len(objective))]
    assert sum(np.array_equal(first.positions, second.positions) for first, second in pairs) < 0.1 * len(pairs)
    long = [(set(a.positions), set(b.positions)) for a, b in pairs if len(a.ids) > 30]
    shared = np.mean([len(a & b) / len(a) for a, b in long])
    assert 0.05 < shared < 0.3  # near the ratio, as of two draws that know nothing of each other


def test_a_batch_has_both_views_next_to_each_other_and_counts_the_pieces_of_both() -> None:
    objective = make("cpdae")
    arrays, _ = batch_of(objective, range(3))
    examples = [objective.example(i, generator(0, "example", 0, i)) for i in range(3)]
    for row, ids in enumerate(arrays["ids"]):
        view = examples[row // 2].views[row % 2]
        assert ids[1 : len(view.ids) + 1].tolist() == view.ids.tolist()
    assert objective.loss_denominators(arrays) == {"mlm": sum(len(view.labels) for e in examples for view in e.views)}
    assert arrays["bag"].shape[0] == 3


@pytest.mark.parametrize("contrast", ["distributions", "vectors"])
def test_the_contrast_of_a_batch_in_parts_is_that_of_the_whole_and_draws_at_both_views(contrast: str) -> None:
    objective, model = make("cpdae", contrast=contrast), encoder()
    heads = heads_of(objective, model)
    passes = [
        objective.forward(model, heads, batch_of(objective, part)[1]).embeddings for part in (range(2), range(2, 6))
    ]
    rows = {name: torch.cat([part[name] for part in passes]).detach().requires_grad_() for name in passes[0]}
    whole = whole_loss(objective, model, heads, batch_of(objective, range(6))[1])["contrast"]
    value = objective.batch_loss(rows)["contrast"]
    assert value.item() == pytest.approx(whole.item(), rel=1e-5)
    value.backward()
    assert next(iter(rows.values())).grad.abs().amax(dim=2).min() > 0


def test_the_scale_of_the_divergence_is_a_lower_temperature() -> None:
    rows = {"logits": torch.randn(4, 2, 50, generator=torch.Generator().manual_seed(0)) * 4}
    values = [make("cpdae", **fields).batch_loss(rows)["contrast"].item() for fields in ({"js_scale": 2}, {})]
    assert values[0] == pytest.approx(make("cpdae", contrast_temperature=0.5).batch_loss(rows)["contrast"].item())
    assert values[0] != pytest.approx(values[1], rel=1e-3)


# The decoder


def test_the_decoder_starts_at_its_bias_with_weights_of_its_own() -> None:
    objective, model = make("cpdae"), encoder()
    heads = objective.heads(model)
    assert set(heads["decoder"].output.bias.tolist()) == {-5.0}
    assert set(make("cpdae", output_bias=-2).heads(model)["decoder"].output.bias.tolist()) == {-2.0}
    assert heads.state_dict()["decoder.output.weight"].shape == model.word_embeddings.shape
    assert not torch.equal(heads["decoder"].output.weight, model.word_embeddings)
    bag = np.mean([len(set(objective.example(i, generator(0)).ids.tolist())) for i in range(8)])
    rec = whole_loss(objective, model, heads, batch_of(objective)[1])["rec"].item()
    assert rec == pytest.approx(len(small_store.PIECES) * np.log1p(np.exp(-5)) + 5 * bag, rel=0.1)


def test_reductions_divide_the_sum() -> None:
    values = {}
    for reduction in ("sum", "mean_pos", "mean_vocab"):
        objective, model = make("cpdae", rec_reduction=reduction), encoder()
        _, batch = batch_of(objective, range(1))
        values[reduction] = whole_loss(objective, model, heads_of(objective, model), batch)["rec"].item()
    assert values["sum"] == pytest.approx(values["mean_pos"] * len(batch["bag"][0]), rel=1e-5)
    assert values["sum"] == pytest.approx(values["mean_vocab"] * len(small_store.PIECES), rel=1e-5)


def test_the_variants_weigh_what_they_have() -> None:
    assert make("cpdae").loss_weights(0.5) == {"mlm": 1, "rec": 1, "contrast": 0.1}
    assert make("cpdae", contrast="none").loss_weights(0.5) == {"mlm": 1, "rec": 1}


# Inverse document frequencies


def test_frequencies_are_counted_over_the_texts_that_are_trained_on(tmp_path: Path) -> None:
    store = small_store.store([[[[20, 20, 21]], [[20, 22]], [[20, 21]], [[20, 23, 1]], [[22]]]])
    counts = Idf(length=12, min_tokens=2, packing="section").write(store, tmp_path)
    assert counts == {"texts": 4, "pieces": 5}  # the text of one piece is too short
    idf = np.load(tmp_path / "idf.npy")
    raw = np.array([0, np.log(4 / 3), np.log(4 / 2), np.log(4 / 2), np.log(4 / 2)])  # of 20, 21, 22, 23, [UNK]
    assert idf.dtype == np.float32
    assert idf[[20, 21, 22, 23, 1]] == pytest.approx(raw / raw.mean(), rel=1e-6)
    assert idf[[20, 21, 22, 23, 1]].mean() == pytest.approx(1)
    assert idf[30] == pytest.approx(np.log(4) / raw.mean(), rel=1e-6)  # occurs nowhere
    Idf(length=12, min_tokens=2, packing="section").write(store, tmp_path / "again")
    assert (tmp_path / "again/idf.npy").read_bytes() == (tmp_path / "idf.npy").read_bytes()


def test_only_weighted_reconstruction_is_prepared_for(tmp_path: Path) -> None:
    load = objectives.load("cpdae")
    fields = {**STEP, "objective": "cpdae"}
    assert load.preparation(objectives.fields(fields)) is None
    weighted = objectives.fields({**fields, "weighting": "idf", "min_tokens": 3})
    assert load.preparation(weighted) == Idf(length=STEP["length"], min_tokens=3)
    with pytest.raises(EncoreError, match=r"the step has no idf.npy; prepare the collection"):
        load(weighted, small_store.random_store(2))
    with pytest.raises(EncoreError, match=r"over 1 texts are all 0; use `weighting: uniform`"):
        Idf(length=12, min_tokens=1).write(small_store.store([[[[20, 21]]]]), tmp_path)
