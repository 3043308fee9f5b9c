"""The stages by name: one file a stage, found by the file's name; each makes one kind of folder of results.

A stage is added with one file here that defines ``STAGE``, and one rule (docs/add-a-stage.md). Some have variants,
named ``pretrain.ict`` or ``collection.beir``: an objective, or a kind of dataset, is a file in a folder of its kind.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.storage.source_text import source_digest

if TYPE_CHECKING:
    from encore.stages.base import Stage


@cache
def names() -> list[str]:
    """Every stage: the modules of this folder that define ``STAGE``, in alphabetical order."""
    return sorted(name for name in _modules() if _class(name) is not None)


@cache
def that(does: str) -> frozenset[str]:
    """The stages that do something: ``fetches``, ``trains`` or ``indexes``."""
    return frozenset(name for name in names() if load(name).does == does)


def load(name: str) -> type[Stage]:
    """The class of a stage.

    Args:
        name: with or without a variant: ``encode``, ``pretrain.ict``.
    """
    kind = name.partition(".")[0]
    found = _class(kind) if kind in _modules() else None
    if found is None:
        raise EncoreError(f"stage {kind!r} is unknown{nearest(kind, names())}")
    return found


def code_digest(name: str) -> str:
    """Digest of the source text of a stage, and of its variant.

    Args:
        name: as manifests have it: ``pretrain.ict``.
    """
    return source_digest(*load(name).modules(name.partition(".")[2]))


@cache
def _modules() -> frozenset[str]:
    return frozenset(module.name for module in pkgutil.iter_modules(__path__))


@cache
def _class(module: str) -> Any:
    return getattr(import_module(f"{__name__}.{module}"), "STAGE", None)
