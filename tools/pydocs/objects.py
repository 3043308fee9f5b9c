"""Documented objects in the form that all later steps share."""

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from encore.storage.processes import shared_in_order
from tools.pydocs.docstrings import parse
from tools.pydocs.extract import documented
from tools.pydocs.sources import SourceFile

TOGETHER = 16  # sources handed to a process at once
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Object:
    """A module, class, function or method: the summary may become a query, the sentences are its body."""

    module: str
    name: str  # dotted within the module, empty for the module itself
    summary: str
    sentences: tuple[str, ...]
    see_also: tuple[str, ...] = ()
    references: tuple[str, ...] = ()

    @cached_property
    def id(self) -> str:
        """The dotted name: the module's, and the object's within it."""
        return f"{self.module}.{self.name}" if self.name else self.module

    @property
    def package(self) -> str:
        """The first part of the name: the scope in which names are looked up."""
        return self.module.partition(".")[0]


def words(text: str) -> list[str]:
    """Lower-case words of letters and digits: what duplicates are compared by."""
    return _WORD.findall(text.lower())


def read_objects(sources: Sequence[SourceFile], processes: int = 1) -> list[Object]:
    """The objects of all sources; those of a module stand together, the module's own first.

    The order depends on names alone: the order of ``sources``' first parts, then modules by name, then the file. Of two
    objects with one id the first is kept.
    """
    scopes = {
        scope: rank for rank, scope in enumerate(dict.fromkeys(source.module.partition(".")[0] for source in sources))
    }
    found = sorted(
        _read_all(sources, processes), key=lambda each: (scopes.get(each.package, 0), each.module, each.name != "")
    )
    unique: dict[str, Object] = {}
    for each in found:
        unique.setdefault(each.id, each)
    return list(unique.values())


def _read_all(sources: Sequence[SourceFile], processes: int) -> Iterator[Object]:
    parts = (sources[first : first + TOGETHER] for first in range(0, len(sources), TOGETHER))
    return chain.from_iterable(shared_in_order(_read_some, parts, processes))


def _read_some(sources: Sequence[SourceFile]) -> list[Object]:
    with _without_gc():
        return [each for source in sources for each in _read_one(source)]


@contextmanager
def _without_gc() -> Iterator[None]:
    """Syntax trees hold no cycles, and looking for some takes a quarter of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _read_one(source: SourceFile) -> list[Object]:
    return [Object(entry.module, entry.name, *parse(entry.docstring)) for entry in documented(source)]
