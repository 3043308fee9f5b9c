"""Files that lie beside those of other tables, each table or figure with a manifest of its own name."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from encore.provenance import manifest
from encore.reporting import layout
from encore.reporting.layout import Layout
from encore.storage import write_json


@contextmanager
def recorded(plan: Path, folder: Path, *, stage: str, endings: Sequence[str]) -> Iterator[Layout]:
    """Verify a table's scores, let the body write ``<name>.<ending>`` files, then write ``<name>.manifest.json``.

    It has the shape of an artifact's manifest; its spec is the table's plan.

    Raises:
        EncoreError: scores were altered, cut short or lost since they were made.
    """
    table = layout.read(plan)
    for scores in table.scores():
        manifest.verify(scores)
    record = folder / f"{table.name}.{manifest.MANIFEST}"
    record.unlink(missing_ok=True)
    yield table
    inputs = [scores / manifest.MANIFEST for scores in table.scores()]
    outputs = [folder / f"{table.name}.{ending}" for ending in endings]
    write_json(
        record,
        {
            "stage": stage,
            "spec": json.loads(plan.read_text()),
            "results": {},
            "inputs": {str(path): manifest.describe(path) for path in inputs},
            "outputs": {path.name: manifest.describe(path) for path in outputs},
        },
    )
