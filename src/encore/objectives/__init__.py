"""The pre-training objectives by name: one file an objective, found by the file's name."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from encore.config.entries import PretrainStep
from encore.config.validation import OWN, UNKNOWN, first_error, nearest
from encore.errors import EncoreError

if TYPE_CHECKING:
    from encore.objectives.base import Objective


def names() -> list[str]:
    """Every objective: the modules here that say ``OBJECTIVE``, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if _class(module.name) is not None)


def load(name: str) -> type[Objective[Any]]:
    """The class of an objective.

    Raises:
        EncoreError: there is no such objective; names the nearest.
    """
    objective = _class(name) if name in {module.name for module in pkgutil.iter_modules(__path__)} else None
    if objective is None:
        raise EncoreError(f"objective {name!r} is unknown{nearest(name, names())}")
    return objective


def fields(step: dict[str, Any]) -> PretrainStep:
    """A pre-training step with the fields of its objective, checked, its defaults filled in.

    Raises:
        EncoreError: an unknown objective, an unknown field, or a value out of range.
    """
    objective = load(str(step.get("objective")))
    try:
        return objective.Fields.model_validate(step)
    except ValidationError as error:
        mistake = first_error(error)
        where = f"step {step.get('objective')!r}, field {mistake.place or 'step'!r}"
        if mistake.new_name:
            raise EncoreError(f"{where}: is now called `{mistake.new_name}`; rename it") from error
        sentence = mistake.sentence.removeprefix(OWN)
        hint = nearest(mistake.name, mistake.known_fields) if mistake.kind == UNKNOWN and mistake.known_fields else ""
        raise EncoreError(f"{where}: {sentence[:1].lower()}{sentence[1:]}{hint}") from error


def _class(module: str) -> type[Objective[Any]] | None:
    return getattr(import_module(f"{__name__}.{module}"), "OBJECTIVE", None)
