"""Which objects the names in docstrings mean, and the judgments and links that follow from them."""

from collections.abc import Collection, Iterable, Mapping
from itertools import takewhile
from typing import NamedTuple

from tools.pydocs.objects import Object

OWN_GRADE = 3
SEE_ALSO_GRADE = 1
_ALIASES = {
    "np": "numpy",
    "pd": "pandas",
    "sp": "scipy",
    "nx": "networkx",
    "mpl": "matplotlib",
    "plt": "matplotlib.pyplot",
}


Judgments = dict[str, dict[str, int]]


class DocstringLink(NamedTuple):
    """One object's docstring names another object."""

    source: str
    target: str
    origin: str  # "see-also" or "reference"


class ObjectNames:
    """Resolves names as written to ids. Public names differ from the defining modules' (``numpy.sort`` is defined in
    ``numpy._core.fromnumeric``), and nothing is imported, so a name means the nearest object whose dotted name holds
    its parts in order; where two are equally near, it means none.
    """

    def __init__(self, objects: Iterable[Object]) -> None:
        self._ending: dict[str, list[tuple[str, ...]]] = {}
        self._packages: set[str] = set()
        for each in objects:
            parts = tuple(each.id.split("."))
            self._ending.setdefault(parts[-1], []).append(parts)
            self._packages.add(each.package)

    def resolve(self, name: str, source: Object) -> str | None:
        """The id that ``name`` means in the docstring of ``source``; None for itself, unknown or ambiguous names."""
        head, dot, rest = name.strip(".").partition(".")
        parts = tuple((_ALIASES.get(head, head) + dot + rest).split("."))
        absolute = parts[0] in self._packages and len(parts) > 1
        package = parts[0] if absolute else source.package
        near = sorted(
            (_distance(parts, candidate, () if absolute else tuple(source.id.split("."))), candidate)
            for candidate in self._ending.get(parts[-1], ())
            if candidate[0] == package and _is_subsequence(parts, candidate)
        )
        if not near or (len(near) > 1 and near[0][0] == near[1][0]):
            return None
        found = ".".join(near[0][1])
        return None if found == source.id else found


def links(objects: Iterable[Object], targets: Collection[str], names: ObjectNames) -> list[DocstringLink]:
    """All links between objects in ``targets``, without repetition; a See Also entry hides a mere reference."""
    found: dict[tuple[str, str], DocstringLink] = {}
    for each in objects:
        if each.id not in targets:
            continue
        for origin, written in (("see-also", each.see_also), ("reference", each.references)):
            for name in written:
                target = names.resolve(name, each)
                if target is not None and target in targets:
                    found.setdefault((each.id, target), DocstringLink(each.id, target, origin))
    return list(found.values())


def judgments(queries: Collection[str], found: Iterable[DocstringLink]) -> Judgments:
    """Grades by query object: 3 for its own passage, 1 for its See Also targets."""
    judged = {query: {query: OWN_GRADE} for query in queries}
    for link in found:
        if link.origin == "see-also" and link.source in judged:
            judged[link.source][link.target] = SEE_ALSO_GRADE
    return judged


def without_judged(found: Iterable[DocstringLink], held_out: Mapping[str, Mapping[str, int]]) -> list[DocstringLink]:
    """The links that pre-training may use: none, of whatever origin and direction, joins the object of a held-out
    query with an object that is graded for it.
    """
    pairs = {(query, target) for query, grades in held_out.items() for target in grades}
    return [link for link in found if pairs.isdisjoint({(link.source, link.target), (link.target, link.source)})]


def _is_subsequence(parts: tuple[str, ...], candidate: tuple[str, ...]) -> bool:
    waiting = iter(candidate)
    return all(part in waiting for part in parts)


def _distance(parts: tuple[str, ...], candidate: tuple[str, ...], source: tuple[str, ...]) -> tuple[int, int, int]:
    """How far a candidate is: by what it shares with the place of mention, then by the parts that were left out."""
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(source, candidate, strict=False)))
    public = sum(not part.startswith("_") for part in candidate)
    return -shared, public - len(parts), len(candidate)
