"""Folders of files that a collection is read from, as they are or together in an archive, ``.tar.xz``.

Encore's own collections are shipped in one, in ``embedded/``. In ``datasets.yaml`` its path begins with ``{embedded}``,
so that it is found from any working directory, in a clone and in an installed package.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from encore.config.datasets import CollectionFields, MadeFrom
from encore.datasets.kinds import BuildInputs
from encore.datasets.source_files import refuse_changed
from encore.errors import EncoreError
from encore.storage.files import read_object, remembered_contents, write_json
from encore.storage.text_files import numbered_objects

M = TypeVar("M", bound=BaseModel)
EMBEDDED = "{embedded}/"
EMBEDDED_FOLDER = Path(__file__).parent / "embedded"
STATISTICS = "statistics.json"
_OF_A_RUN = ("manifest.json", "run.json")  # next to our own collections: how they were built, not what they are


class FolderFields(CollectionFields):
    """Fields of kinds of collections that are read from such a folder."""

    path: str = Field(
        exclude=True, description="a folder, or an archive of folders, .tar.xz; `{embedded}/…` is shipped with Encore"
    )
    folder: str = Field("", description="the collection's folder in it; all of it without")

    @property
    def embedded(self) -> bool:
        """True if it is shipped with Encore: nothing has to be obtained."""
        return self.path.startswith(EMBEDDED)

    @property
    def made_from(self) -> MadeFrom:
        """The folder or archive; what is shipped is a part of the library."""
        return MadeFrom(path=None if self.embedded else self.path)

    def identity(self, *folders: str) -> dict[str, Any]:
        """The part of a spec that identifies what is read."""
        found: dict[str, Any] = {"content": _digests(_located(self.path), folders)}
        return found | ({"path": self.path} if self.embedded else {})


@contextmanager
def opened(shipped: str, planned: Mapping[str, str], inputs: BuildInputs, *folders: str) -> Iterator[Path]:
    """The folder that holds ``folders``: that of the source, or a temporary one to which its archive is unpacked.

    Args:
        shipped: the path of what comes with Encore; of other files, nothing.
        planned: digests of what is read.
    """
    source = _located(shipped) if shipped else inputs.needed_source()
    refuse_changed(source, _digests(source, folders), planned)
    if source.is_dir():
        yield source
        return
    from encore.datasets.download.unpack import unpack  # not for planning, which reads this file

    with TemporaryDirectory() as place:
        unpacked = Path(place, "unpacked")
        unpack(source, "tar", () if "" in folders else folders, unpacked)
        yield unpacked


def checked_rows(path: Path, model: type[M]) -> Iterator[tuple[int, dict[str, Any], M]]:
    """Numbered rows of a file of JSON lines, as they are there and as the model reads them."""
    for number, row in numbered_objects(path):
        try:
            yield number, row, model.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise EncoreError(f"{path}, line {number}: {field}: {first['msg']}; correct the row") from error


def add_statistics(folder: Path, source: Path, counts: dict[str, Any]) -> dict[str, Any]:
    """The counts of a written collection, with others that its source states; also in its ``statistics.json``."""
    if others := read_object(source / STATISTICS, "correct or remove it"):
        counts = {**others, **counts}
        write_json(folder / STATISTICS, counts)
    return counts


def _located(path: str) -> Path:
    return EMBEDDED_FOLDER / path.removeprefix(EMBEDDED) if path.startswith(EMBEDDED) else Path(path)


def _digests(source: Path, folders: tuple[str, ...]) -> dict[str, str]:
    """Digests of what is read: of the archive as a whole, or of every file in the folders."""
    if source.is_file():
        return remembered_contents({"archive": source})
    files = dict[str, Path]()
    for folder in folders:
        found = [each for each in sorted((source / folder).rglob("*")) if each.is_file() and each.name not in _OF_A_RUN]
        if not found:
            raise EncoreError(f"{source / folder} is missing or empty; name another `path` or `folder`")
        files |= {each.relative_to(source).as_posix(): each for each in found}
    return remembered_contents(files)
