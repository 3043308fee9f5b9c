"""The files of a run: two matrices for Encore, and TREC's text for people.

``run.npz`` holds ``rows`` and ``scores`` as ``RunMatrices`` has them, ``documents`` and ``queries``, ids one a line in
UTF-8, and ``ir_metadata``, the header (YAML, ir-metadata.org, schema 0.1). Nothing in it is compressed, and it has no
time, so that equal results are equal bytes. A run over queries that are reported, not those that train or choose, has
``run.trec.gz`` next to it; ``encore export`` writes the same bytes of any run.
"""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from encore.config.datasets import is_reported
from encore.data.rankings import Run, RunMatrices, check_columns
from encore.data.trec_runs import write_trec
from encore.errors import EncoreError
from encore.storage.document_ids import DocIds
from encore.storage.files import replacing

RUN, TEXT = "run.npz", "run.trec.gz"


def describe(tag: str, *, collection: str, split: str, retrieval: list[dict[str, Any]]) -> dict[str, Any]:
    """The ir_metadata of our own runs; ``retrieval`` lists the stages with ``name``, ``method`` and parameters."""
    return {
        "schema-version": 0.1,
        "tag": tag,
        "platform": {"software": {"libraries": {"python": ["encore-ir"]}}},
        "research goal": {"task": "ad hoc retrieval"},
        "implementation": {"source": {"lang": ["python"], "repository": "encore"}},
        "method": {"automatic": True, "score ties": "descending document id", "retrieval": retrieval},
        "data": {"test collection": {"name": collection, "topics": split}},
    }


def write_run(folder: Path, run: Run, header: Mapping[str, Any]) -> None:
    """Write a run's matrices and, where its queries are reported, its text.

    Args:
        header: of ``describe``.
    """
    matrices = RunMatrices.of(run)
    check_columns(matrices.queries, "query id")
    arrays = {
        "rows": matrices.rows,
        "scores": matrices.scores,
        "documents": matrices.documents.lines,
        "queries": DocIds.of(matrices.queries).lines,
        "ir_metadata": np.frombuffer(yaml.safe_dump(dict(header), sort_keys=False).encode(), dtype=np.uint8),
    }
    with replacing(folder / RUN) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    if is_reported(header["data"]["test collection"]["topics"]):
        write_trec(folder / TEXT, matrices, header)


def read_run(folder: Path) -> RunMatrices:
    """The run in a folder that ``write_run`` filled."""
    found = _read(folder, "queries", "documents", "rows", "scores")
    try:
        run = RunMatrices(list(DocIds(found["queries"])), DocIds(found["documents"]), found["rows"], found["scores"])
        run.check()
    except (EncoreError, ValueError) as error:  # an id that is not UTF-8 is a ValueError
        raise _damaged(folder, error) from error
    return run


def read_header(folder: Path) -> dict[str, Any]:
    """The ir_metadata of a run that ``write_run`` wrote."""
    header: dict[str, Any] = yaml.safe_load(_read(folder, "ir_metadata")["ir_metadata"].tobytes().decode())
    return header


def _read(folder: Path, *names: str) -> dict[str, np.ndarray]:
    path = folder / RUN
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in names}
    except FileNotFoundError as error:
        raise EncoreError(f"run {path} is missing; run the command that makes it again") from error
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise _damaged(folder, error) from error


def _damaged(folder: Path, error: Exception) -> EncoreError:
    return EncoreError(f"run {folder / RUN} is damaged ({error}); delete it and run the command that makes it again")
