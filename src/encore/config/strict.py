"""What all models of the configuration share: they are strict, and count with a few kinds of numbers."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from encore.config.validation import UNKNOWN

Positive = Annotated[int, Field(gt=0)]
Length = Annotated[int, Field(ge=3)]  # [CLS], a word piece, [SEP]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
Share = Annotated[float, Field(ge=0, le=1)]
MaskedShare = Annotated[float, Field(gt=0, le=1)]  # something is always masked


class Strict(BaseModel):
    """Unknown keys are errors, numbers are finite and neither true nor false, values never change after validation."""

    # Built when first used: building each model alone and again in those around it was a third of what imports took.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, given: Any) -> Any:
        """Refuse unknown keys with those that are known, and true or false for a number: pydantic reads true as 1."""
        known = [field.alias or name for name, field in cls.model_fields.items()]
        is_open = cls.model_config.get("extra") == "allow"
        for key in given if isinstance(given, dict) and not is_open else ():
            if isinstance(key, str) and key not in known:
                raise PydanticCustomError(UNKNOWN, "unknown key", {"key": key, "known": known})
        for key in _numbers(cls) if isinstance(given, dict) else ():
            if _has_boolean(given.get(key)):
                raise ValueError(f"{key}: must be a number, not true or false")
        return given


def _has_boolean(value: Any) -> bool:
    inner = [*value, *value.values()] if isinstance(value, Mapping) else value
    return any(map(_has_boolean, inner)) if isinstance(inner, list | tuple) else isinstance(value, bool)


@cache
def _numbers(model: type[BaseModel]) -> list[str]:
    """The keys that take numbers and no booleans, by themselves or in lists and mappings."""
    kinds = {field.alias or name: list(_kinds(field.annotation)) for name, field in model.model_fields.items()}
    return [key for key, own in kinds.items() if (int in own or float in own) and bool not in own and Any not in own]


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types that an annotation consists of: ``str`` and ``int`` of ``dict[str, list[int]]``."""
    yield annotation
    for inner in get_args(annotation):
        yield from _kinds(inner)
