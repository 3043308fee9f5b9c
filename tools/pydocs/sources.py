"""Which source files are read: the standard library's, and those that an installed package's own file list names.

Files are found, never imported. What a file is called depends on its place below the import root only, so two
installations of one version give the same list.
"""

import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from encore.errors import EncoreError

# Tests, other projects' code carried along, generated code, and what differs between builds of one Python version.
_SKIPPED_FOLDER = re.compile(
    "tests?|idle_test|benchmarks|_examples|externals|_external|extern|_?vendor(ed)?|_bundled|array_api_(compat|extra)|_uarray"
    "|_highspy|cobyqa|pyprima|_antlr|pydoc_data|turtledemo|_pyinstaller|__pycache__"
)
_SKIPPED_FILE = re.compile(r"(test_.*|.*_test|conftest|setup|_sysconfigdata.*|(?!__init__)__\w+__)\.py")


class SourceFile(NamedTuple):
    """One Python file and the dotted name of its module."""

    module: str
    path: Path


def standard_library() -> list[SourceFile]:
    """The running interpreter's own modules, in order of their names."""
    root = library_folder()
    return _sources((PurePosixPath(path.relative_to(root).as_posix()), path) for path in _walk(root))


def library_folder() -> Path:
    """The folder of the running interpreter's own modules."""
    return Path(sysconfig.get_path("stdlib"))


def package(name: str) -> list[SourceFile]:
    """The modules of an installed distribution, in order of their names.

    Raises:
        EncoreError: it is not installed, or was installed without the list of its files.
    """
    files = _distribution(name).files
    if not files:
        raise EncoreError(f"package {name!r} was installed without a list of its files; install it again with pip")
    return _sources((PurePosixPath(file), Path(str(file.locate()))) for file in files if file.suffix == ".py")


def version(name: str) -> str:
    """The installed version of a distribution.

    Raises:
        EncoreError: it is not installed.
    """
    return _distribution(name).version


def python_version() -> str:
    """The running Python's version, such as ``3.11.7``."""
    return ".".join(map(str, sys.version_info[:3]))


def _distribution(name: str) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise EncoreError(
            f"package {name!r} is not installed, and pydocs reads its texts; make the environment with `make env`"
        ) from None


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and path.name.isidentifier() and not _SKIPPED_FOLDER.fullmatch(path.name):
            yield from _walk(path)
        elif path.suffix == ".py":
            yield path


def _sources(files: Iterable[tuple[PurePosixPath, Path]]) -> list[SourceFile]:
    named = {name: path for relative, path in files if (name := _module(relative)) is not None}
    return [SourceFile(name, named[name]) for name in sorted(named)]


def _module(relative: PurePosixPath) -> str | None:
    """``pandas/core/frame.py`` -> ``pandas.core.frame``; None for files that are not read."""
    folders = relative.parts[:-1]
    if _SKIPPED_FILE.fullmatch(relative.name) or any(map(_SKIPPED_FOLDER.fullmatch, folders)):
        return None
    parts = folders if relative.name == "__init__.py" else (*folders, relative.stem)
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else None
