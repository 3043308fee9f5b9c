"""Learning rates that are tried: each as a training by itself, the best one as if it had been named alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.finetuning import step as stepping
from encore.finetuning.step import FinetuneInputs
from encore.storage.files import sha256
from encore.training.record import mean_cosine
from tests.support.small_home import STEP, finetuned

SHORT = {name: value for name, value in STEP.items() if name != "validate_every"} | {"steps": 6}
RATES = [1e-7, 5e-3]


@pytest.fixture
def inputs(home: Path, negatives: Path) -> FinetuneInputs:
    return FinetuneInputs(*(home / name for name in ("tokens", "collection", "start")), negatives)


def tried(inputs: FinetuneInputs, place: Path, name: str, **changes: Any) -> Any:
    return finetuned(SHORT | {"learning_rates": RATES} | changes, inputs, place / name, place / f"state-{name}")


def test_the_rate_that_validates_best_trains_as_if_it_were_named(inputs: FinetuneInputs, tmp_path: Path) -> None:
    done = tried(inputs, tmp_path, "chosen").results
    for rate in RATES:
        alone = SHORT | {"learning_rate": rate, "steps": 3, "validate_every": 3}
        trial = finetuned(alone, inputs, tmp_path / f"{rate}", tmp_path / f"state-{rate}")
        assert done[f"validation_at_{rate:g}"] == round(trial.validations[-1][1], 6)
    assert done["validation_at_0.005"] > done["validation_at_1e-07"]
    assert done["learning_rate"] == 5e-3
    finetuned(SHORT | {"learning_rate": 5e-3}, inputs, tmp_path / "named", tmp_path / "state-named")
    weights = [sha256(tmp_path / name / "model.safetensors") for name in ("chosen", "named")]
    assert weights[0] == weights[1]
    assert done["cosine_to_start"] < 0.99
    unmoved = tried(inputs, tmp_path, "unmoved", learning_rates=[1e-7]).results
    assert 0.9999 < unmoved["cosine_to_start"] <= 1
    assert unmoved["validation_before"] == done["validation_before"]


def test_a_killed_search_goes_on_and_repeats_no_trial(
    inputs: FinetuneInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = tried(inputs, tmp_path, "whole").results
    train, begun = stepping.train, list[float]()

    def killed(*given: Any, **more: Any) -> Any:
        begun.append(given[3].learning_rate)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return train(*given, **more)

    monkeypatch.setattr(stepping, "train", killed)
    with pytest.raises(KeyboardInterrupt):
        tried(inputs, tmp_path, "again")
    assert tried(inputs, tmp_path, "again").results == done
    assert begun == [1e-7, 5e-3, 5e-3, 5e-3], "the second trial again, and then the training"
    assert sha256(tmp_path / "again/model.safetensors") == sha256(tmp_path / "whole/model.safetensors")


def test_how_far_vectors_moved_by_hand() -> None:
    before, after = np.array([[1, 0], [0, 2]], np.float32), np.array([[3, 0], [1, 1]], np.float32)
    assert mean_cosine(before, after) == pytest.approx((1 + 0.5**0.5) / 2)
