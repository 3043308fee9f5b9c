"""A collection of documented objects: queries, passages, judgments and articles."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.data.collection import Judgment, write_collection
from tools.pydocs.links import DocstringLink, Judgments, ObjectNames, judgments, links, without_judged
from tools.pydocs.objects import Object
from tools.pydocs.passages import passages, queries
from tools.pydocs.splits import HeldOutQueries, split_of

SALT = "encore-1"  # hashed with a module's name to choose its split
TRAIN_SHARE, VALID_SHARE = 65, 7  # percentages of the modules; the rest is the test
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


def select(objects: list[Object]) -> Material:
    """Choose passages, queries and links; sentences that contain a held-out query are first removed from all bodies."""
    query_of = queries(objects)
    roles = {each.id: split_of(each.module, SALT, TRAIN_SHARE, VALID_SHARE) for each in objects}
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


def articles(objects: Iterable[Object], usable: Iterable[DocstringLink]) -> list[dict[str, Any]]:
    """Rows of ``articles.jsonl.gz``: a module is an article, the bodies of its objects are its sections.

    The module's own body, if it has one, is the first section. Section titles are the objects' names. Summaries are in
    no section.
    """
    rows: dict[str, dict[str, Any]] = {}
    place: dict[str, tuple[str, int]] = {}
    for each in objects:
        row = rows.setdefault(each.module, {"_id": each.module, "title": each.module, "sections": [], "links": []})
        place[each.id] = (each.module, len(row["sections"]))
        row["sections"].append({"title": each.name or each.module, "sentences": list(each.sentences)})
    for link in usable:
        module, section = place[link.source]
        target, anchor = place[link.target]
        rows[module]["links"].append({"section": section, "to": target, "anchor": anchor, "origin": link.origin})
    return list(rows.values())


def query_id(name: str) -> str:
    """A query's id: unlike its passage's, since evaluators may take equal ids for one text."""
    return f"q:{name}"


def _rows(judged: Judgments) -> Iterator[Judgment]:
    for name, grades in judged.items():
        for document, grade in grades.items():
            yield Judgment(query_id(name), document, grade)
