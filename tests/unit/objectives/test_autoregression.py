"""Auto-regression: nothing ahead is seen."""

import numpy as np
import pytest
import torch

from encore.models.decoders import causal
from tests.support.small_decoding import Case, reads
from tests.support.small_objective import batch_of, make


def test_every_token_behind_the_first_is_predicted_and_padding_is_not() -> None:
    arrays, _ = batch_of(make("autoregression"))
    rows, columns = np.divmod(arrays["decoded"], arrays["ids"].shape[1])
    for row, real in enumerate(arrays["mask"]):
        length = real.sum()
        assert columns[rows == row].tolist() == list(range(length - 1))
        assert arrays["decoded_labels"][rows == row].tolist() == arrays["text"][row, 1:length].tolist()
    assert (arrays["text"] != 4).all()  # the decoder's text is unmasked


@pytest.mark.parametrize(("window", "sees"), [(None, [1, 2, 3, 4]), (2, [3, 4]), (1, [4])])
def test_a_position_reads_h_and_the_tokens_of_its_window(window: int | None, sees: list[int]) -> None:
    case = Case("autoregression", attention_window=window)
    embedded = case.model.embeddings(case.batch["text"], None).detach().requires_grad_()
    h = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    states = case.heads["decoder"](h, embedded, causal(embedded.shape[1], window, h.device))
    found = reads(states, (0, 4), embedded)
    assert np.flatnonzero(found[0]).tolist() == sees
    assert not found[1:].any()
    (gradient,) = torch.autograd.grad(states[0, 4].pow(2).sum(), h)
    assert (gradient.abs().sum(-1) > 0).tolist() == [True, False, False]
