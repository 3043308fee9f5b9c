"""Commands in messages, complete: with the run's file, unless it is the default one."""

import os
import shlex
from pathlib import Path

from encore.storage import environment

DEFAULT_RUN = Path("config/config.yaml")
REMAKE = "`encore audit --prune` removes it, and snakemake makes it again"  # for damaged or changed artifacts


def called(run: Path) -> str:
    """The run's file as a command names it: nothing for the default, and no folders of one machine."""
    name = os.path.relpath(run)
    if Path(name) == DEFAULT_RUN:
        return ""
    return run.name if name.startswith("..") else name


def encore(*words: str, run: str | None = None) -> str:
    """A command of Encore's.

    Args:
        run: the run's file as ``called`` gives it; without, that of the job.
    """
    run = called(Path(environment.text(environment.RUN) or DEFAULT_RUN)) if run is None else run
    return shlex.join(["encore", *words, *(["--config", run] if run else [])])


def snakemake(*words: str, run: str) -> str:
    """A command of Snakemake's on this machine."""
    return shlex.join(["snakemake", *words, "--profile", "local", *(["--configfile", run] if run else [])])
