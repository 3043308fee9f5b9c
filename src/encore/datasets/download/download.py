"""Downloading one file: to ``<name>.part``, which a later call resumes; it gets its name when it is verified.

Of several addresses the next one is tried where one does not give the published file. A part is continued only if the
server still has the same file (``If-Range`` with the entity tag or date that the part began with), so two versions are
never joined.
"""

import json
import shutil
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import requests
from requests.adapters import HTTPAdapter, Retry

from encore.config.sources import Remote, digest_of
from encore.errors import EncoreError
from encore.storage.files import readable_object, write_text
from encore.storage.release import HOME, __version__

AGENT = f"encore/{__version__} (+{HOME})"  # servers such as Wikimedia's refuse the default name of a library
PART = ".part"
CHUNK = 1 << 16  # bytes; what a broken connection loses
SECONDS = 10.0  # between two lines of progress
TIMEOUT = (30, 120)  # seconds to connect, and without a byte
RETRIES = Retry(  # of a request before its first byte, with pauses of 0, 4, 8, ... seconds or as long as a server asks
    5, backoff_factor=2, status_forcelist=(429, 500, 502, 503, 504), raise_on_status=False, retry_after_max=60
)
PAGE = (b"<!doctype html", b"<html")  # how a web page begins, which a server gives in place of a file that has moved


class AddressError(EncoreError):
    """An address does not give the published file; another one may."""


def download(remote: Remote, target: Path) -> None:
    """Bring a file to ``target``, unless it is there already with the right digest."""
    if target.is_file():
        verify(remote, target, str(target))
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if not remote.urls:
        raise EncoreError(f"{target} cannot be downloaded: {remote.access} ({remote.terms}); then put the file there")
    part = target.with_name(f"{target.name}{PART}")
    refused: list[str] = []
    urls = sorted(remote.urls, key=lambda url: url != _noted(part).get("url"))
    for url in urls:
        if refused:
            print(f"{refused[-1]}; trying {url}", flush=True)
        try:
            _bring(remote, url, part)
        except AddressError as error:
            refused.append(str(error))
        else:
            part.replace(target)
            _note(part).unlink(missing_ok=True)
            return
    others = f"; nor does it come from {', '.join(urls[1:])}" if urls[1:] else ""
    raise EncoreError(refused[0] + others)


def verify(remote: Remote, path: Path, origin: str) -> None:
    """Compare a file with what is published of it.

    Args:
        origin: the address that it came from, or its path.

    Raises:
        AddressError: its digest or size differs, or it is a web page, or empty without a digest that says so.
    """
    with path.open("rb") as file:
        begins = file.read(512).lstrip().lower()
    size, found = path.stat().st_size, None
    if begins.startswith(PAGE) or not (size or remote.digest):
        wrong = "a web page or nothing came in place of the file, which has moved or is not given to everybody"
    elif remote.bytes is not None and size != remote.bytes:
        wrong = f"{size} bytes came, {remote.bytes} are published"
    elif remote.digest and (found := digest_of(path, remote.digest.partition(":")[0])) != remote.digest:
        wrong = f"the file has the digest {found}, {remote.digest} is published"
    else:
        return
    raise AddressError(
        f"{path.name.removesuffix(PART)}, {origin}: {wrong}; see {remote.terms}, then correct its entry in "
        f"config/sources.yaml or put the right file at {path.with_name(path.name.removesuffix(PART))}"
    )


def ask(
    url: str, headers: Mapping[str, str], timeout: tuple[float, float], retries: Retry | int = 0
) -> requests.Response:
    """Request a file; its bytes come as they are read, and never packed for the way.

    Raises:
        requests.RequestException: nobody answers.
    """
    with requests.Session() as session:
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=retries))
        named = {"User-Agent": AGENT, "Accept-Encoding": "identity", **headers}
        return session.get(url, headers=named, stream=True, timeout=timeout)


def _bring(remote: Remote, url: str, part: Path) -> None:
    """Bring a file from one address and verify it; of a wrong one nothing is left, so that nothing is added to it."""
    if urlsplit(url).scheme == "file":
        source = Path(url2pathname(urlsplit(url).path))
        if not source.is_file():
            raise AddressError(f"{url}: there is no such file; correct its `url:`")
        _note(part).unlink(missing_ok=True)
        shutil.copyfile(source, part)
    else:
        _receive(remote, url, part)
    try:
        verify(remote, part, url)
    except AddressError:
        part.unlink()
        _note(part).unlink(missing_ok=True)
        raise


def _receive(remote: Remote, url: str, part: Path) -> None:
    """Receive what is missing of a file; where the connection breaks, request the rest as long as bytes come."""
    while True:
        before = _size(part)
        try:
            _receive_once(remote, url, part)
            return
        except requests.RequestException as error:
            reason = " ".join(str(error).split())[:160]
            if _size(part) <= before:
                raise AddressError(
                    f"{url} does not answer ({reason}); run the same command again to go on, where there is a network "
                    f"(on a cluster: the login node), or put the file at {part.with_suffix('')}"
                ) from error
            print(f"the connection broke ({reason}); going on at byte {_size(part)}", flush=True)


def _receive_once(remote: Remote, url: str, part: Path) -> None:
    """Make one request, for what is missing; raises a ``RequestException`` if not all of it comes."""
    version = _noted(part).get("version")
    have = _size(part) if version else 0
    ranged = {"Range": f"bytes={have}-", "If-Range": str(version)} if have else {}
    with ask(url, {**remote.headers, **ranged}, TIMEOUT, RETRIES) as answer:
        status, said = answer.status_code, answer.headers
        if have and status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # all of it was here already
        goes_on = have and status == HTTPStatus.PARTIAL_CONTENT
        goes_on = goes_on and said.get("Content-Range", "").startswith(f"bytes {have}-")
        if not goes_on and status != HTTPStatus.OK:
            raise AddressError(
                f"{url} answers {status} {answer.reason}, which is not the file; see {remote.terms}, then correct its "
                f"`url:` in config/sources.yaml or put the file at {part.with_suffix('')}"
            )
        ends = "Content-Length" in said or said.get("Transfer-Encoding", "").lower() == "chunked"
        if not (ends or remote.digest or remote.bytes):
            raise AddressError(
                f"{url} does not say how long the file is, so a part of it would count as all of it; add `digest:` or "
                f"`bytes:` to its entry in config/sources.yaml, or put the file at {part.with_suffix('')}"
            )
        if not goes_on:
            part.unlink(missing_ok=True)
            # If-Range may hold a strong entity tag, else the date; a weak tag never matches (RFC 9110, 13.1.5).
            tag = said.get("ETag") or "W/"
            version = said.get("Last-Modified") if tag.startswith("W/") else tag
            write_text(_note(part), json.dumps({"version": version, "url": url}))
        _append(part, answer)


def _append(part: Path, answer: requests.Response) -> None:
    began = printed = time.monotonic()
    first = done = _size(part)
    total = first + int(answer.headers.get("Content-Length", 0))
    with part.open("ab") as file:
        for chunk in answer.iter_content(CHUNK):
            done += file.write(chunk)
            now = time.monotonic()
            if now - printed >= SECONDS:
                printed, rate = now, (done - first) / (now - began)
                of = f" of {total / 1e6:.0f} MB, {(total - done) / rate:.0f} s left" if total >= done else " MB"
                print(f"{done / 1e6:.0f}{of}, {rate / 1e6:.1f} MB/s", flush=True)


def _size(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _noted(part: Path) -> dict[str, object]:
    """The address of a part, and the entity tag or date that it began with; empty where nothing has come."""
    return readable_object(_note(part)) if part.is_file() else {}
