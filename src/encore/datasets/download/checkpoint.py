"""Fetching a checkpoint of Hugging Face's hub: its files at one commit, which stays the same until all have come.

What there is says ``huggingface_hub``; the files come by our own downloader, which checks digests (docs/design.md).
"""

import os
import shutil
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from encore.config import checkpoints
from encore.config.sources import DIGEST, Remote
from encore.config.strict import Positive, Strict
from encore.config.validation import checked
from encore.datasets.download.answers import AGENT, REFUSALS
from encore.datasets.download.source import obtain, print_terms, trust
from encore.datasets.download.unpack import same
from encore.errors import EncoreError
from encore.storage.files import appearing, read_object, write_json

HUB = "https://huggingface.co"
PUBLISHED = "published.json"  # what the hub stated of the files, kept until somebody removes it
CLOSED = (HTTPStatus.CONFLICT, HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS)  # for any checkpoint
SECONDS = 60.0  # for the hub to say what it has of a checkpoint


class _File(Strict):
    """What the hub publishes of one file; the digest of large ones only."""

    bytes: Positive | None = None
    digest: str | None = Field(None, pattern=f"^{DIGEST.pattern}$")


class _Published(Strict):
    """What the hub publishes of a checkpoint, of the files that are read alone."""

    commit: str | None = Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z_.-]{0,100}$")
    licence: str
    files: dict[Annotated[str, Field(pattern=f"^({checkpoints.READ.pattern})$")], _File] = Field(min_length=1)


def fetch(checkpoint: str, revision: str | None, data_root: Path, folder: Path) -> dict[str, Any]:
    """Fill ``folder`` with the files of a checkpoint; returns its commit, and digest and bytes of each file.

    Files that are in ``data_root/checkpoints/`` already are used without any question to the hub. The hub publishes the
    digests of weights; of the other files the first download counts.

    Args:
        revision: the commit; without it, the newest one when the first byte came.
    """
    place = checkpoints.folder_of(checkpoint, revision, data_root)
    published = _published(checkpoint, revision, place)
    print_terms(checkpoint, published["licence"], f"{HUB}/{checkpoint}")
    if revision is None and published["commit"]:
        pin = f"`revision: {published['commit']}` has the same elsewhere"
        print(
            f"{checkpoint}: no commit is pinned; this one, the newest when it was asked for, is kept: {pin}", flush=True
        )
    root = f"{endpoint()}/{checkpoint}/resolve/{published['commit'] or 'main'}"
    common = {"licence": published["licence"], "terms": f"{HUB}/{checkpoint}"}
    found = {}
    for name, known in published["files"].items():
        remote = Remote(urls=(f"{root}/{name}",), name=Path(name).name, **common, **known)
        found[name] = obtain(remote, place / name, data_root)
        if remote.digest is None:
            trust(place / name, found[name]["digest"], data_root)
    shutil.rmtree(folder, ignore_errors=True)  # what an attempt that failed has left
    folder.mkdir(parents=True)
    for name in found:
        (folder / name).parent.mkdir(exist_ok=True)
        same(place / name, folder / name)
    return {"commit": published["commit"], "files": found}


def keep_pinned(checkpoint: str, commit: str, data_root: Path) -> None:
    """Link files that were fetched without a commit to where a run that pins this commit looks for them.

    Raises:
        OSError: ``data_root`` can only be read.
    """
    pinned = checkpoints.folder_of(checkpoint, commit, data_root)
    if not pinned.is_dir():
        found = checkpoints.folder_of(checkpoint, None, data_root)
        with appearing(pinned) as made:
            shutil.copytree(found, made, copy_function=lambda a, b: same(Path(a), Path(b)), dirs_exist_ok=True)


def _published(checkpoint: str, revision: str | None, place: Path) -> dict[str, Any]:
    """What the hub says of a checkpoint, asked once; of a folder that a user has put there, what is in it."""
    note = place / PUBLISHED
    if note.is_file():
        content = read_object(note, "remove it to ask the hub again")
        return checked(_Published, content, str(note)).model_dump(exclude_unset=True)
    with suppress(EncoreError):  # some are missing
        staged = checkpoints.chosen(checkpoints.names_in(place), str(place))
        return {"commit": revision, "licence": "see its page", "files": {name: {} for name in staged}}
    listing = _listing(checkpoint, revision, place)
    wanted = checkpoints.chosen(listing["files"], f"{checkpoint}, {HUB}/{checkpoint}")
    files = {name: listing["files"][name] for name in wanted}
    answer = {"commit": listing["commit"], "licence": listing["licence"], "files": files}
    answer = checked(_Published, answer, f"{HUB}/{checkpoint}").model_dump(exclude_unset=True)
    write_json(note, answer)
    return answer


def _listing(checkpoint: str, revision: str | None, place: Path) -> dict[str, Any]:
    """The commit, the licence and the files that the hub names, before any of them is checked."""
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"  # the package reads it once, when it is imported
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    hub, fix = endpoint(), f"correct `checkpoint:` or `revision:`, or put its files at {place}"
    about = f"{hub}, asked for {checkpoint} at {revision or 'main'},"
    try:
        api = HfApi(endpoint=hub, token=False, headers={"user-agent": AGENT})
        found = api.model_info(checkpoint, revision=revision or "main", files_metadata=True, timeout=SECONDS)
        files = {each.rfilename: _known(each) for each in found.siblings or ()}
        licences = [tag.removeprefix("license:") for tag in found.tags or () if tag.startswith("license:")]
        return {"commit": found.sha, "licence": (licences or ["not stated"])[0], "files": files}
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in CLOSED or status >= HTTPStatus.TOO_MANY_REQUESTS:
            later = "" if status in CLOSED else "run the same command again later, or "
            reason = REFUSALS.get(status, "the hub is out of order")
            raise EncoreError(f"{about} answers {status}: {reason}; {later}put its files at {place}") from error
        raise EncoreError(f"{about} answers {status}: the hub does not give {checkpoint!r}; {fix}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EncoreError(f"{about} does not answer as Hugging Face's hub does; {fix}") from error
    except Exception as error:  # the kind is that of the package's HTTP client, which is its own choice
        reason = " ".join(str(error).split())[:160]
        raise EncoreError(
            f"{about} does not answer ({reason}); run the same command where there is a network (on a cluster: the "
            f"login node), or put the checkpoint's files at {place}"
        ) from error


def _known(file: Any) -> dict[str, Any]:
    """Size and digest of a file, where the hub says them: it has the sha256 of large files only."""
    size = file.lfs.size if file.lfs else file.size
    return ({"bytes": size} if size else {}) | ({"digest": f"sha256:{file.lfs.sha256}"} if file.lfs else {})


def endpoint() -> str:
    """The hub, or a mirror of it, by the name that Hugging Face's own programs read."""
    return os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
