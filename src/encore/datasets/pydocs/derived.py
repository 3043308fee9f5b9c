"""The objects of a finished pydocs collection, as the collections that are made of it read them."""

from collections.abc import Iterator
from dataclasses import dataclass

from encore.data.collection import Collection
from encore.errors import EncoreError

QUERY = "q:"  # how the id of an object's query begins


@dataclass(frozen=True)
class PydocsObject:
    """An object with its whole body. The body has neither its summary nor any held-out query, as in pydocs."""

    id: str
    module: str
    sentences: tuple[str, ...]
    query: str | None  # its summary, where that is a query
    role: str | None  # the split of the query: train, valid or test

    @property
    def package(self) -> str:
        """The import name of the object's package."""
        return self.module.partition(".")[0]


def objects(collection: Collection) -> Iterator[PydocsObject]:
    """The objects of a collection's articles, in their order.

    Raises:
        EncoreError: it has no articles, so it is no pydocs.
    """
    if not collection.has_articles():
        raise EncoreError(f"{collection.folder} has no articles; name a collection of kind pydocs under `of`")
    queries = collection.queries()
    roles = {query: role for role in ("train", "valid", "test") for query in collection.qrels(role)}
    bodies = (
        (article["_id"], section["sentences"]) for article in collection.articles() for section in article["sections"]
    )
    names = (row["_id"] for row in collection.corpus())  # passages and sections stand in one order, one each an object
    for name, (module, sentences) in zip(names, bodies, strict=True):
        query = QUERY + name
        yield PydocsObject(name, module, tuple(sentences), queries.get(query), roles.get(query))
