"""Two processes that work together, as torchrun starts them."""

import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.forks import SIMULATED_GPU

ROOT = Path(__file__).parents[2]


def printed(command: Sequence[str], *paths: str, on_gpus: bool) -> list[str]:
    """What each prints of a command that succeeds; with ``on_gpus`` each has a simulated GPU.

    Args:
        paths: where Python finds modules.
    """
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    common = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    common |= {SIMULATED_GPU: "1", "LOCAL_WORLD_SIZE": "2"} if on_gpus else {}
    both = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=600)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    return outputs
