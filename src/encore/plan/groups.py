"""Keys for several names: ``{ae,ar}`` is each of its names, ``costa-no-*`` every known one that fits."""

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from itertools import product
from math import prod

from encore.errors import EncoreError, quoted

MOST = 10_000  # names of one key
_BRACES = re.compile(r"\{(.*?)\}")


def is_group(key: str) -> bool:
    """True if a key is for several names."""
    return "*" in key or _BRACES.search(key) is not None


def alternatives(key: str) -> list[str]:
    """A key with its braces written out, in their order; stars stay."""
    parts = [part.split(",") if n % 2 else [part] for n, part in enumerate(_BRACES.split(key))]  # in braces or not
    if prod(map(len, parts)) > MOST:
        raise EncoreError(f"{quoted(key)} matches more than {MOST} names; write fewer braces")
    return ["".join(choice) for choice in product(*parts)]


def names_of(key: str, known: Collection[str]) -> list[str]:
    """The names that a key is for; one that is unknown, or fits nothing known, is among them as it is."""
    found: dict[str, None] = {}
    for name in alternatives(key):
        fitting = [each for each in known if fnmatchcase(each, name)] if "*" in name else []
        found |= dict.fromkeys(fitting or [name])
    return list(found)
