"""English Wikipedia from its XML dump: articles with sections, sentences and links, as texts to pre-train on.

``mediawiki/`` reads the dump. It is imported when a collection is built, since planning needs the fields alone.
"""

from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from encore.config.datasets import CollectionSpec
from encore.config.languages import ENGLISH
from encore.data.articles import ArticlesFields
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.source_files import content_of
from encore.errors import EncoreError
from encore.storage.files import sha256

PARSER = "mwparserfromhell"


class WikipediaFields(ArticlesFields):
    """An entry of the catalogue with ``kind: wikipedia``."""

    path: str = Field(
        pattern=r"\.xml(\.bz2|-p\d+p\d+\.bz2)?$",
        description="the dump, .xml or .xml.bz2; from the repository's root, or below `{data_root}`. Several processes "
        "unpack a multistream dump",
    )
    sha256: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="of the dump's file: pinned, it is the identity, whether or not the file is there yet",
    )

    @field_validator("language")
    @classmethod
    def _read_english_alone(cls, language: str) -> str:
        if language != ENGLISH:
            raise ValueError("a dump is read as English Wikipedia; use kind books for texts in another language")
        return language

    @property
    def missing(self) -> str | None:
        """What to do about a missing dump, or None if it exists."""
        if Path(self.path).is_file():
            return None
        return (
            f"{self.path} is missing: put a pages-articles dump of English Wikipedia there, or name another `path`; "
            "`snakemake $(encore targets source:wikipedia) --profile local` brings the newest dump to data_root"
        )

    def resolve(self) -> dict[str, Any]:
        """The content's identity: the dump's digest and the version of the parser of its markup.

        Without a pinned digest a large dump counts by its size and its first and last MiB (``storage.contents``); one
        that is not there yet counts by its name, so that a run with it can be planned.
        """
        return {
            "kind": self.kind,
            "content": {"sha256": self.sha256} if self.sha256 else content_of(Path(self.path), "dump"),
            "parser": _parser(),
        }


class WikipediaSpec(CollectionSpec):
    """The same fields, resolved."""

    parser: str


def build_wikipedia(spec: WikipediaSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, a resolved ``WikipediaFields``, describes; returns its counts."""
    from encore.datasets.mediawiki.build import write_articles

    source, content = inputs.needed_source(), spec.content
    if spec.parser != _parser():
        raise EncoreError(
            f"wikipedia was planned with {spec.parser}, but {_parser()} is installed here; run snakemake again, in "
            "the environment that its jobs use"
        )
    if not source.is_file():
        raise EncoreError(
            f"{source} is missing; fetch a pages-articles dump of English Wikipedia and put it there, or name another "
            "`path`"
        )
    if content != ({"sha256": sha256(source)} if "sha256" in content else content_of(source, "dump")):
        fix = "replace the file or the pinned `sha256`" if "sha256" in content else "run snakemake again"
        raise EncoreError(f"{source} is not the dump that was planned with; {fix}")
    return write_articles(source, folder, inputs.processes)


def _parser() -> str:
    try:
        return f"{PARSER} {metadata.version(PARSER)}"
    except metadata.PackageNotFoundError as error:
        raise EncoreError(f"{PARSER} is not installed; install the packages of envs/cpu.txt") from error


KIND = Kind(WikipediaFields, WikipediaSpec, build_wikipedia, impl=4, parallel=True)
