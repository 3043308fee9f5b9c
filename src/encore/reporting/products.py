"""Files that lie beside those of other tables, each table or figure with a manifest of its own name."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.provenance import manifest
from encore.reporting import layout
from encore.reporting.layout import Layout
from encore.storage import write_json


@contextmanager
def recorded(
    plan: Path, spec: dict[str, Any] | None, folder: Path, *, stage: str, endings: Sequence[str]
) -> Iterator[Layout]:
    """Verify a table's scores, let the body write ``<name>.<ending>`` files, then write ``<name>.manifest.json``.

    It has the shape of an artifact's manifest; its spec is the table's plan, which must be ``spec`` where one is given.

    Raises:
        EncoreError: scores were altered, cut short or lost since they were made, or another run rewrote the plan.
    """
    table = layout.read(plan)
    if spec is not None and json.loads(plan.read_text()) != spec:
        raise EncoreError(f"{plan} was rewritten by another run of the workflow; run this one again")
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
