"""Who asks a server for a file, and what the server's answer means."""

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import requests

from encore.storage.release import HOME, __version__

AGENT = f"encore/{__version__} (+{HOME})"  # servers such as Wikimedia's refuse the default name of a library
PATIENCE = 300.0  # seconds that a server may ask to wait for
REFUSALS: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "the file is given to those with a password alone",
    HTTPStatus.FORBIDDEN: "the file is not given to everybody",
    HTTPStatus.NOT_FOUND: "the file has moved or was removed",
    HTTPStatus.CONFLICT: "its publisher has closed public access to the file",
    HTTPStatus.GONE: "the file was removed",
    HTTPStatus.TOO_MANY_REQUESTS: "too much was requested from this server",
    HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS: "the file is withheld for legal reasons, perhaps in this country alone",
}


def ask(url: str, headers: Mapping[str, str], timeout: tuple[float, float]) -> requests.Response:
    """Request a file; its bytes come as they are read, and never packed for the way.

    Raises:
        requests.RequestException: nobody answers.
    """
    named = {"User-Agent": AGENT, "Accept-Encoding": "identity", **headers}
    return requests.get(url, headers=named, stream=True, timeout=timeout)


def status_of(answer: requests.Response) -> str:
    """Number and name of an answer's status: ``404 Not Found``."""
    known = answer.status_code in set(HTTPStatus)
    return f"{answer.status_code} {HTTPStatus(answer.status_code).phrase if known else 'of its own making'}"


def seconds_to_wait(answer: requests.Response) -> float | None:
    """What ``Retry-After`` says, in seconds or as a date (RFC 9110, 10.2.3); None where it says nothing."""
    value = answer.headers.get("Retry-After", "")
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
