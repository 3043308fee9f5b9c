"""Whether what a run fetches can be had today: each address is asked for its headers, and no file is fetched."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from encore import stages
from encore.commands.preflight.downloads import wanted
from encore.commands.preflight.forecast_text import size
from encore.commands.show_config import aligned
from encore.config.adapters import ADAPTER
from encore.config.checkpoints import CONFIG, folder_of
from encore.datasets.download.checkpoint import endpoint
from encore.datasets.download.download import ask
from encore.datasets.download.ir_datasets import addresses, listed
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.products.targets import needed_by, requested_targets
from encore.stages.fetch_checkpoint import FetchCheckpoint
from encore.stages.fetch_ir_datasets import FetchIrDatasets

TIMEOUT = (15, 30)  # seconds to connect, and without a byte
AT_ONCE = 8  # requests
LIBRARY_S_MIRROR = "https://mirror.ir-datasets.com"  # of files that ir_datasets marks so; it tries that by itself
COMMIT = "X-Repo-Commit"  # how the hub names the commit that it gives a file of


@dataclass(frozen=True)
class Address:
    """One address of a file, with what the file is held to; no ``url`` where a user has to bring the file."""

    file: str
    url: str
    held_to: str
    bytes: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What an address said."""

    address: Address
    gives: bool
    words: str


def fetch_check(plan: Plan, names: Iterable[str]) -> list[Answer]:
    """Ask each address of what tables, figures and other targets fetch, or of all that the configuration declares."""
    needed = needed_by(plan, requested_targets(plan, names))
    fetched = [made for made in reversed(needed) if made.stage in stages.that("fetches")]
    found = {(each.file, each.url): each for made in fetched for each in _addresses(plan, made)}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(answer_of, found.values()))


def answer_of(address: Address) -> Answer:
    """Ask one address, without reading a byte of the file."""
    if not address.url:
        return Answer(address, False, "for you to bring")
    try:
        with ask(address.url, address.headers, TIMEOUT) as answer:
            length = answer.headers.get("Content-Length", "")
            found = int(length) if length.isascii() and length.isdigit() else None
            status = f"{answer.status_code} {answer.reason}"
            if not answer.ok:
                return Answer(address, False, status)
            if answer.headers.get("Content-Type", "").startswith("text/html"):
                return Answer(address, False, "a web page in place of the file")
            if address.bytes and found and found != address.bytes:
                return Answer(address, False, f"{found:,} bytes, and {address.bytes:,} are published")
            commit = answer.headers.get(COMMIT)
            return Answer(address, True, f"commit {commit}" if commit else f"{status}, {size(found)}")
    except (requests.RequestException, ValueError) as error:
        return Answer(address, False, f"does not answer ({type(error).__name__})")


def without(answers: Sequence[Answer]) -> list[str]:
    """The files that no address gives."""
    given = {each.address.file for each in answers if each.gives}
    return [file for file in dict.fromkeys(each.address.file for each in answers) if file not in given]


def check_text(answers: list[Answer]) -> str:
    """A table with a line for each address, and which files cannot be had."""
    lines = [("file", "held to", "answer", "address")]
    for each in answers:
        held_to = each.address.held_to.partition(":")[0]
        lines.append((each.address.file, held_to, each.words, each.address.url))
    missing, files = without(answers), len({each.address.file for each in answers})
    cannot = f"{len(missing)} of {files} files cannot be had: {', '.join(missing)}"
    return "\n".join([*aligned(lines), "", cannot if missing else f"all {files} files can be had"])


def check_json(answers: list[Answer]) -> list[dict[str, Any]]:
    """The same in plain types."""
    return [vars(each.address) | {"gives": each.gives, "answer": each.words} for each in answers]


def _addresses(plan: Plan, made: Artifact) -> Iterator[Address]:
    name = made.name.rpartition("-")[0]
    if made.stage == "fetch_source":
        for remote in plan.catalogue.sources[name].files:
            held_to = remote.digest or f"the first: {remote.no_digest or 'no digest is given'}"
            for url in remote.urls or ("",):
                yield Address(f"{name}/{remote.file}", url, held_to, remote.bytes, remote.headers)
    elif made.stage == "fetch_checkpoint":
        wants = made.typed(FetchCheckpoint)
        known = folder_of(wants.id, wants.revision, Path(plan.config.execution.data_root)) / ADAPTER
        file = ADAPTER if known.is_file() else CONFIG
        url = f"{endpoint()}/{wants.id}/resolve/{wants.revision or 'main'}/{file}"
        yield Address(wants.id, url, f"commit {wants.revision}" if wants.revision else "the first: no commit is pinned")
    else:
        for (top, file), entry in wanted(made.typed(FetchIrDatasets).ids, listed("downloads")).items():
            headers = entry.get("download_args", {}).get("headers", {})
            held_to = f"md5:{entry['expected_md5']}" if "expected_md5" in entry else "nothing"
            own = addresses(entry["url"]) if "url" in entry else ("",)
            copies = (f"{LIBRARY_S_MIRROR}/{entry['expected_md5']}",) if entry.get("irds_mirror") else ()
            for url in own + copies:
                yield Address(f"{top}/{file}", url, held_to, entry.get("size_hint"), headers)
