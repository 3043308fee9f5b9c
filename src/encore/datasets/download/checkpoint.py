"""Fetching a checkpoint of Hugging Face's hub: its files at one commit, which stays the same until all have come.

``huggingface_hub`` lists the files; they come by our own downloader, which resumes and checks digests (docs/design.md).
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from encore.config import checkpoints
from encore.config.adapters import ADAPTER, read_adapter
from encore.config.sources import Remote
from encore.datasets.download.download import AGENT
from encore.datasets.download.source import obtain, print_terms, trust
from encore.datasets.download.unpack import same
from encore.errors import EncoreError
from encore.storage.files import appearing, read_object, write_json

HUB = "https://huggingface.co"
PUBLISHED = "published.json"  # what the hub stated of the files, kept until somebody removes it
SECONDS = 60.0  # for the hub to list a checkpoint's files


def fetch(checkpoint: str, revision: str | None, data_root: Path, folder: Path) -> dict[str, Any]:
    """Fill ``folder`` with the files of a checkpoint; returns its commit, and digest and bytes of each file.

    An adapter comes with its base. Files that are in ``data_root/checkpoints/`` already are used without any question
    to the hub. The hub publishes the digests of weights; of the other files the first download counts.

    Args:
        revision: the commit; without it, the newest one when the first byte came.
    """
    paths, results = _obtained(checkpoint, revision, data_root)
    if ADAPTER in paths:
        base = read_adapter(paths[ADAPTER].parent)
        others, its = _obtained(base.base, base.revision, data_root)
        paths, files = checkpoints.joined(others, paths), checkpoints.joined(its["files"], results["files"])
        results |= {"files": files, "base": {"id": base.base, "commit": its["commit"]}}
    shutil.rmtree(folder, ignore_errors=True)  # what an attempt that failed has left
    for name, path in paths.items():
        same(path, folder / name)
    return results


def _obtained(checkpoint: str, revision: str | None, data_root: Path) -> tuple[dict[str, Path], dict[str, Any]]:
    """The files of a checkpoint by name, and what is recorded of it."""
    place = checkpoints.folder_of(checkpoint, revision, data_root)
    published = _published(checkpoint, revision, place)
    commit, terms = published["commit"], {"licence": published["licence"], "terms": f"{HUB}/{checkpoint}"}
    print_terms(checkpoint, **terms)
    if revision is None and commit:
        print(
            f"{checkpoint}: no commit is pinned; this one, the newest when it was asked for, is kept: `revision: "
            f"{commit}` has the same elsewhere",
            flush=True,
        )
    found = {}
    for name, known in published["files"].items():
        url = f"{endpoint()}/{checkpoint}/resolve/{commit or 'main'}/{name}"
        remote = Remote(urls=(url,), name=Path(name).name, **terms, **known)
        found[name] = obtain(remote, place / name, data_root)
        if remote.digest is None:
            trust(place / name, found[name]["digest"], data_root)
    return {name: place / name for name in found}, {"commit": commit, "files": found}


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


def endpoint() -> str:
    """The hub, or a mirror of it, by the name that Hugging Face's own programs read."""
    return os.environ.get("HF_ENDPOINT", HUB).rstrip("/")


def _published(checkpoint: str, revision: str | None, place: Path) -> dict[str, Any]:
    """The hub's statement on a checkpoint, requested once; where a user has put the files there, their names."""
    note = place / PUBLISHED
    if note.is_file():
        return read_object(note, "remove it to ask the hub again")
    with suppress(EncoreError):  # some are missing
        staged = checkpoints.chosen(checkpoints.names_in(place), str(place))
        return {"commit": revision, "licence": "see its page", "files": {name: {} for name in staged}}
    answer = _listing(checkpoint, revision, place)
    wanted = checkpoints.chosen(answer["files"], f"{checkpoint}, {HUB}/{checkpoint}")
    answer["files"] = {name: answer["files"][name] for name in wanted}
    write_json(note, answer)
    return answer


def _listing(checkpoint: str, revision: str | None, place: Path) -> dict[str, Any]:
    """The commit, the licence, and the size of each file, with the sha256 of large ones, which alone have one there."""
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"  # the package reads it once, when it is imported
    from huggingface_hub import HfApi

    try:
        api = HfApi(endpoint=endpoint(), token=False, headers={"user-agent": AGENT})
        found = api.model_info(checkpoint, revision=revision or "main", files_metadata=True, timeout=SECONDS)
    except Exception as error:  # the kind is that of the package's HTTP client, which is its own choice
        reason = " ".join(str(error).split())[:160]
        raise EncoreError(
            f"{endpoint()} does not list {checkpoint} at {revision or 'main'} ({reason}); correct `checkpoint:` or "
            "`revision:`, run the same command where there is a network (on a cluster: the login node), or put the "
            f"checkpoint's files at {place}"
        ) from error
    files: dict[str, dict[str, Any]] = {}
    for each in found.siblings or ():
        digest = {"digest": f"sha256:{each.lfs.sha256}"} if each.lfs else {}
        files[each.rfilename] = ({"bytes": each.size} if each.size else {}) | digest
    licences = [tag.removeprefix("license:") for tag in found.tags or () if tag.startswith("license:")]
    return {"commit": found.sha, "licence": (licences or ["not stated"])[0], "files": files}
