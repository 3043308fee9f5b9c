"""Lucene in this process: a searcher that stays open between queries, for measuring what one query takes.

Runs come from ``lucene.py``, which starts Java once for many queries. Here Java is loaded into Python (pyjnius, which
Pyserini brings), so that neither its start nor reading the index counts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

from encore.errors import EncoreError
from encore.retrieval import java
from encore.retrieval.lucene import INDEX

_FLAGS = ("-XX:+UseSerialGC", "--sun-misc-unsafe-memory-access=allow", "-Dslf4j.internal.verbosity=WARN")
_SEARCHER = "io.anserini.search.SimpleSearcher"


class Resident:
    """A BM25 searcher over an index folder (the one that holds ``lucene``); a process can have one at a time."""

    def __init__(self, index: Path, k1: float, b: float, memory_mb: int = 1024) -> None:
        if not (index / INDEX).is_dir():
            raise EncoreError(f"{index / INDEX} is missing; run the command that makes the index again")
        load = _java(memory_mb)
        self._list = load("java.util.ArrayList")
        self._searcher: Any = load(_SEARCHER)(str(index / INDEX))
        self._searcher.set_bm25(k1, b)

    def search(self, text: str, depth: int) -> None:
        """Answer a query of plain words; the answer stays in Java, as bringing it here would take long."""
        queries, names = self._list(), self._list()
        queries.add(text)
        names.add("query")
        self._searcher.batch_search(queries, names, depth, 1)

    def documents(self) -> int:
        """How many documents the index holds."""
        return int(self._searcher.get_total_num_docs())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._searcher.close()


def _java(memory_mb: int) -> Any:
    """Start Java in this process, unless it runs already, and give the function that loads a class."""
    home = java.java().parents[1]
    os.environ |= {"JAVA_HOME": str(home), "JVM_PATH": str(home / "lib" / "server" / "libjvm.so")}
    try:
        import jnius_config
    except ImportError as error:
        raise EncoreError("pyjnius is missing, which pyserini brings; install the locked dependencies again") from error
    if not jnius_config.vm_running:
        jnius_config.set_classpath(str(java.jar()))
        jnius_config.add_options(f"-Xmx{memory_mb}m", *_FLAGS)
    from jnius import autoclass

    return autoclass
