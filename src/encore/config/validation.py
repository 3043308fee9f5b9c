"""Checking what users write: YAML and its fields; the first mistake in one line, with the nearest right name.

All models of the configuration are ``Strict``, and count with a few kinds of numbers.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from encore.errors import EncoreError, quoted

M = TypeVar("M", bound=BaseModel)
OWN = "Value error, "  # what pydantic puts before a sentence of our own
YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C ten times as fast, and the same content
LARGEST_YAML = 1_000_000  # bytes
LONGEST_NAME = 80  # characters of an entry; folders have several in theirs, and 255 in all
NAME = re.compile(rf"[a-z0-9][a-z0-9_.-]{{0,{LONGEST_NAME - 1}}}")  # of an entry, as workflow/rules has it
DATASET = re.compile(NAME.pattern.replace("a-z", "A-Za-z"))  # of a run's own, which no lineage's name holds
UNKNOWN, MISSING = "unknown_key", "missing"  # kinds of mistakes: our own and pydantic's


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping."""
    content = load_yaml(path)
    if not isinstance(content, dict):
        raise EncoreError(f"{path} must hold a mapping of names")
    return content


def load_yaml(path: Path) -> Any:
    """What a YAML file holds, without code of any kind."""
    try:
        if path.stat().st_size > LARGEST_YAML:
            raise EncoreError(f"{path} has more than {LARGEST_YAML:,} bytes; leave out what is not needed")
        loader = _Loader(path.read_text(encoding="utf-8"))
        loader.path = path
        return loader.get_single_data()
    except FileNotFoundError as error:
        raise EncoreError(f"{path} is missing; restore it, or name another file") from error
    except OSError as error:
        raise EncoreError(f"{path} cannot be read: {error.strerror}; make it a file that can be") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, or a date that is none
        raise EncoreError(f"{path} is not YAML: {yaml_reason(error)}") from error


class _Loader(YAML_LOADER):
    """YAML's safe loader, which refuses what it would read otherwise than it was meant."""

    path = Path()

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._looked_at: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put in what a mapping takes from others (``<<``), after a look at its own keys: YAML forbids equal ones."""
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode) and id(node) not in self._looked_at]
        self._looked_at.add(id(node))
        found: set[tuple[str, str]] = set()
        for key in keys:
            if (key.tag, key.value) in found:
                raise self._refused(key, f"the key `{key.value}` is there twice; keep one of them")
            found.add((key.tag, key.value))
        super().flatten_mapping(node)

    def construct_number(self, node: yaml.ScalarNode) -> float:
        """An int or a float; ``0200`` would be 128, and ``1:30`` would be 90."""
        integer = node.tag.endswith(":int")
        value: float = self.construct_yaml_int(node) if integer else self.construct_yaml_float(node)
        if re.search(r"^[-+]?0[0-7_]|:", node.value):
            how = "write the number without a leading 0 or a colon, or put a text in quotes"
            raise self._refused(node, f"YAML reads {node.value} as {value}; {how}")
        return value

    def _refused(self, node: yaml.Node, sentence: str) -> EncoreError:
        return EncoreError(f"{self.path}, line {node.start_mark.line + 1}: {sentence}")


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)


def yaml_reason(error: Exception) -> str:
    """The error in a text that is not YAML, in one line."""
    return " ".join(str(error).replace('in "<unicode string>", ', "").split())[:200]


def refuse_odd_name(name: object, what: str, form: re.Pattern[str] = NAME) -> None:
    """Refuse, by an EncoreError, a name that cannot be part of a folder's, a target's or a lineage's."""
    if not isinstance(name, str) or not form.fullmatch(name):
        letters = "A-Z, a-z" if form is DATASET else "a-z"
        raise EncoreError(
            f"{quoted(name)} cannot be the name of {what}; begin with {letters} or 0-9, continue with {letters}, 0-9, "
            f"_, . and -, {LONGEST_NAME} characters at most"
        )


def checked(model: type[M], value: Any, place: str) -> M:
    """Validate a mapping; the first mistake in one line."""
    with explained(place):
        return model.model_validate(value)


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Turn a complaint of what is done inside into one line that starts with the place."""
    try:
        yield
    except ValidationError as error:
        raise EncoreError(_first_mistake(error, place)) from error
    except EncoreError as error:
        raise EncoreError(f"{place}: {error}") from error


def by_kind(fields: dict[str, Any], kinds: Mapping[str, type[M]], what: str) -> M:
    """Check an entry's fields by its ``kind``."""
    kind: Any = fields.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise EncoreError(f"unknown kind of {what} {kind!r}{nearest(str(kind), kinds)}")
    return kinds[kind].model_validate(fields)


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean …?`` for a wrong name, or the list of the known ones when none is near."""
    names = sorted(map(str, known))
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else f"; known are {', '.join(names) or 'none'}"


def _first_mistake(error: ValidationError, place: str) -> str:
    """The first mistake of a validation in one line: where, what, and for a wrong key the nearest right one.

    A misspelt key comes first: that the right one is missing follows from it.
    """
    first = min(error.errors(), key=lambda mistake: mistake["type"] != UNKNOWN)
    path, found, sentence = first["loc"], first["input"], first["msg"]
    path = (*path, first["ctx"]["key"]) if first["type"] == UNKNOWN else path
    where = ".".join(str(part) for part in path if not str(part).startswith("function-"))
    start = place + (": " if place.endswith(".yaml") or not where else ".")
    if first["type"] == UNKNOWN:
        return f"{start}{where}: unknown key{nearest(str(path[-1]), first['ctx']['known'])}"
    if first["type"] == MISSING:
        return f"{start}{where}: is required; add it"
    if sentence.startswith(OWN) and isinstance(found, dict):  # fields do not fit; it says which
        return start + (f"{where}: " if where else "") + sentence.removeprefix(OWN)
    sentence = sentence.removeprefix(OWN)
    return f"{start}{where or 'all of it'}: {sentence[:1].lower()}{sentence[1:]} (found {str(found)[:60]!r})"


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
        is_closed = cls.model_config.get("extra") == "forbid"
        for key in given if isinstance(given, dict) and is_closed else ():
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
