"""Whether a process runs."""

import time
from pathlib import Path


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(number: int) -> bool:
    """Whether a process ends within a minute."""
    deadline = time.monotonic() + 60
    while is_running(number) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(number)
