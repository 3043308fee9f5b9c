"""The library ir_datasets, kept to ``data_root`` and to our downloader, which resumes; offline it downloads nothing.

Its own downloads begin again with each command. It reads ``IR_DATASETS_HOME`` when it is imported, so a program can
open one home only.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, NoReturn

from encore.config.sources import Remote
from encore.errors import EncoreError

HOME = "ir_datasets"  # below data_root
# Where else the library's files are: addresses that begin so are also tried with another beginning. Nobody has compared
# the copies; the library knows the digest of each file, so another one is refused.
COPIES = {
    "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets/": (
        "https://github.com/xhluca/bm25s/releases/download/data/"  # xhluca/bm25s, bm25s/utils/beir.py
    ),
    "https://dl.fbaipublicfiles.com/dpr/wikipedia_split/psgs_w100.tsv.gz": (
        "https://huggingface.co/datasets/ittia/wiki_dpr/resolve/main/datasets/psgs_w100.tsv.gz"
    ),
}
Stream = Callable[[Any], AbstractContextManager[IO[bytes]]]  # of one of the library's downloads


def fetch(ids: list[str], data_root: Path, terms: str) -> dict[str, Any]:
    """Download what a dataset's documents (the first id) and the queries and judgments of all ids need.

    Returns:
        The id of the first document, and the counts of queries and judgments by id.
    """
    load = library(data_root / HOME, _resumed(data_root / HOME, terms))
    with explained(ids[0]):
        found: dict[str, Any] = {"first_document": next(iter(load(ids[0]).docs_iter())).doc_id}
    for name in ids[1:]:
        with explained(name):
            queries, judgments = load(name).queries_iter(), load(name).qrels_iter()
            found[name] = {"queries": sum(1 for _ in queries), "judgments": sum(1 for _ in judgments)}
        print(f"{name}: {found[name]['queries']} queries, {found[name]['judgments']} judgments", flush=True)
    return found


def offline(data_root: Path) -> Callable[[str], Any]:
    """How datasets are loaded where nothing may be downloaded."""

    def refuse(wanted: Any) -> NoReturn:
        raise EncoreError(
            f"{wanted.url} is not in {data_root / HOME}; run `snakemake fetch` where there is a network, with the same "
            "`data_root`"
        )

    return library(data_root / HOME, refuse)


def library(home: Path, stream: Stream) -> Callable[[str], Any]:
    """The library's ``load``, with its files in ``home``, and ``stream`` in place of its own downloads."""
    home = home.resolve()
    os.environ |= {"IR_DATASETS_HOME": str(home), "IR_DATASETS_TMP": str(home / "tmp")}
    import ir_datasets
    from ir_datasets.util import DownloadConfig

    if DownloadConfig.get_home_path().resolve() != home:
        raise EncoreError(f"ir_datasets cannot use {home} together with another home; start another process")
    ir_datasets.util.RequestsDownload.stream = stream
    load: Callable[[str], Any] = ir_datasets.load
    return load


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Say in one line what the library complains about."""
    try:
        yield
    except EncoreError:
        raise
    except KeyError as error:
        raise EncoreError(f"ir_datasets has no {name!r}; see https://ir-datasets.com") from error
    except Exception as error:
        mirrors = error.args[1] if error.args[:1] == ("All download sources failed",) else [(None, error)]
        last = mirrors[-1][1]
        if isinstance(last, EncoreError):
            raise last from error
        reason = " ".join(f"{type(last).__name__} {last}".split())[:300]
        raise EncoreError(f"ir_datasets cannot give {name!r}: {reason}; fetch it again") from error


@cache
def listed(what: str) -> dict[str, dict[str, Any]]:
    """What the library ships of all its datasets, which is read without importing it: ``downloads`` or ``metadata``."""
    spec = find_spec("ir_datasets")
    folders = list(spec.submodule_search_locations or []) if spec else []
    path = Path(folders[0], "etc", f"{what}.json") if folders else Path()
    return json.loads(path.read_text()) if path.is_file() else {}


def count(name: str, what: str) -> int | None:
    """How many ``docs``, ``queries`` or ``qrels`` the library says that a dataset has; None if it does not."""
    found = listed("metadata").get(name, {}).get(what, {})
    return count(found["_ref"], what) if "_ref" in found else found.get("count")


def addresses(url: str) -> tuple[str, ...]:
    """Where one of the library's files can be had: its own address, then those of copies."""
    return url, *(url.replace(begins, copy, 1) for begins, copy in COPIES.items() if url.startswith(begins))


def _resumed(home: Path, terms: str) -> Stream:
    """Downloads that a later command resumes; the library compares their digests and keeps what it needs."""
    from encore.datasets.download.download import download

    @contextmanager
    def stream(wanted: Any) -> Iterator[IO[bytes]]:
        target = home / "tmp" / hashlib.sha256(wanted.url.encode()).hexdigest()[:16]
        print(f"{wanted.url} to {home}", flush=True)
        known = {"urls": addresses(wanted.url), "digest": _digest_of(wanted.url), "headers": dict(wanted.headers or {})}
        download(Remote(name=target.name, licence="", terms=terms, **known), target)
        try:
            with target.open("rb") as file:
                yield file
        finally:
            target.unlink()

    return stream


def _digest_of(url: str) -> str | None:
    """The md5 in the library's list of files, so that of several addresses only the right file counts."""
    from ir_datasets.util import DownloadConfig

    entries = (entry for collection in DownloadConfig.contents().values() for entry in collection.values())
    found = next((entry.get("expected_md5") for entry in entries if entry.get("url") == url), None)
    return f"md5:{found}" if found else None
