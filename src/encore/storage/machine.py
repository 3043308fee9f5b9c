"""The machine and its installed packages, without names of hosts or dates."""

import errno
import os
import platform
import resource
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

# Of torch, which is not imported for the name; of libraries that allocate for themselves; and of CUDA where it loads a
# kernel or NCCL makes a connection.
NO_MEMORY = (
    "OutOfMemoryError",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDA error: out of memory",
    "CUDA driver error: out of memory",
)
# What a machine lacks: room, permission, memory, open files, or a disk that answers.
LACKS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EACCES, errno.EPERM, errno.ENOMEM}
LACKS |= {errno.EMFILE, errno.ENFILE, errno.EIO, errno.ESTALE}
NO_ROOM = ("No usable temporary directory", os.strerror(errno.ENOSPC))  # in exceptions without such a number


def is_of_machine(error: BaseException | None) -> bool:
    """True if an error, or one behind it, says what this machine lacks, and nothing of the files that are read."""
    while error is not None:
        if isinstance(error, MemoryError | ImportError) or any(text in str(error) for text in NO_ROOM):
            return True
        if isinstance(error, OSError) and error.errno in LACKS:
            return True
        error = error.__cause__ or error.__context__
    return False


def is_out_of_memory(error: Exception) -> bool:
    """True if torch, or a library that it calls, ran out of a GPU's memory."""
    return any(name in f"{type(error).__name__}: {error}" for name in NO_MEMORY)


def processor() -> str:
    """The model of the processor, as the system calls it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def cores() -> int | None:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def memory() -> int:
    """Bytes of main memory that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def lacks_to_compile() -> str:
    """What torch's compiler needs and this machine has not: a C compiler or Python's headers; empty if it has both."""
    named = [os.environ[name] for name in ("CC", "CXX") if os.environ.get(name)]
    if not any(map(shutil.which, named or ("cc", "gcc", "g++", "clang"))):
        return "a C compiler (gcc and g++)"
    there = Path(sysconfig.get_path("include"), "Python.h").is_file()
    return "" if there else "Python's headers (Debian: python3-dev)"


def peak_memory_mb() -> int:
    """The most memory that this process has ever held, in MiB; macOS counts it in bytes, others in KiB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // (2**20 if sys.platform == "darwin" else 2**10)


def gpu() -> str | None:
    """The model of the GPU that torch computes on; None without one, or where nothing has loaded torch."""
    torch = sys.modules.get("torch")
    return str(torch.cuda.get_device_name()) if torch is not None and torch.cuda.is_available() else None


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    found = {}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
