"""Auto-encoding: what the decoder is given."""

import numpy as np
import pytest
import torch

from encore.training.randomness import generator
from tests.support import small_store
from tests.support.small_decoding import Case, reads
from tests.support.small_objective import batch_of, make


def test_the_decoder_reads_a_second_masking_of_the_same_window() -> None:
    objective = make("autoencoding", decoder_mask_ratio=0.5)
    arrays, _ = batch_of(objective)
    restored = [arrays[name].flatten() for name in ("ids", "text")]
    restored[0][arrays["masked"]] = arrays["labels"]
    restored[1][arrays["decoded"]] = arrays["decoded_labels"]
    assert np.array_equal(*restored)
    assert set(arrays["masked"]) != set(arrays["decoded"])
    assert len(arrays["decoded"]) == pytest.approx(0.5 * arrays["mask"].sum(), rel=0.05)
    seen = arrays["text"].ravel()[arrays["decoded"]]
    assert np.mean(seen == arrays["decoded_labels"]) < 0.3  # what is rebuilt is not given, save by the 10 % that stay


def test_specials_and_padding_are_never_predicted() -> None:
    arrays, _ = batch_of(make("autoencoding", decoder_mask_ratio=1.0))
    assert arrays["mask"].ravel()[arrays["decoded"]].all()
    assert not np.isin(arrays["decoded_labels"], list(small_store.Special())).any()


def test_the_two_maskings_are_independent_and_by_whole_words() -> None:
    objective = make("autoencoding")
    agreement = []
    for index in range(len(objective)):
        example = objective.example(index, generator(0, index))
        first, second = (np.isin(np.arange(len(example.ids)), one.positions) for one in (example.masked, example.again))
        agreement.append(np.mean(second[first]))
        continues = objective.store.continues[example.ids]
        assert all(second[i] == second[i - 1] for i in range(1, len(second)) if continues[i])
    assert np.mean(agreement) == pytest.approx(0.5, abs=0.05)


def test_h_and_all_real_tokens_are_read() -> None:
    case = Case("autoencoding")
    embedded = case.model.embeddings(case.batch["text"], None).detach().requires_grad_()
    h = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    states = case.heads["decoder"](h, embedded, case.batch["mask"])
    expected = case.arrays["mask"].copy()
    expected[1:], expected[0, 0] = False, False  # the place of [CLS] is h's
    assert np.array_equal(reads(states, (0, 3), embedded), expected)
    (gradient,) = torch.autograd.grad(states[0, 3].pow(2).sum(), h)
    assert (gradient.abs().sum(-1) > 0).tolist() == [True, False, False]
