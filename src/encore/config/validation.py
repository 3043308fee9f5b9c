"""Checking what users write: YAML and its fields; the first mistake in one line, with the nearest right name."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from encore.errors import EncoreError, quoted

M = TypeVar("M", bound=BaseModel)
OWN = "Value error, "  # what pydantic puts before a sentence of our own
YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C ten times as fast, and the same content
LONGEST_NAME = 80  # characters of an entry; folders have several in theirs, and 255 in all
NAME = re.compile(rf"[a-z0-9][a-z0-9_.-]{{0,{LONGEST_NAME - 1}}}")  # of an entry, as workflow/rules has it
DATASET = re.compile(NAME.pattern.replace("a-z", "A-Za-z"))  # of a run's own, which no lineage's name holds
MOST_NESTED = 1000  # brackets, or columns of indentation
MOST_LEVELS, MOST_REPEATED = 100, 100_000  # of values, and of values once all aliases are written out
Size = tuple[int, int]  # values, and their levels
BEING_COUNTED = (0, 0)

_NUMBERS = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
UNKNOWN, MISSING = "unknown_key", "missing"  # kinds of mistakes: our own and pydantic's


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping."""
    content = load_yaml(path)
    if not isinstance(content, dict):
        raise EncoreError(f"{path} must hold a mapping of names")
    return content


def load_yaml(path: Path, called: str = "") -> Any:
    """What a YAML file holds, without code of any kind.

    Args:
        called: what messages call the file, if not by its path.
    """
    name = called or str(path)
    try:
        text = path.read_text(encoding="utf-8")
        _refuse_depth(text)
        loader = YAML_LOADER(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check_node(node, name, max(MOST_REPEATED, len(text)), {})  # a text holds fewer values than characters
        return loader.construct_document(node)
    except FileNotFoundError as error:
        raise EncoreError(f"{name} is missing; restore it from the repository") from error
    except OSError as error:
        raise EncoreError(f"{name} cannot be read: {error.strerror}; make it a file that can be") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, or a date that is none
        raise EncoreError(f"{name} is not YAML: {yaml_reason(error)}") from error


def yaml_reason(error: Exception) -> str:
    """The error in a text that is not YAML, in one line."""
    return " ".join(str(error).replace('in "<unicode string>", ', "").split())[:200]


def _refuse_depth(text: str) -> None:
    """The reader in C overflows its stack, and ends Python, where nesting never ends."""
    depth = deepest = 0
    for sign in re.findall(r"[\[\]{}]", text) if text.count("[") + text.count("{") > MOST_NESTED else ():
        depth = max(0, depth + (1 if sign in "[{" else -1))
        deepest = max(deepest, depth)
    if deepest > MOST_NESTED or re.search(rf"^[ ?-]{{{MOST_NESTED + 1}}}", text, re.MULTILINE):
        raise ValueError("nested too deeply")


def _check_node(node: yaml.Node, name: str, most: int, known: dict[int, Size], above: int = 0) -> Size:
    """How many values a node stands for and how many levels they have, once all aliases are written out.

    Refused before it is read: a key twice in one mapping, which YAML forbids and its reader takes; NUL, which no path
    can hold; and what aliases make endless, huge or deep, since 400 bytes can stand for 10^9 values.
    """
    if isinstance(node, yaml.ScalarNode) and "\0" in node.value:
        raise EncoreError(f"{name}, line {node.start_mark.line + 1}: a text holds a NUL character; take it out")
    if node.tag in _NUMBERS and re.search(r"^[-+]?0[0-7_]|:", node.value):
        raise EncoreError(
            f"{name}, line {node.start_mark.line + 1}: YAML reads {node.value} as {yaml.safe_load(node.value)}; write "
            "the number without a leading 0 or a colon, or put a text in quotes"
        )
    if not isinstance(node, yaml.CollectionNode):
        return 1, 1
    if id(node) not in known:
        known[id(node)] = BEING_COUNTED
        inner: list[yaml.Node] = node.value
        if isinstance(node, yaml.MappingNode):
            _refuse_repetitions(node, name)
            inner = [part for pair in node.value for part in pair]
        if above >= MOST_LEVELS:
            raise ValueError("nested too deeply")
        sizes, levels = zip((1, 0), *(_check_node(each, name, most, known, above + 1) for each in inner), strict=True)
        known[id(node)] = sum(sizes), 1 + max(levels)
    if known[id(node)] == BEING_COUNTED:
        raise EncoreError(f"{name}, line {node.start_mark.line + 1}: a value holds itself; write out what it holds")
    size, levels_below = known[id(node)]
    if size > most:
        raise EncoreError(f"{name}: aliases stand for over {MOST_REPEATED:,} values; write out what is needed")
    if above + levels_below > MOST_LEVELS:
        raise ValueError("nested too deeply")
    return size, levels_below


def _refuse_repetitions(node: yaml.MappingNode, name: str) -> None:
    keys: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in keys:
            line = key.start_mark.line + 1
            raise EncoreError(f"{name}, line {line}: the key `{key.value}` is there twice; keep one of them")
        if isinstance(key, yaml.ScalarNode):
            keys.add((key.tag, key.value))


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
