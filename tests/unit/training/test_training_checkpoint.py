"""An interrupted training goes on from its checkpoints and ends with the same bytes."""

import multiprocessing
import os
import random
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from encore.errors import EncoreError
from encore.training import checkpoint
from encore.training.record import Trained
from tests.support.small_training import InterruptionError, equal, run


@pytest.mark.parametrize("name", ["mlm", pytest.param("costa", marks=pytest.mark.slow)])
def test_an_interrupted_training_ends_with_the_same_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"min_tokens": 8}
    whole, weights = run(tmp_path / "whole", name, **fields)
    original, saved = checkpoint.save_checkpoint, []

    def save(folder: Path, run: str, step: int, content: dict[str, Any]) -> None:
        original(folder, run, step, content)
        saved.append(step)
        if len(saved) in (3, 20):
            raise InterruptionError

    monkeypatch.setattr(checkpoint, "save_checkpoint", save)
    for _ in range(2):
        with pytest.raises(InterruptionError):
            run(tmp_path / "cut", name, seconds=0, **fields)
    resumed, again = run(tmp_path / "cut", name, seconds=0, **fields)
    assert saved == [*range(1, len(saved) + 1)], "no step is taken again"
    assert len(saved) > 20
    assert equal(weights, again)
    assert resumed == whole


def killed_or_done(state: Path, output: Path, deadly: int | None) -> None:
    """Train in this process, which ends with step ``deadly``; or to the end, then write all weights."""
    original = Trained.count

    def count(self: Trained, *arguments: Any) -> None:
        original(self, *arguments)
        if self.steps == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    Trained.count = count  # type: ignore[method-assign]
    save_file(run(state, "mlm", min_tokens=8, steps=40, seconds=0)[1], output)


def going_on(printed: str) -> list[int]:
    """The steps after which trainings went on, as they say."""
    return [int(step) for step in re.findall(r"^resuming after step (\d+)$", printed, re.MULTILINE)]


@pytest.mark.slow
def test_a_training_killed_at_random_steps_is_gone_on_with_to_the_same_bytes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, whole = run(tmp_path / "whole", "mlm", min_tokens=8, steps=40)
    kills = sorted(random.sample(range(2, 40), 4))
    for deadly in [*kills, None]:
        arguments = (tmp_path / "state", tmp_path / "cut", deadly)
        child = multiprocessing.get_context("fork").Process(target=killed_or_done, args=arguments)
        child.start()
        child.join(timeout=600)
        assert child.exitcode == (0 if deadly is None else -signal.SIGKILL), f"it was to be killed at step {deadly}"
    assert going_on(capfd.readouterr().out) == [deadly - 1 for deadly in kills]
    assert equal(load_file(tmp_path / "cut"), whole)


def test_two_checkpoints_are_kept_and_a_damaged_one_gives_way_to_the_one_before(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        checkpoint.save_checkpoint(tmp_path, "run", step, {"value": torch.tensor(step)})
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["step-000000002.pt", "step-000000003.pt"]
    assert checkpoint.load_checkpoint(tmp_path, "run")["step"] == 3
    (tmp_path / "step-000000003.pt").write_bytes(b"half")
    assert checkpoint.load_checkpoint(tmp_path, "run")["step"] == 2
    (tmp_path / "step-000000002.pt").write_bytes(b"")
    assert checkpoint.load_checkpoint(tmp_path, "run") is None


def test_a_flipped_bit_is_never_resumed_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = {"model": {"weight": torch.arange(2000.0)}, "losses": [0.5] * 100}
    for step in (1, 2):
        checkpoint.save_checkpoint(tmp_path, "run", step, content)
    newest, rng = tmp_path / "step-000000002.pt", random.Random(0)
    whole = newest.read_bytes()
    for _ in range(400):
        place, bit = rng.randrange(len(whole)), rng.randrange(8)
        newest.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
        found = checkpoint.load_checkpoint(tmp_path, "run")
        assert found is not None
        assert found["step"] == 1, f"byte {place}, bit {bit}"
        assert not newest.exists(), "it would else count among the two that are kept"
    said = capsys.readouterr().out.splitlines()
    assert set(said) == {f"{newest} is damaged; resuming from the checkpoint before it, or from the start"}
    newest.write_bytes(whole)
    newest.rename(tmp_path / "step-000000003.pt")
    assert checkpoint.load_checkpoint(tmp_path, "run")["step"] == 1, "another step's bytes"
    newest.write_bytes(whole)
    assert checkpoint.load_checkpoint(tmp_path, "run")["step"] == 2


def test_checkpoints_of_another_training_are_refused_and_kept_for_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, steps=3, seconds=0)
    last = max(tmp_path.iterdir())
    with pytest.raises(EncoreError, match="is of another training"):
        run(tmp_path, steps=4, seconds=0)
    run(tmp_path, steps=3, seconds=0)
    assert going_on(capsys.readouterr().out) == [int(last.stem.removeprefix("step-"))]
