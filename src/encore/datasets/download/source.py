"""Fetching a source: its terms are shown, its files come into ``data_root``, and all of them are unpacked together.

Trust on first use: where no digest is published, the first download's is written down and held to afterwards.
"""

import errno
import shutil
from pathlib import Path
from typing import Any

from encore.config.sources import Remote, SourceEntry, digest_of
from encore.datasets.download.download import download
from encore.datasets.download.unpack import unpack
from encore.errors import EncoreError
from encore.storage.files import read_object, write_json
from encore.storage.lock import locked

NAME = "trusted.json"
FIX = "fix it, or remove it to trust again"


def fetch(name: str, source: SourceEntry, data_root: Path, folder: Path) -> dict[str, Any]:
    """Fill ``folder`` with what the files of a source hold; returns the digest and the bytes of each file.

    A file that is in ``data_root/<name>/`` already is used, if its digest is right, without a download.
    """
    print_terms(name, source.licence, source.terms)
    found = {remote.file: obtain(remote, data_root / name / remote.file, data_root) for remote in source.files}
    shutil.rmtree(folder, ignore_errors=True)  # what an attempt that failed has left
    folder.mkdir(parents=True)
    for remote in source.files:
        unpack(data_root / name / remote.file, remote.unpack, remote.members, folder)
    for remote in source.files:
        if remote.digest is None:  # only now: what could not be unpacked is not what everything later is held to
            trust(data_root / name / remote.file, found[remote.file]["digest"], data_root)
    return found


def print_terms(name: str, licence: str, terms: str) -> None:
    """What a user must know before the first byte comes."""
    print(f"{name}: licence: {licence}\n{name}: terms: {terms}", flush=True)


def obtain(remote: Remote, path: Path, data_root: Path) -> dict[str, Any]:
    """A file's digest and bytes, after it has come or was found where a user had put it.

    Where no digest is published, it is held to that of the first download, which ``data_root/trusted.json`` has.
    """
    staged = path.is_file()
    if not staged and remote.urls:
        published = f" ({remote.bytes / 1e6:.1f} MB)" if remote.bytes else ""
        print(f"{remote.urls[0]}{published} to {path}", flush=True)
    download(remote, path)
    digest = remote.digest or digest_of(path, "sha256")
    first = digest if remote.digest else read_object(data_root / NAME, FIX).get(_key(path, data_root), digest)
    if first != digest:
        if not staged:
            path.unlink()
        raise EncoreError(
            f"{path} has the digest {digest}, and {first} came first ({data_root / NAME}); see "
            f"{remote.terms} whether it was replaced, and remove the file or its line there"
        )
    size = path.stat().st_size
    print(f"{path}: {size / 1e6:.1f} MB, {digest}", flush=True)
    return {"digest": digest, "bytes": size}


def trust(path: Path, digest: str, data_root: Path) -> None:
    """Write down the digest of a file of which none is published, once it was read as what it should be.

    A folder that can only be read, such as an administrator's of a cluster, is used as it is: where nothing can be
    written, nothing is added to the record, and the digest stays in the manifest of what was built from the file.
    """
    if read_object(data_root / NAME, FIX).get(_key(path, data_root)) == digest:
        return
    try:
        with locked(data_root):  # several jobs may fetch at the same time
            write_json(data_root / NAME, {_key(path, data_root): digest, **read_object(data_root / NAME, FIX)})
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        print(f"{data_root} can only be read: the digest of {path} is not added to {NAME}", flush=True)


def _key(path: Path, data_root: Path) -> str:
    return path.relative_to(data_root).as_posix()
