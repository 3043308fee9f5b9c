"""A collection of passages with titles that somebody else has published for them: the same ids, queries and judgments.

MS MARCO's passages have no titles. RocketQA's authors found those of the pages that they come from, and publish them as
lines ``id<TAB>title`` (``para.title.txt``); CPDAE, COSTA and BoW read them.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from encore.config.datasets import CollectionFields, MadeFrom, Split
from encore.data import unpacked
from encore.data.collection import Row, judgments_of, write_collection
from encore.data.text_fields import FormFields, FormSpec
from encore.datasets.kinds import BuildInputs, Kind
from encore.errors import EncoreError
from encore.storage.text_files import numbered_lines


class WithTitlesFields(FormFields):
    """An entry of the catalogue with ``kind: with-titles``."""

    of: str = Field(description="the collection whose passages get titles")
    titles: str = Field(description="the source that has them, in a file `id<TAB>title`")
    file: str = Field("para.title.txt", description="how that file's name ends")
    splits: Mapping[str, Split] = Field(description="the splits that are kept, by their names there")

    @property
    def made_from(self) -> MadeFrom:
        """The collection, and the source of titles."""
        return MadeFrom(base=self.of, sources=[self.titles])

    def inheriting(self, base: CollectionFields) -> "WithTitlesFields":
        """Fields with the flags of the collection, whose queries and ids it has."""
        return self.with_flags_of(base)

    def resolve(self) -> dict[str, Any]:
        """The content's identity, in addition to the collection and the source that it is built from."""
        named = self.model_dump(include={"kind", "titles", "file"})
        return {**named, "splits": sorted(self.splits), **self.form.to_spec()}


class WithTitlesSpec(FormSpec):
    """The same fields, resolved."""

    titles: str
    file: str
    splits: list[str]


def build_with_titles(spec: WithTitlesSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write another collection with the titles of a source; returns its counts. Texts are streamed, titles are held."""
    base, sources = inputs.needed_base(), inputs.sources
    if spec.titles not in sources:
        raise EncoreError(f"the source {spec.titles} is missing; give its folder with --sources")
    path = unpacked.file(sources[spec.titles], [spec.file])
    titles = _read(path)
    counts = {"titled": 0, "without_title": 0}
    written = write_collection(
        folder,
        _titled(base.corpus(), titles, counts),
        base.query_rows(),
        {split: judgments_of(base.qrels(split)) for split in spec.splits},
        form=spec.form,
        answers=base.answer_rows(),
    )
    if not counts["titled"]:
        raise EncoreError(f"{path} has no title of a passage of {base.folder}; name the source of this collection")
    return {**written, **counts, "titles_of_no_passage": len(titles)}


def _read(path: Path) -> dict[str, str]:
    """Title by id; equal titles are held once, since a page has several passages."""
    found: dict[str, str] = {}
    for number, line in numbered_lines(path):
        name, tab, title = line.partition("\t")
        if not tab or not name or name in found:
            reason = "a second title of" if name in found else "not `id<TAB>title`:"
            raise EncoreError(f"{path}, line {number}: {reason} {name[:60]!r}; fix or remove the line")
        found[name] = sys.intern(title.strip())
    return found


def _titled(corpus: Iterable[Row], titles: dict[str, str], counts: dict[str, int]) -> Iterator[Row]:
    for row in corpus:
        title = titles.pop(row["_id"], "")
        counts["titled" if title else "without_title"] += 1
        yield {**row, "title": title}


KIND = Kind(WithTitlesFields, WithTitlesSpec, build_with_titles)
