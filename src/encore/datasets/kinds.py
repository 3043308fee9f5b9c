"""The kinds of collections by name: one file each in this folder, found by its name; all are written in one form.

A kind is added with one file that says ``KIND`` (docs/add-a-dataset.md): ``ir_datasets.py`` is the kind
``ir-datasets``. Files are loaded by name, so the code behind one kind is not behind the others.
"""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from encore.config.datasets import CollectionFields, CollectionSpec
from encore.config.validation import checked, nearest
from encore.data.collection import LANGUAGE, Collection
from encore.data.copies import count_copies
from encore.errors import EncoreError
from encore.storage.files import write_json

STAGE = "collection."
SpecT = TypeVar("SpecT", bound=BaseModel)


@dataclass(frozen=True)
class BuildInputs:
    """What a collection is built from, as its program's options give it; a kind asks for what it needs.

    ``needed_…`` raise an EncoreError where that is missing.

    Args:
        kind: the collection's, for messages.
        source: the user's own file, or the folder of such files.
        base: the folder of the collection that this one is derived from.
        data_root: the folder that ir_datasets' files were fetched to.
        sources: the folders of entries of ``sources.yaml``, by name.
        parts: the folders of the collections that are concatenated.
        processes: how many processes read the source at once.
    """

    kind: str
    source: Path | None = None
    base: Path | None = None
    data_root: Path | None = None
    sources: Mapping[str, Path] = field(default_factory=dict)
    parts: Sequence[Path] = ()
    processes: int = 1

    def needed_source(self) -> Path:
        """The user's file or folder."""
        return self._needed(self.source, "--source, the file or folder that it is read from")

    def needed_base(self) -> Collection:
        """The collection that this one is derived from."""
        return Collection(self._needed(self.base, "--collection, the one that it is made of"))

    def needed_data_root(self) -> Path:
        """The folder that ir_datasets' files were fetched to."""
        return self._needed(self.data_root, "--data-root, the folder that it was fetched to")

    def _needed(self, given: Path | None, option: str) -> Path:
        if given is None:
            raise EncoreError(f"a collection of kind {self.kind} needs {option}")
        return given


@dataclass(frozen=True)
class Kind(Generic[SpecT]):
    """One kind of collection.

    Args:
        fields: what an entry of ``datasets.yaml`` of this kind may say.
        spec: what ``build`` reads of that which ``fields.resolve`` returns.
        build: writes the collection that a spec describes to a folder, and returns its counts.
        impl: the version of what ``build`` writes; raise it when that changes.
        parallel: whether several processes share the work.
    """

    fields: type[CollectionFields]
    spec: type[SpecT]
    build: Callable[[SpecT, Path, BuildInputs], dict[str, Any]]
    impl: int = 1
    parallel: bool = False


def names() -> list[str]:
    """Every kind: the files here that say ``KIND``, in alphabetical order."""
    return sorted(name for name, module in modules().items() if hasattr(import_module(module), "KIND"))


def load_kind(kind: str) -> Kind[Any]:
    """A kind by its name."""
    module = modules().get(kind)
    found: Kind[Any] | None = getattr(import_module(module), "KIND", None) if module else None
    if found is None:
        raise EncoreError(f"unknown kind of dataset {kind!r}{nearest(str(kind), names())}")
    return found


@cache
def modules() -> dict[str, str]:
    """The files of this folder that may be kinds, by the kind's name."""
    here = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    return {name.replace("_", "-"): f"{__package__}.{name}" for name in here}


def is_parallel(stage: str) -> bool:
    """Whether several processes share the work of a stage ``collection.<kind>``."""
    return load_kind(stage.removeprefix(STAGE)).parallel


def build_collection(kind: str, spec: dict[str, Any], folder: Path, **inputs: Any) -> dict[str, Any]:
    """Write the collection that ``spec`` (what ``CollectionFields.resolve`` returned) describes; returns its counts.

    Args:
        kind: one of ``names()``.
        spec: the resolved fields, with their ``impl`` and the names of what the collection is built from.
        folder: where it is written.
        inputs: fields of ``BuildInputs``.
    """
    known, place = load_kind(kind), f"the spec of {folder}"
    counts = known.build(checked(known.spec, spec, place), folder, BuildInputs(kind, **inputs))
    if "language" in spec:
        write_json(folder / LANGUAGE, {"language": checked(CollectionSpec, spec, place).language})
    return {**counts, **count_copies(folder)}
