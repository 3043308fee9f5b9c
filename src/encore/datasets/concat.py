"""Several collections as one, to pre-train on: all their articles, ids behind their collection's name."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from encore.config.datasets import CollectionSpec, MadeFrom
from encore.data.articles import ArticlesFields, write_article_collection
from encore.data.collection import Collection, Row
from encore.data.text_fields import Form
from encore.datasets.kinds import BuildInputs, Kind
from encore.errors import EncoreError


class ConcatFields(ArticlesFields):
    """An entry of the catalogue with ``kind: concat``."""

    parts: tuple[str, ...] = Field(alias="of", min_length=2, description="the collections, in this order")

    @field_validator("parts")
    @classmethod
    def _name_each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError("names a collection twice; its texts would be learned from twice")
        return value

    @property
    def made_from(self) -> MadeFrom:
        """The collections that are joined."""
        return MadeFrom(parts=self.parts)

    def resolve(self) -> dict[str, Any]:
        """The content's identity, besides the collections that are joined: their order."""
        return {"kind": self.kind, "of": list(self.parts)}


class ConcatSpec(CollectionSpec):
    """The same fields, resolved."""

    of: list[str]


def build_concat(spec: ConcatSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the parts one after another; returns the counts of all. One article is held at a time."""
    if [path.name.rpartition("-")[0] for path in inputs.parts] != spec.of:
        raise EncoreError(f"a collection of kind concat needs --parts, the folders of {', '.join(spec.of)}")
    named = named_parts(spec.of, map(Collection, inputs.parts))
    return write_article_collection(folder, _articles(named.items()), {})


def named_parts(names: Iterable[str], parts: Iterable[Collection]) -> dict[str, Collection]:
    """The collections that are read as one, by name."""
    named = dict(zip(names, parts, strict=True))
    for name, part in named.items():
        if not part.has_articles():
            raise EncoreError(f"{part.folder} has no articles, which pre-training reads; leave {name!r} out of `of`")
        if Form.read(part.folder) != Form():
            raise EncoreError(
                f"{part.folder} has documents of other fields than a title and a text; leave {name!r} out of `of`"
            )
    return named


def _articles(named: Iterable[tuple[str, Collection]]) -> Iterator[Row]:
    for name, part in named:
        for row in part.articles():
            links = [link | {"to": f"{name}:{link['to']}"} for link in row["links"]]
            yield row | {"_id": f"{name}:{row['_id']}", "links": links}


KIND = Kind(ConcatFields, ConcatSpec, build_concat, impl=2)
