"""How many steps a training takes, and the learning rate of each."""

from typing import Any

import pytest

from encore.config.entries import Step
from encore.training.schedule import learning_rate, total_steps


def step_of(**fields: Any) -> Step:
    base = {"collection": "made-up", "batch": 8, "learning_rate": 1e-3, "length": 48, "source": "a test"}
    return Step(**{**base, **fields})


def test_steps_come_from_steps_or_from_epochs_of_the_scale_or_of_the_data() -> None:
    assert total_steps(step_of(steps=17), 100) == 17
    assert total_steps(step_of(epochs=3), 100) == 39
    assert total_steps(step_of(epochs=1.5, steps_per_epoch=10), 100) == 15


def test_learning_rates_of_the_schedules() -> None:
    linear = [learning_rate(step_of(learning_rate=1.0, warmup=0.2), done, 10) for done in range(10)]
    assert linear == pytest.approx([0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])
    cosine = [learning_rate(step_of(learning_rate=1.0, warmup=0, schedule="cosine"), done, 4) for done in range(5)]
    assert cosine[0] == 1
    assert cosine[2] == pytest.approx(0.55)
    assert cosine[4] == pytest.approx(0.1)
    assert learning_rate(step_of(learning_rate=1.0, warmup=4, schedule="constant"), 1, 100) == 0.5
    assert learning_rate(step_of(learning_rate=1.0, warmup=4, schedule="constant"), 50, 100) == 1
