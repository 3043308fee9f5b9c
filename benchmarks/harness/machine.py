"""What the figures were measured on, without names of hosts."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("torch", "numpy", "transformers", "accelerate", "tokenizers")


def name() -> str:
    """The kind of machine, as part of a file's name: ``cpu-2core``, ``nvidia-h100-80gb-hbm3``."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name().lower().replace(" ", "-")
    return f"cpu-{os.cpu_count()}core"


def describe() -> dict[str, Any]:
    """Processor, cores and accelerator."""
    accelerator = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"processor": _processor(), "cores": os.cpu_count(), "accelerator": accelerator, "system": platform.system()}


def versions(others: Sequence[str] = ()) -> dict[str, str | None]:
    """Of Python, of the packages that all benchmarks use, and of others."""
    return {"python": platform.python_version()} | {package: _version(package) for package in (*PACKAGES, *others)}


def load() -> float:
    """Processes that wanted to run in the last minute, in the mean; this one is among them."""
    return round(os.getloadavg()[0], 2)


def today() -> str:
    """The date, in UTC."""
    return datetime.now(UTC).date().isoformat()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.processor()}, {torch.backends.cpu.get_cpu_capability()}"


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


COMMIT = _commit()  # when the program started, with ``+`` for uncommitted changes; empty without git or a checkout
