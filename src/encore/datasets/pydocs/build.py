"""The whole way from installed source files to a collection in the common form."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.data.collection import Judgment, write_collection
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.pydocs import sources
from encore.datasets.pydocs.articles import articles
from encore.datasets.pydocs.fields import PydocsFields, refuse_other_versions
from encore.datasets.pydocs.links import DocstringLink, Judgments, ObjectNames, judgments, links, without_judged
from encore.datasets.pydocs.objects import Object, read_objects
from encore.datasets.pydocs.passages import passages, queries
from encore.datasets.pydocs.splits import HeldOutQueries, split_of
from encore.errors import EncoreError

ROLES = ("train", "valid", "test")
LEAST_GRADED_TARGETS = 2


@dataclass(frozen=True)
class Material:
    """What the files of a collection are written from; keys of all dictionaries are ids of objects."""

    objects: list[Object]  # those with a passage, in file order
    passages: dict[str, str]
    queries: dict[str, str]
    roles: dict[str, str]  # of every object's module
    links: list[DocstringLink]

    @property
    def judged(self) -> dict[str, Judgments]:
        """Judgments by split; ``graded`` is the part of ``test`` whose queries have two See Also targets or more."""
        everything = judgments(self.queries, self.links)
        splits = {
            role: {name: grades for name, grades in everything.items() if self.roles[name] == role} for role in ROLES
        }
        graded = {name: grades for name, grades in splits["test"].items() if len(grades) - 1 >= LEAST_GRADED_TARGETS}
        return {**splits, "graded": graded}


def build_pydocs(spec: dict[str, Any], folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, a resolved ``PydocsFields``, describes; returns its counts.

    Raises:
        EncoreError: another version of Python or of a package is installed than planned, or there is too little text.
    """
    refuse_other_versions(spec)
    files = {"python": sources.standard_library()} | {name: sources.package(name) for name in sorted(spec["packages"])}
    print(f"reading {sum(map(len, files.values()))} source files", flush=True)
    objects = read_objects([source for each in files.values() for source in each], inputs.processes)
    print(f"{len(objects)} objects have a docstring", flush=True)
    material = select(objects, spec["salt"], spec["train_share"], spec["valid_share"])
    if len(material.passages) < spec["minimum_passages"]:
        raise EncoreError(
            f"pydocs: only {len(material.passages)} passages, at least {spec['minimum_passages']} are expected; "
            "docstrings seem to be stripped from this installation: use a Python and wheels that keep them"
        )
    origin = {source.module: name for name, each in files.items() for source in each}
    found = Counter(origin.get(each.module, each.package) for each in material.objects)
    return write_pydocs(folder, material, {"passages_by_source": dict(sorted(found.items()))})


def select(objects: list[Object], salt: str, train: int, valid: int) -> Material:
    """Choose passages, queries and links; what a held-out query says is removed from every body first."""
    query_of = queries(objects)
    roles = {each.id: split_of(each.module, salt, train, valid) for each in objects}
    names = ObjectNames(objects)  # of all: a name must not slip to a namesake whose own object has no passage
    held_out = HeldOutQueries(query for name, query in query_of.items() if roles[name] != "train")
    objects = [held_out.without(each) for each in objects]
    leads = passages(objects)
    objects = [each for each in objects if each.id in leads]
    query_of = {name: query for name, query in query_of.items() if name in leads}
    return Material(objects, leads, query_of, roles, links(objects, leads, names))


def write_pydocs(folder: Path, material: Material, statistics: dict[str, Any]) -> dict[str, Any]:
    """Write the collection; links between held-out queries' objects and graded targets stay out of the articles."""
    module = {each.id: each.module for each in material.objects}
    judged = material.judged
    usable = without_judged(material.links, judged["valid"] | judged["test"])
    return write_collection(
        folder,
        ({"_id": name, "title": "", "text": text} for name, text in material.passages.items()),
        (
            {"_id": query_id(name), "text": text, "metadata": {"cluster": module[name]}}
            for name, text in material.queries.items()
        ),
        {split: _rows(part) for split, part in judged.items()},
        articles(material.objects, usable),
        statistics={
            **statistics,
            "query_modules": {role: len({module[name] for name in part}) for role, part in judged.items()},
            "links_found": dict(sorted(Counter(link.origin for link in material.links).items())),
            "links_withheld": len(material.links) - len(usable),
        },
    )


def query_id(name: str) -> str:
    """A query's id: unlike its passage's, since evaluators may take equal ids for one text."""
    return f"q:{name}"


def _rows(judged: Judgments) -> Iterator[Judgment]:
    for name, grades in judged.items():
        for document, grade in grades.items():
            yield Judgment(query_id(name), document, grade)


KIND = Kind(PydocsFields, build_pydocs, parallel=True)
