"""The pre-training objectives by name: one file an objective, found by the file's name."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from encore.config.entries import PretrainStep
from encore.config.validation import checked, nearest
from encore.errors import EncoreError

if TYPE_CHECKING:
    from encore.objectives.base import Objective


def names() -> list[str]:
    """Every objective: the modules of this folder that define ``OBJECTIVE``, in alphabetical order."""
    return sorted(name for name in _modules() if _class(name) is not None)


def load(name: str) -> type[Objective[Any]]:
    """The class of an objective."""
    objective = _class(name) if name in _modules() else None
    if objective is None:
        raise EncoreError(f"objective {name!r} is unknown{nearest(name, names())}")
    return objective


def fields(step: dict[str, Any]) -> PretrainStep:
    """A pre-training step with the fields of its objective, checked, its defaults filled in."""
    objective = load(str(step.get("objective")))
    return checked(objective.Fields, step, f"objective {step['objective']}")


@cache
def _modules() -> frozenset[str]:
    return frozenset(module.name for module in pkgutil.iter_modules(__path__))


def _class(module: str) -> type[Objective[Any]] | None:
    return getattr(import_module(f"{__name__}.{module}"), "OBJECTIVE", None)
