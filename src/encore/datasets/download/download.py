"""Downloading one file: to ``<name>.part``, which a later call resumes; it gets its name when it is verified.

A part is continued only if the server still has the same file (``If-Range`` with the entity tag or date that the part
began with), so two versions are never joined.
"""

import json
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import requests

from encore.config.sources import Remote, digest_of
from encore.errors import EncoreError, quoted
from encore.storage.files import write_text

PART = ".part"
CHUNK = 1 << 16  # bytes; what a broken connection loses
SECONDS = 10.0  # between two lines of progress
TRIES = 5  # connections that may break without a byte between them
TIMEOUT = (30, 120)  # seconds to connect, and without a byte
SPARE = 64 << 20  # bytes that stay free on the disk
LOOK = 256 << 20  # bytes between two checks of the free space on the disk, where no length is known
FIX = "run the same command again to go on"
PAGE = (b"<!doctype html", b"<html")  # how a web page begins, which a server gives in place of a file that has moved
AWAY = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE, HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED)


def download(remote: Remote, target: Path, pause: float = 2.0) -> None:
    """Bring a file to ``target``, unless it is there already with the right digest.

    Args:
        pause: seconds before the second try of a broken connection; each further one waits twice as long.

    Raises:
        EncoreError: the address does not answer or has moved, the file is short, too long or has another digest, or
            the disk is full. What has come stays in the part, except where its digest is wrong.
    """
    with _explained(remote, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file():
            verify(remote, target)
            return
        if remote.url is None:
            raise EncoreError(
                f"{target} cannot be downloaded: {remote.access} ({remote.terms}); then put the file there"
            )
        part = PartialFile(target)
        if urlsplit(remote.url).scheme == "file":
            source = Path(url2pathname(urlsplit(remote.url).path))
            if not source.is_file():
                raise EncoreError(f"{remote.url}: there is no such file; correct its `url:`")
            part.begin(None)
            _make_room(part, source.stat().st_size)
            shutil.copyfile(source, part.path)
        else:
            _transfer(remote, remote.url, part, pause)
        try:
            if remote.digest is None and remote.bytes is not None and part.size > remote.bytes:
                raise WrongDigestError(
                    f"{target.name}, {remote.url}: {part.size} bytes came, {remote.bytes} are published; see "
                    f"{remote.terms} whether it was replaced"
                )
            verify(remote, part.path)
        except WrongDigestError:
            part.begin(None)
            raise
        part.finish()


@contextmanager
def _explained(remote: Remote, target: Path) -> Iterator[None]:
    """One line for what a disk or an odd server makes Python say."""
    try:
        yield
    except requests.RequestException:
        raise  # an OSError too; _transfer tries again
    except OSError as error:
        raise EncoreError(
            f"{error.filename or target}: {error.strerror or error}; make room or make the folder of {target} writable"
        ) from error
    except (ValueError, HTTPException) as error:
        reason = " ".join(str(error).split())[:160]
        raise EncoreError(f"{remote.url} does not answer in HTTP ({reason}); see {remote.terms}") from error


class WrongDigestError(EncoreError):
    """Other bytes than the published ones."""


def verify(remote: Remote, path: Path) -> None:
    """Compare a file with what is published of it.

    Raises:
        WrongDigestError: its digest differs, or it is a web page, or empty where nothing says that it should be.
        EncoreError: it is shorter.
    """
    with path.open("rb") as file:
        begins = file.read(512).lstrip().lower()
    if begins.startswith(PAGE):
        raise WrongDigestError(
            f"{path.name.removesuffix(PART)}, {remote.url or path}: a web page came in place of the file, which has "
            f"moved or is not given to everybody; see {remote.terms}, then correct its `url:` in config/sources.yaml "
            f"or put the file at {path.with_name(path.name.removesuffix(PART))}"
        )
    size = path.stat().st_size
    if remote.bytes is not None and size < remote.bytes:
        raise EncoreError(f"{path} has {size} of {remote.bytes} bytes; {FIX}, or replace the file if you put it there")
    if remote.digest is None:
        if not size:
            raise WrongDigestError(
                f"{path.name.removesuffix(PART)}, {remote.url or path}: is empty; see {remote.terms}"
            )
        return
    found = digest_of(path, remote.digest.partition(":")[0])
    if found != remote.digest:
        raise WrongDigestError(
            f"{path.name.removesuffix(PART)}, {remote.url or path}: the file has the digest {found}, "
            f"{remote.digest} is published; fetch it again, without {path}, and if it stays so, see {remote.terms} "
            "whether the file was replaced"
        )


class PartialFile:
    """What has come of a file, and which version of it the server reported."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}{PART}")
        self._note = target.with_name(f"{target.name}{PART}.json")

    @property
    def size(self) -> int:
        """Bytes received so far."""
        return self.path.stat().st_size if self.path.is_file() else 0

    @property
    def version(self) -> str | None:
        """The entity tag or date that the part began with; None where nothing came, or the server reported neither."""
        try:
            version = json.loads(self._note.read_text())["version"] if self.size else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return version if isinstance(version, str) and version.isascii() and version.isprintable() else None

    def begin(self, version: str | None) -> None:
        """Start from the first byte, with a version where the server names one."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)
        if version:
            write_text(self._note, json.dumps({"version": version}))

    def finish(self) -> None:
        """Give the file its final name and remove the note of its version."""
        self.path.replace(self.target)
        self._note.unlink(missing_ok=True)


def _transfer(remote: Remote, url: str, part: PartialFile, pause: float) -> None:
    """Receive until nothing is missing; a connection that breaks is tried again where bytes have come."""
    broken = 0
    while True:
        before = part.size
        try:
            if _receive(remote, url, part):
                return
        except requests.RequestException as error:
            reason = " ".join(str(error).split())[:160]
            broken = 0 if part.size > before else broken + 1
            if broken >= TRIES:
                raise EncoreError(
                    f"{url} does not answer ({reason}); {FIX}, where there is a network (on a cluster: the "
                    f"login node), or put the file at {part.target}"
                ) from error
            print(f"the connection broke ({reason}); trying again", flush=True)
            time.sleep(pause * 2**broken)


def _receive(remote: Remote, url: str, part: PartialFile) -> bool:
    """One request, for what is missing; whether all of it has come."""
    version = part.version
    headers = {"Accept-Encoding": "identity", **remote.headers}
    if version:
        headers |= {"Range": f"bytes={part.size}-", "If-Range": version}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
        if answer.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and version:
            if remote.digest or _range(answer.headers)[1] == part.size:
                return True  # all of it was here already; the digest decides, where there is one
            part.begin(None)
            return False
        _refuse(remote, part, answer)
        if answer.status_code == HTTPStatus.OK:
            # If-Range may hold a strong entity tag, else the date; a weak tag never matches (RFC 9110, 13.1.5).
            tag = answer.headers.get("ETag") or "W/"
            part.begin(answer.headers.get("Last-Modified") if tag.startswith("W/") else tag)
        elif not version or _range(answer.headers)[0] != part.size:
            part.begin(None)
            raise requests.HTTPError("it sent another part of the file than the requested one")
        total = _total(remote, part, answer.headers)
        _make_room(part, total)
        _append(part, answer.iter_content(CHUNK), total)
    if total is not None and part.size < total:
        raise requests.ConnectionError(f"{part.size} of {total} bytes came")
    return True


def _total(remote: Remote, part: PartialFile, headers: Mapping[str, str]) -> int | None:
    """How long the file will be; None where only a digest, or the last chunk, says that all of it has come."""
    length = headers.get("Content-Length")
    if length is not None:
        if not re.fullmatch(r"[0-9]{1,18}", length):
            raise EncoreError(
                f"{remote.url} says that its length is {quoted(length)}; see {remote.terms}, or put the file at "
                f"{part.target}"
            )
        return part.size + int(length)
    if remote.bytes is None and remote.digest is None and headers.get("Transfer-Encoding", "").lower() != "chunked":
        raise EncoreError(
            f"{remote.url} does not say how long the file is, so a part of it would count as all of it; add `digest:` "
            f"or `bytes:` to its entry in config/sources.yaml, or put the file at {part.target}"
        )
    return remote.bytes


def _range(headers: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Where a part begins and how long the whole file is, as far as ``Content-Range`` says (RFC 9110, 14.4)."""
    match = re.fullmatch(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(?:(\d{1,18})|\*)", headers.get("Content-Range", ""))
    begin, whole = match.groups() if match else (None, None)
    return (None if begin is None else int(begin)), (None if whole is None else int(whole))


def _refuse(remote: Remote, part: PartialFile, answer: requests.Response) -> None:
    if answer.status_code in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
        return
    known = answer.status_code in set(HTTPStatus)
    status = f"{answer.status_code} {HTTPStatus(answer.status_code).phrase if known else 'of its own making'}"
    if answer.ok or answer.status_code in AWAY:
        raise EncoreError(
            f"{remote.url} answers {status}: the file has moved or is not given to everybody; see "
            f"{remote.terms}, then correct its `url:` in config/sources.yaml or put the file at {part.target}"
        )
    raise requests.HTTPError(status)


def _append(part: PartialFile, chunks: Iterator[bytes], total: int | None) -> None:
    began, printed, first = time.monotonic(), time.monotonic(), part.size
    done = checked = first
    try:
        with part.path.open("ab") as file:
            for chunk in chunks:
                file.write(chunk)
                done += len(chunk)
                if total is not None and done > total:
                    part.begin(None)
                    raise EncoreError(f"{part.target}: more than the promised {total} bytes came; fetch it elsewhere")
                if total is None and done - checked > LOOK:
                    checked = done
                    _make_room(part, None)
                now = time.monotonic()
                if now - printed >= SECONDS:
                    printed = now
                    rate = (done - first) / (now - began)
                    of = f" of {total / 1e6:.0f} MB, {(total - done) / max(rate, 1):.0f} s left" if total else " MB"
                    print(f"{done / 1e6:.0f}{of}, {rate / 1e6:.1f} MB/s", flush=True)
    except OSError as error:
        if isinstance(error, requests.RequestException):
            raise
        raise EncoreError(f"cannot write {part.path}: {error.strerror or error}; make room, then {FIX}") from error


def _make_room(part: PartialFile, total: int | None) -> None:
    free = shutil.disk_usage(part.path.parent).free
    missing = 0 if total is None else total - part.size
    if missing + SPARE > free:
        raise EncoreError(
            f"{part.target} needs {missing / 1e6:.0f} MB more and the disk has {free / 1e6:.0f} MB free; make room, "
            f"then {FIX}"
        )
