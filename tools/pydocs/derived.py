"""The objects of a finished pydocs, as the collections that are made of it read them."""

from collections.abc import Iterator
from dataclasses import dataclass

from encore.data.collection import Collection
from tools.pydocs.build import ROLES, query_id


@dataclass(frozen=True)
class PydocsObject:
    """An object with its whole body. The body has neither its summary nor any held-out query, as in pydocs."""

    id: str
    module: str
    sentences: tuple[str, ...]
    query: str | None  # its summary, if that is a query
    role: str | None  # the split of the query: train, valid or test

    @property
    def package(self) -> str:
        """The import name of the object's package."""
        return self.module.partition(".")[0]


def objects(collection: Collection) -> Iterator[PydocsObject]:
    """The objects of a collection's articles, in their order."""
    queries = collection.queries()
    roles = {query: role for role in ROLES for query in collection.qrels(role)}
    bodies = (
        (article["_id"], section["sentences"]) for article in collection.articles() for section in article["sections"]
    )
    names = (row["_id"] for row in collection.corpus())  # passages and sections are in one order, one each an object
    for name, (module, sentences) in zip(names, bodies, strict=True):
        query = query_id(name)
        yield PydocsObject(name, module, tuple(sentences), queries.get(query), roles.get(query))
