"""Reading a run's file: complete in itself, or a few keys over another run that it ``extends``."""

from pathlib import Path
from typing import Any

from encore.config.run import RunConfig
from encore.config.validation import checked, nearest, read_yaml
from encore.errors import EncoreError, quoted
from encore.storage import program_files

EXTENDS, SCALE, TABLES = "extends", "scale", "tables"
SHOWN_WITH_TABLES = ("figures", "lineages")  # what else a run makes


def read_run(path: Path, given: dict[str, Any] | None = None) -> RunConfig:
    """A run's configuration, from its file or from what Snakemake has already read of it."""
    config = checked(RunConfig, run_content(path, given), str(path))
    config._file = str(path)
    return config


def run_content(path: Path, given: dict[str, Any] | None = None) -> dict[str, Any]:
    """The content of a run's file, with what it takes from the run that it extends.

    Its keys replace those of the other run whole; only those of ``scale`` are replaced one by one. A run with
    its own ``tables`` makes no figure or lineage that it does not name itself.
    """
    content = read_yaml(path) if given is None or path.is_file() else given  # Snakemake takes the last of two keys
    own = dict(content if given is None else given)
    if EXTENDS not in own:
        return own
    base = _base(own.pop(EXTENDS), path)
    if isinstance(base.get(SCALE), dict) and isinstance(own.get(SCALE), dict):
        own[SCALE] = base[SCALE] | own[SCALE]
    if TABLES in own:
        base = {key: value for key, value in base.items() if key not in SHOWN_WITH_TABLES}
    return base | own


def _base(named: Any, path: Path) -> dict[str, Any]:
    """The content of the run that another one extends, checked by itself, so that messages name its file."""
    if not isinstance(named, str) or not named.strip():
        found = str(named)[:60]
        raise EncoreError(f"{path}: {EXTENDS}: must be one run's file, such as config/config.yaml (found {found!r})")
    try:
        base = program_files.found(named)
        is_file = base.is_file()
    except OSError as error:  # a name that is too long
        raise EncoreError(f"{path}: {EXTENDS}: {quoted(named)}: {error.strerror}; name a run's file") from error
    if not is_file:
        near_by = path.parent / named
        known = [near_by] if near_by.is_file() else base.parent.glob("*.yaml")
        near = nearest(named, map(str, known))
        raise EncoreError(f"{path}: {EXTENDS}: there is no {named}, which is read from the repository's root{near}")
    if base.resolve() == path.resolve():
        raise EncoreError(f"{path}: {EXTENDS}: a run cannot extend itself; name another one")
    content = read_yaml(base)
    if EXTENDS in content:
        raise EncoreError(
            f"{path}: {EXTENDS}: {named} extends {content[EXTENDS]} itself, and one level is all; extend that instead"
        )
    checked(RunConfig, content, named)
    return content
