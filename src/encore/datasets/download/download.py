"""Downloading one file: to ``<name>.part``, which a later call resumes; it gets its name when it is verified.

Of several addresses the next one is tried where one does not give the published file. A part is continued only if the
server still has the same file (``If-Range`` with the entity tag or date that the part began with), so two versions are
never joined.
"""

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
from encore.datasets.download.answers import PATIENCE, REFUSALS, ask, seconds_to_wait, status_of
from encore.datasets.download.partial import PART, PartialFile
from encore.errors import EncoreError, quoted

CHUNK = 1 << 16  # bytes; what a broken connection loses
SECONDS = 10.0  # between two lines of progress
TRIES = 5  # connections that may break without a byte between them
TIMEOUT = (30, 120)  # seconds to connect, and without a byte
SPARE = 64 << 20  # bytes that stay free on the disk
LOOK = 256 << 20  # bytes between two checks of the free space on the disk, where no length is known
FIX = "run the same command again to go on"
PAGE = (b"<!doctype html", b"<html")  # how a web page begins, which a server gives in place of a file that has moved


def download(remote: Remote, target: Path, pause: float = 2.0) -> None:
    """Bring a file to ``target``, unless it is there already with the right digest.

    Args:
        pause: seconds before the second try of a broken connection; each further one waits twice as long.
    """
    with _explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file():
            verify(remote, target)
            return
        if not remote.urls:
            raise EncoreError(
                f"{target} cannot be downloaded: {remote.access} ({remote.terms}); then put the file there"
            )
        _bring(remote, PartialFile(target), pause)


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """One line for what a disk makes Python say."""
    try:
        yield
    except OSError as error:
        raise EncoreError(
            f"{error.filename or target}: {error.strerror or error}; make room or make the folder of {target} writable"
        ) from error


class AddressError(EncoreError):
    """An address does not give the file; another one may."""


class WrongDigestError(AddressError):
    """Other bytes than the published ones."""


def verify(remote: Remote, path: Path, url: str | None = None) -> None:
    """Compare a file with what is published of it.

    Args:
        url: where it came from; None for one that a user has put there.

    Raises:
        WrongDigestError: its digest differs, or it is a web page, or empty where nothing says that it should be.
    """
    with path.open("rb") as file:
        begins = file.read(512).lstrip().lower()
    if begins.startswith(PAGE):
        raise WrongDigestError(
            f"{path.name.removesuffix(PART)}, {url or path}: a web page came in place of the file, which has "
            f"moved or is not given to everybody; see {remote.terms}, then correct its `url:` in config/sources.yaml "
            f"or put the file at {path.with_name(path.name.removesuffix(PART))}"
        )
    size = path.stat().st_size
    if remote.bytes is not None and size < remote.bytes:
        raise AddressError(f"{path} has {size} of {remote.bytes} bytes; {FIX}, or replace the file if you put it there")
    if remote.digest is None:
        if not size:
            raise WrongDigestError(f"{path.name.removesuffix(PART)}, {url or path}: is empty; see {remote.terms}")
        return
    found = digest_of(path, remote.digest.partition(":")[0])
    if found != remote.digest:
        raise WrongDigestError(
            f"{path.name.removesuffix(PART)}, {url or path}: the file has the digest {found}, "
            f"{remote.digest} is published; fetch it again, without {path}, and if it stays so, see {remote.terms} "
            "whether the file was replaced"
        )


def _bring(remote: Remote, part: PartialFile, pause: float) -> None:
    """Bring a file from the first address that gives it; first from that of a part that is there."""
    urls = sorted(remote.urls, key=lambda url: url != part.url)
    refused: list[AddressError] = []
    for url in urls:
        if refused:
            print(f"{refused[-1]}; trying {url}", flush=True)
        try:
            _bring_from(remote, url, part, pause)
            return
        except AddressError as error:
            refused.append(error)
    if len(refused) == 1:
        raise refused[0]
    raise AddressError(f"{refused[0]}; nor does it come from {', '.join(urls[1:])}") from refused[0]


def _bring_from(remote: Remote, url: str, part: PartialFile, pause: float) -> None:
    if urlsplit(url).scheme == "file":
        source = Path(url2pathname(urlsplit(url).path))
        if not source.is_file():
            raise AddressError(f"{url}: there is no such file; correct its `url:`")
        part.begin()
        _make_room(part, source.stat().st_size)
        shutil.copyfile(source, part.path)
    else:
        _transfer(remote, url, part, pause)
    try:
        if remote.digest is None and remote.bytes is not None and part.size > remote.bytes:
            raise WrongDigestError(
                f"{part.target.name}, {url}: {part.size} bytes came, {remote.bytes} are published; see "
                f"{remote.terms} whether it was replaced"
            )
        verify(remote, part.path, url)
    except WrongDigestError:
        part.begin()
        raise
    part.finish()


def _transfer(remote: Remote, url: str, part: PartialFile, pause: float) -> None:
    """Receive until nothing is missing; a connection that breaks is tried again where bytes have come."""
    broken = 0
    while True:
        before, wait = part.size, None
        try:
            if _receive(remote, url, part):
                return
        except requests.RequestException as error:
            reason = " ".join(str(error).split())[:160]
            broken = 0 if part.size > before else broken + 1
            if broken >= TRIES:
                raise AddressError(
                    f"{url} does not answer ({reason}); {FIX}, where there is a network (on a cluster: the "
                    f"login node), or put the file at {part.target}"
                ) from error
            wait = seconds_to_wait(error.response) if error.response is not None else None
            print(f"the connection broke ({reason}); trying again", flush=True)
        except (ValueError, HTTPException) as error:
            reason = " ".join(str(error).split())[:160]
            raise AddressError(f"{url} does not answer in HTTP ({reason}); see {remote.terms}") from error
        time.sleep(pause * 2**broken if wait is None else wait)


def _receive(remote: Remote, url: str, part: PartialFile) -> bool:
    """One request, for what is missing; whether all of it has come."""
    version = part.version
    ranged = {"Range": f"bytes={part.size}-", "If-Range": version} if version else {}
    with ask(url, {**remote.headers, **ranged}, TIMEOUT) as answer:
        if answer.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and version:
            if remote.digest or _range(answer.headers)[1] == part.size:
                return True  # all of it was here already; the digest decides, where there is one
            part.begin()
            return False
        _refuse(remote, url, part, answer)
        if answer.status_code == HTTPStatus.OK:
            # If-Range may hold a strong entity tag, else the date; a weak tag never matches (RFC 9110, 13.1.5).
            tag = answer.headers.get("ETag") or "W/"
            part.begin(answer.headers.get("Last-Modified") if tag.startswith("W/") else tag, url)
        elif not version or _range(answer.headers)[0] != part.size:
            part.begin()
            raise requests.HTTPError("it sent another part of the file than the requested one")
        total = _total(remote, url, part, answer.headers)
        _make_room(part, total)
        _append(part, answer.iter_content(CHUNK), total)
    if total is not None and part.size < total:
        raise requests.ConnectionError(f"{part.size} of {total} bytes came")
    return True


def _total(remote: Remote, url: str, part: PartialFile, headers: Mapping[str, str]) -> int | None:
    """How long the file will be; None where only a digest, or the last chunk, says that all of it has come."""
    length = headers.get("Content-Length")
    if length is not None:
        if not re.fullmatch(r"[0-9]{1,18}", length):
            raise AddressError(
                f"{url} says that its length is {quoted(length)}; see {remote.terms}, or put the file at {part.target}"
            )
        return part.size + int(length)
    if remote.bytes is None and remote.digest is None and headers.get("Transfer-Encoding", "").lower() != "chunked":
        raise AddressError(
            f"{url} does not say how long the file is, so a part of it would count as all of it; add `digest:` "
            f"or `bytes:` to its entry in config/sources.yaml, or put the file at {part.target}"
        )
    return remote.bytes


def _range(headers: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Where a part begins and how long the whole file is, as far as ``Content-Range`` says (RFC 9110, 14.4)."""
    match = re.fullmatch(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(?:(\d{1,18})|\*)", headers.get("Content-Range", ""))
    begin, whole = match.groups() if match else (None, None)
    return (None if begin is None else int(begin)), (None if whole is None else int(whole))


def _refuse(remote: Remote, url: str, part: PartialFile, answer: requests.Response) -> None:
    """Stop where a server refuses for good; what it may give later is a broken connection."""
    if answer.status_code in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
        return
    status, wait = status_of(answer), seconds_to_wait(answer)
    refusal = f"{url} answers {status}: {REFUSALS.get(answer.status_code, 'that is no file')}"
    if answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        if wait is not None and wait <= PATIENCE:
            raise requests.HTTPError(f"{status}, it asks to wait {wait:.0f} s", response=answer)
        later = "later" if wait is None else f"in {wait / 60:.0f} minutes"
        raise AddressError(f"{refusal}; run the same command again {later}, or put the file at {part.target}")
    if answer.ok or answer.status_code in REFUSALS:
        raise AddressError(
            f"{refusal}; see {remote.terms}, then correct its `url:` in config/sources.yaml or put the file at "
            f"{part.target}"
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
                    part.begin()
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
