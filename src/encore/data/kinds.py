"""Where texts and judgments come from: every kind of source is brought into one common form (``collection.py``)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from encore.config.datasets import CollectionFields, Split
from encore.data import beir, books, concat, dpr, encyclopedia, ir_datasets, pydocs, reqa, subset, with_titles
from encore.data.beir import BeirFields
from encore.data.books import BooksFields
from encore.data.collection import Collection
from encore.data.concat import JoinedFields
from encore.data.dpr import DprFields
from encore.data.encyclopedia import EncyclopediaFields
from encore.data.ir_datasets import IrDatasetsFields
from encore.data.pydocs import PydocsFields, documents, packages
from encore.data.pydocs.documents import DocumentsFields
from encore.data.pydocs.packages import PackagesFields
from encore.data.reqa import PublishedReqaFields, PydocsReqaFields
from encore.data.reqa import published as published_reqa
from encore.data.subset import SubsetFields
from encore.data.wikipedia import WikipediaFields
from encore.data.with_titles import TitledFields
from encore.errors import EncoreError

__all__ = ["KINDS", "CollectionFields", "IrDatasetsFields", "Split", "build"]

KINDS: dict[str, type[CollectionFields]] = {
    "pydocs": PydocsFields,
    "pydocs-documents": DocumentsFields,
    "pydocs-reqa": PydocsReqaFields,
    "pydocs-packages": PackagesFields,
    "dpr": DprFields,
    "squad-reqa": PublishedReqaFields,
    "nq-reqa": PublishedReqaFields,
    "beir": BeirFields,
    "encyclopedia": EncyclopediaFields,
    "wikipedia": WikipediaFields,
    "books": BooksFields,
    "joined": JoinedFields,
    "ir-datasets": IrDatasetsFields,
    "subset": SubsetFields,
    "titled": TitledFields,
}
# How a collection of files of the user's is built: (spec, folder, the file or their folder).
SOURCED: dict[str, Callable[[dict[str, Any], Path, Path], dict[str, Any]]] = {
    "beir": beir.build,
    "encyclopedia": encyclopedia.build,
}
# How a collection of published files, or of the user's like them, is built: (spec, folder, the user's, the sources').
PUBLISHED: dict[str, Callable[[dict[str, Any], Path, Path | None, Mapping[str, Path]], dict[str, Any]]] = {
    "dpr": dpr.build,
    "books": books.build,
}
# How a collection that is made of another one is built: (spec, folder, the other one).
DERIVED: dict[str, Callable[[dict[str, Any], Path, Collection], dict[str, Any]]] = {
    "pydocs-documents": documents.build,
    "pydocs-reqa": reqa.build,
    "pydocs-packages": packages.build,
    "subset": subset.build,
}
# How one is built that is made of another one and of published files: (spec, folder, the other one, the sources').
COMPLETED: dict[str, Callable[[dict[str, Any], Path, Collection, Mapping[str, Path]], dict[str, Any]]] = {
    "titled": with_titles.build,
}


def build(
    kind: str,
    spec: dict[str, Any],
    folder: Path,
    *,
    source: Path | None = None,
    base: Path | None = None,
    data_root: Path | None = None,
    sources: Mapping[str, Path] | None = None,
    parts: Sequence[Path] = (),
    processes: int = 1,
) -> dict[str, Any]:
    """Write the collection that ``spec`` (what ``CollectionFields.resolve`` gave) describes; returns its counts.

    ``source`` is the folder or file that a kind with files of its own is read from, ``base`` the collection that a kind
    is made of which has no texts of its own, ``data_root`` where ir_datasets' files were fetched to, ``sources`` the
    folders of entries of ``sources.yaml``, by name, ``parts`` the collections that one is joined of.

    Raises:
        EncoreError: the kind is unknown, or its source is missing, damaged or not what ``spec`` was made from.
    """
    if kind == "pydocs":
        return pydocs.build(spec, folder, processes)
    if kind == "ir-datasets" and data_root is not None:
        return ir_datasets.build(spec, folder, data_root)
    if KINDS.get(kind) is PublishedReqaFields:
        return published_reqa.build(spec, folder, source, sources or {}, Collection(base) if base else None)
    if kind in DERIVED and base is not None:
        return DERIVED[kind](spec, folder, Collection(base))
    if kind in COMPLETED and base is not None:
        return COMPLETED[kind](spec, folder, Collection(base), sources or {})
    if kind in DERIVED | COMPLETED:
        raise EncoreError(f"a collection of kind {kind} needs --collection, the one that it is made of")
    if kind == "joined":
        return concat.build(spec, folder, list(parts))
    if kind in PUBLISHED:
        return PUBLISHED[kind](spec, folder, source, sources or {})
    if kind in SOURCED and source is not None:
        return SOURCED[kind](spec, folder, source)
    if kind == "wikipedia" and source is not None:
        from encore.data.wikipedia.build import build as build_wikipedia

        return build_wikipedia(spec, folder, source, processes)
    if kind == "ir-datasets":
        raise EncoreError("a collection of kind ir-datasets needs --data-root, the folder that it was fetched to")
    if kind in KINDS:
        raise EncoreError(f"a collection of kind {kind} needs --source, the file or folder that it is read from")
    raise EncoreError(f"unknown kind of collection {kind!r}; choose one of {', '.join(KINDS)}")
