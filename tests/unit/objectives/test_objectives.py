"""The registry of objectives, and what holds for each of them."""

import math
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from encore import objectives
from encore.errors import EncoreError
from encore.models import flops
from encore.objectives.parts.masked_texts import MaskedTexts
from encore.objectives.parts.pairs import Pairs
from encore.training.randomness import generator
from encore.training.task import Task
from tests.support import small_store
from tests.support.small_objective import STEP, batch_of, encoder, heads_of, make
from tests.support.whole_loss import whole_loss

ALL = objectives.names()
FOLDER = Path(objectives.__file__).parent


def test_every_objective_is_found_by_its_file() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.py") if "\nOBJECTIVE = " in path.read_text()) == ALL
    assert len(ALL) >= 15


def test_an_unknown_objective_names_the_nearest() -> None:
    with pytest.raises(EncoreError, match="'itc' is unknown; did you mean ict"):
        objectives.load("itc")


@pytest.mark.parametrize(
    ("name", "texts", "fields", "message"),
    [
        ("ict", [[[[20] * 5]]], {}, "ict needs texts of two or more sentences"),
        ("bfs", [[[[20] * 5, [21]]]], {}, "bfs needs articles with a first section and others"),
        ("bfs", [[[], [[21] * 5]]], {}, "bfs needs articles with a first section and others"),
        ("wlp", [[[[20] * 5], [[21] * 5]]], {}, "wlp needs links"),
        ("ict_bfs_wlp", [[[[20] * 5, [22]], [[21] * 5, [23]]]], {}, "wlp needs links"),
        ("ict", [], {}, "ict needs texts"),
        ("cocondenser", [[[[40, 41]]], [[[42]]]], {}, "two texts of one article"),
        ("costa", [[[[5] * 20]]], {"min_tokens": 64}, "no text of 64 or more pieces; lower `min_tokens`"),
        ("prop", [[[[5, 7]]]], {}, "no text of the collection gives word sets for prop-sets"),
        ("ict", None, {"temprature": 1.0}, "temprature"),
        ("ict", None, {"temperature": -1}, "temperature"),
        ("ict", None, {"titles": "free"}, "titles"),
        ("costa", None, {"granularities": ("word", "word")}, "each granularity may be named once"),
        ("costa", None, {"granularities": ()}, "granularities"),
        ("prop", None, {"pairs": 6, "stored_pairs": 5}, "6 pairs of word sets cannot be drawn from 5"),
        ("simcse", None, {"dropout": 0.0}, r"simcse\.dropout: input should be greater than 0"),
    ],
)
def test_texts_and_fields_that_do_not_fit_are_refused(name: str, texts: Any, fields: Any, message: str) -> None:
    with pytest.raises(EncoreError, match=message):
        make(name, small_store.random_store() if texts is None else small_store.store(texts), **fields)


@pytest.mark.parametrize("name", ALL)
def test_a_share_of_nothing_is_refused_where_one_piece_would_be_masked(name: str) -> None:
    known = objectives.load(name).Fields.model_fields
    masking = {"mask_ratio"} | ({"decoder_mask_ratio"} if name == "autoencoding" else set())
    for field in masking & known.keys():
        with pytest.raises(EncoreError, match=rf"{field}.*greater than 0"):
            objectives.fields({**STEP, "objective": name, field: 0})


@pytest.mark.parametrize("given", [{}, {"objective": None}, {"objective": "itc"}, {"objective": ["ict"]}])
def test_a_step_without_a_known_objective_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(EncoreError, match=r"^objective .+ is unknown; .*\bict\b"):
        objectives.fields(STEP | given)


def test_importing_the_objectives_does_not_import_torch() -> None:
    code = "import sys; from encore import objectives; objectives.names(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ALL)
def test_sizes_are_told_before_an_example_is_made(name: str) -> None:
    """Those of the first text that a batch has of each example; all 0 for an objective that does not tell them."""
    objective, chance = make(name), partial(generator, 3)
    indices = np.arange(len(objective))[::2]
    sizes = objective.sizes(indices, chance)
    if type(objective).sizes is Task.sizes:
        assert not sizes.any()
        return
    made = [objective.collate([objective.example(index, chance(index))]) for index in indices.tolist()]
    masks = [next(array for key, array in one.items() if "mask" in key and array.ndim == 2) for one in made]
    assert sizes.tolist() == [mask[0].sum() - 2 for mask in masks]  # 2: [CLS] and [SEP]
    assert len(set(sizes.tolist())) > 1


@pytest.mark.parametrize("name", ALL)
def test_a_batch_of_one_has_a_finite_loss_and_gradient(name: str) -> None:
    objective, model = make(name), encoder()
    heads = heads_of(objective, model)
    _, batch = batch_of(objective, range(1))
    whole_loss(objective, model, heads, batch)["loss"].backward()
    grads = [p.grad for p in (*model.parameters(), *heads.parameters()) if p.grad is not None]
    assert grads
    assert all(torch.isfinite(grad).all() for grad in grads)


@pytest.mark.parametrize(
    ("name", "text", "term", "fields"),
    [
        pytest.param("costa", [20, 21], "gwc", {"granularities": ("paragraph",)}, id="a text without spans"),
        pytest.param("bow", [1, 1], "bow", {}, id="a text without a known piece"),
    ],
)
def test_a_text_of_which_there_is_nothing_to_learn_adds_nothing(
    name: str, text: list[int], term: str, fields: dict[str, Any]
) -> None:
    objective, model = make(name, small_store.store([[[text]]]), **fields), encoder()
    _, batch = batch_of(objective, range(1))
    terms = whole_loss(objective, model, heads_of(objective, model), batch)
    terms["loss"].backward()
    assert terms[term].item() == 0
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", ALL)
def test_the_loss_does_not_depend_on_the_order_of_a_batch(name: str) -> None:
    objective, model = make(name), encoder()
    heads = heads_of(objective, model)
    examples = [objective.example(index, generator(0, index)) for index in range(6)]
    values = []
    for order in (examples, examples[::-1]):
        batch = {key: torch.from_numpy(array) for key, array in objective.collate(order).items()}
        values.append(whole_loss(objective, model, heads, batch)["loss"].item())
    assert values[0] == pytest.approx(values[1], rel=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_examples_are_drawn_again_in_every_epoch(name: str) -> None:
    """Unless an example has no chance at all, as in SimCSE, whose chance is dropout's."""
    objective, rng = make(name), generator(0)
    texts = [batch_of(objective, range(8), epoch)[0] for epoch in (0, 0, 1)]
    same = [all(np.array_equal(texts[0][key], other[key]) for key in texts[0]) for other in texts[1:]]
    objective.example(0, rng)
    draws = rng.bit_generator.state != generator(0).bit_generator.state
    assert same == [True, not draws]
    assert draws or not isinstance(objective, MaskedTexts | Pairs)


@pytest.mark.parametrize("name", ALL)
def test_no_label_is_seen_by_the_encoder(name: str) -> None:
    """A masked piece is nowhere in the arrays that the encoder reads, save by the 10 % that stay."""
    objective = make(name)
    arrays, _ = batch_of(objective)
    assert "masked" in arrays or "mlm" not in objective.loss_weights(0.0)
    if "masked" in arrays:
        seen = arrays["ids"].ravel()[arrays["masked"]]
        assert len(seen) > 0
        assert np.mean(seen == arrays["labels"]) < 0.3


@pytest.mark.parametrize("name", ALL)
def test_flops_grow_with_the_batch_and_are_three_forward_passes_or_more(name: str) -> None:
    objective, model = make(name), encoder()
    small, _ = batch_of(objective, range(4))
    large, _ = batch_of(objective, range(8))
    read = [array for key, array in large.items() if key.startswith(("mask", "document_mask", "query_mask"))]
    tokens = [int(row.sum()) for array in read if array.ndim == 2 for row in array]
    assert objective.flops(model, large) > objective.flops(model, small)
    assert objective.flops(model, large) >= 3 * sum(flops.forward(model.config, 1, length) for length in tokens)
    assert math.isfinite(objective.flops(model, large))
