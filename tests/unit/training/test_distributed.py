"""Two processes that train together learn what one learns with the whole batch."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from safetensors.torch import load_file

from encore.errors import EncoreError
from encore.models.memory import PartSize
from encore.training import loop
from encore.training.distributed import ProcessGroup
from encore.training.record import Trained
from tests.support import side_by_side, two_processes
from tests.support.simulated_gpu import simulated_gpu
from tests.support.small_training import NUMERICS, step_of


class Pair(NamedTuple):
    """What two processes learned, in a folder, and what each of them printed."""

    on_gpus: bool
    folder: Path
    printed: list[str]


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """What two processes learn, each with a simulated GPU, or without."""
    folder, on_gpus = tmp_path_factory.mktemp("pair"), bool(request.param)
    command = [sys.executable, "-m", "tests.support.two_processes", str(folder)]
    return Pair(on_gpus, folder, side_by_side.printed(command, *sys.path, on_gpus=on_gpus))


ON_PROCESSORS, ON_GPUS = (pytest.mark.parametrize("pair", [gpus], indirect=True) for gpus in (False, True))
PAIRED = [*((False, case) for case in two_processes.CASES), *((True, case) for case in two_processes.ON_GPUS)]


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "case"), PAIRED, indirect=["pair"])
def test_two_processes_learn_what_one_does(
    case: str, pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "dropout" in case:  # which is drawn from where a part begins: so this one has the parts of two processes
        monkeypatch.setattr(PartSize, "split", lambda size, sizes: [range(rank, len(sizes), 2) for rank in range(2)])
    first, second = (load_file(pair.folder / f"{case}-{rank}") for rank in range(2))
    with simulated_gpu() if pair.on_gpus else nullcontext():
        done, alone = two_processes.trained(case, tmp_path)
    counts, losses = first.pop("counts"), first.pop("losses")
    torch.testing.assert_close(losses, torch.tensor([point.terms["loss"] for point in done.losses]), rtol=1e-6, atol=0)
    assert counts[1] == done.examples
    assert first.keys() == alone.keys()
    assert any(name.endswith(".grad") for name in alone)
    for name, value in alone.items():
        torch.testing.assert_close(first[name], value.cpu(), rtol=1e-5, atol=1e-9, msg=f"{case}: {name}")
        assert torch.equal(first[name], second[name]), "both processes end with the same weights"


@pytest.mark.slow
@ON_PROCESSORS
def test_the_first_process_alone_prints_and_saves(pair: Pair) -> None:
    first, second = pair.printed
    assert first.count("step 2/2") == len(two_processes.CASES)
    assert second == ""
    assert len(list((pair.folder / "state/ict in parts").iterdir())) == 2


@pytest.mark.slow
@ON_PROCESSORS
@pytest.mark.parametrize("case", ["mlm in little memory", "ict joined in little memory"])
def test_memory_that_ends_in_one_process_ends_in_all(case: str, pair: Pair) -> None:
    first, second = (load_file(pair.folder / f"{case}-{rank}")["counts"][2] for rank in range(2))
    assert first == second > 0
    assert "out of memory; continuing with " in pair.printed[0]


@pytest.mark.slow
@ON_GPUS
def test_a_step_waits_for_the_device_once_as_that_of_one_process_does(pair: Pair) -> None:
    for rank in range(2):
        waits = json.loads((pair.folder / f"waits-{rank}.json").read_text())
        assert list(waits) == list(two_processes.ON_GPUS)
        for case, found in waits.items():
            assert found == {"models/transfer.py: self._copied.synchronize()": 1}, case


@pytest.mark.parametrize(("count", "size"), [(8, 2), (7, 2), (7, 3), (3, 3)])
def test_shares_are_all_examples(count: int, size: int) -> None:
    shares = [ProcessGroup(rank, size).share(count) for rank in range(size)]
    assert sorted(place for share in shares for place in share) == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert max(map(len, shares)) == -(-count // size)


def test_more_processes_than_examples_are_refused() -> None:
    with pytest.raises(EncoreError, match="a batch of 2 examples cannot be shared by 3 processes; start fewer"):
        loop._part_size(Trained(), step_of(batch=2), 100, NUMERICS, ProcessGroup(0, 3))
