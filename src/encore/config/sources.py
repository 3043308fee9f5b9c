"""What may be fetched: files on the web with their sizes, published digests, and the terms that they come under."""

import hashlib
import re
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from encore.config.validation import Positive, Strict
from encore.errors import EncoreError

DIGEST = re.compile(r"(md5:[0-9a-f]{32}|sha256:[0-9a-f]{64})")
SCORES = (".tsv", ".tsv.gz", ".txt", ".txt.gz")  # how files of scores end


class Remote(Strict):
    """One file that others publish. Of an entry of ``sources.yaml``."""

    urls: tuple[str, ...] = Field(
        (), description="its addresses (http, https, file), tried in order; none if `access` says more. `url` names one"
    )
    name: str | None = Field(
        None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$", description="the file's; the end of its address without"
    )
    digest: str | None = Field(None, description="`sha256:…` or `md5:…` as published; without it, the first one counts")
    no_digest: str = Field("", exclude=True, description="why there is none; no part of any digest")
    bytes: Positive | None = Field(None, description="its size, checked where it is known")
    about_bytes: Positive | None = Field(None, description="its rounded size, for forecasts; where none is exact")
    headers: dict[str, str] = Field({}, description="of the request, where a server wants some")
    unpack: Literal["none", "gz", "tar", "zip"] = "none"
    members: tuple[str, ...] = Field((), description="what is wanted of an archive; all of it without")
    licence: str = Field(description="in a few words")
    terms: str = Field(description="the address of the page that offers it and has its terms")
    access: str = Field("", description="what to do where it cannot simply be downloaded")
    source: str = Field("", exclude=True, description="where these values come from; no part of any digest")

    @field_validator("digest")
    @classmethod
    def _name_the_algorithm(cls, value: str | None) -> str | None:
        if value is not None and not DIGEST.fullmatch(value):
            raise ValueError("must be `sha256:` with 64 or `md5:` with 32 hexadecimal digits")
        return value

    @model_validator(mode="before")
    @classmethod
    def _one_address_or_more(cls, fields: Any) -> Any:
        if not isinstance(fields, dict) or "url" not in fields:
            return fields
        others = {name: value for name, value in fields.items() if name != "url"}
        if fields["url"] and "urls" in others:
            raise ValueError("has `url` and `urls`; put all addresses under `urls`")
        return {**others, "urls": [fields["url"]]} if fields["url"] else others

    @field_validator("urls")
    @classmethod
    def _know_the_scheme(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if any(urlsplit(value).scheme not in ("http", "https", "file") for value in values):
            raise ValueError("an address (`url`) must begin with https://, http:// or file://")
        return values

    @model_validator(mode="after")
    def _can_be_had(self) -> "Remote":
        if not self.urls and not (self.access and self.name):
            raise ValueError("without `url` it needs a `name`, and `access` to say what to do")
        if not self.file.strip("."):
            raise ValueError("`url` ends without a file's name; add `name`")
        if self.digest and self.no_digest:
            raise ValueError("has a `digest` and says why there is none (`no_digest`); remove one of them")
        return self

    @property
    def file(self) -> str:
        """The name that it has in the folder of what was fetched."""
        return self.name or PurePosixPath(urlsplit(self.urls[0]).path).name

    def identity(self) -> dict[str, Any]:
        """What decides the content: no address, since they move; without a digest the first download is held to."""
        return {"file": self.file, "digest": self.digest, "unpack": self.unpack, "members": list(self.members)}


class SourceEntry(Strict):
    """Files that belong together, under one licence. An entry of ``sources.yaml``."""

    licence: str = Field(description="in a few words")
    terms: str = Field(description="the address of the page that offers them and has their terms")
    access: str = Field("", description="what to do where they cannot simply be downloaded")
    no_digest: str = Field("", exclude=True, description="why there is no digest of any file; no part of any digest")
    files: tuple[Remote, ...] = Field(
        min_length=1, description="without their own licence, terms, access or no_digest, the source's"
    )
    source: str = Field("", exclude=True, description="where these values come from; no part of any digest")

    @model_validator(mode="before")
    @classmethod
    def _say_terms_once(cls, fields: Any) -> Any:
        if not isinstance(fields, dict) or not isinstance(fields.get("files"), list):
            return fields
        common = {name: fields[name] for name in ("licence", "terms", "access", "no_digest") if name in fields}
        return {**fields, "files": [{**common, **each} if isinstance(each, dict) else each for each in fields["files"]]}

    @model_validator(mode="after")
    def _name_each_file_once(self) -> "SourceEntry":
        names = [each.file for each in self.files]
        if len(set(names)) < len(names):
            raise ValueError("two files have one name; give one of them another `name`")
        return self

    def identity(self) -> list[dict[str, Any]]:
        """What decides the content of the folder that it is unpacked into."""
        return [each.identity() for each in self.files]


def digest_of(path: Path, algorithm: str) -> str:
    """``algorithm:hex`` of a file's bytes."""
    with path.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"


def score_files(source: str) -> dict[str, Path]:
    """A file of a teacher's scores itself, or all such files in a folder, by name."""
    path = Path(source)
    if path.is_dir():
        found = {file.name: file for file in sorted(path.iterdir()) if file.name.endswith(SCORES)}
    else:
        found = {path.name: path} if path.is_file() else {}
    if not found:
        raise EncoreError(
            f"`teacher_scores: {source}` is neither a file nor a folder of files that end in {', '.join(SCORES)}; "
            "put the published scores there, or name `teachers` instead"
        )
    return found
