"""What is wrong with data that pydantic refuses: its complaints as one thing that a line can say."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

UNKNOWN, MISSING = "extra_forbidden", "missing"  # kinds of mistakes, as pydantic names them


class Mistake(NamedTuple):
    """One mistake: where (in dots, empty for the whole), its kind, pydantic's sentence on it, and what was found."""

    place: str
    kind: str
    sentence: str
    found: Any
    beside: list[str]  # names of the fields that could stand there

    @property
    def name(self) -> str:
        """The last part of the place."""
        return self.place.rpartition(".")[2]


def explain(error: ValidationError) -> Mistake:
    """The mistake to tell of a validation.

    A misspelt key comes first: that the right one is missing follows from it.
    """
    first = min(error.errors(), key=lambda mistake: mistake["type"] != UNKNOWN)
    place = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function-"))
    return Mistake(place, first["type"], first["msg"], first["input"], _fields_beside(error, first["loc"]))


def _fields_beside(error: ValidationError, loc: tuple[int | str, ...]) -> list[str]:
    """Names of the fields that could stand where a key stands."""
    model = _models().get(error.title)
    for part in loc[:-1]:
        annotation = model.model_fields[part].annotation if model and part in model.model_fields else None
        model = annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
    return list(model.model_fields) if model else []


def _models() -> dict[str, type[BaseModel]]:
    found: dict[str, type[BaseModel]] = {}
    waiting: list[type[BaseModel]] = [BaseModel]
    while waiting:
        for child in waiting.pop().__subclasses__():
            found[child.__name__] = child
            waiting.append(child)
    return found
