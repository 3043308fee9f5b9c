"""Files that lie next to those of other tables, each table or figure with a manifest of its own name."""

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from encore.storage.program import json_object

from encore.errors import EncoreError
from encore.products import slices
from encore.products.slices import P
from encore.storage import manifest
from encore.storage.code_digest import code_digest
from encore.storage.files import full_digest, write_json


def command_line(says: str | None) -> argparse.Namespace:
    """The arguments of each program that makes a table or a figure: ``plan``, ``spec``, ``output``."""
    parser = argparse.ArgumentParser(description=says)
    parser.add_argument("--plan", required=True, type=Path, help="its slice of the plan, results/plan/NAME.json")
    parser.add_argument("--spec", type=json_object, help="digest of the plan; refused when it was rewritten since")
    parser.add_argument("--output", required=True, type=Path, help="folder of its files")
    return parser.parse_args()


@contextmanager
def recorded(
    plan: Path,
    spec: dict[str, Any] | None,
    folder: Path,
    kind: type[P],
    *,
    stage: str,
    endings: Sequence[str],
    record: str = manifest.MANIFEST,
    also_read: Sequence[Path] = (),
) -> Iterator[P]:
    """Verify what a product reads, let the body write ``<name>.<ending>`` files, then write ``<name>.<record>``.

    ``also_read`` are files of other products that it reads too. The record has the shape of an artifact's manifest; its
    spec is the product's plan, of the given kind, whose name and digest must be ``spec`` where one is given.

    Raises:
        EncoreError: an input was altered, cut short or lost since it was made, or another run rewrote the plan.
    """
    product, content = read_plan(plan, spec, kind)
    reads = product.reads()
    for folder_read, files in reads.items():
        manifest.verify(folder_read, files)
    path = folder / f"{product.name}.{record}"
    path.unlink(missing_ok=True)
    yield product
    drawn = {"matplotlib": version("matplotlib")} if "svg" in endings else {}  # another draws other bytes
    inputs = [*(read / manifest.MANIFEST for read in reads), *also_read]
    outputs = [folder / f"{product.name}.{ending}" for ending in endings]
    write_record(path, stage, content, inputs, outputs, drawn)


def read_plan(plan: Path, spec: dict[str, Any] | None, kind: type[P]) -> tuple[P, dict[str, Any]]:
    """A product's plan, of the given kind, and all that its file holds.

    Raises:
        EncoreError: ``spec`` is another name or digest, since another run rewrote the plan.
    """
    product, content = slices.read(plan, kind), json.loads(plan.read_text())
    if spec is not None and spec != {"name": product.name, "sha256": full_digest(content)}:
        raise EncoreError(f"{plan} was rewritten by another run of the workflow; run this one again")
    return product, content


def write_record(
    path: Path,
    stage: str,
    spec: dict[str, Any],
    inputs: Sequence[Path],
    outputs: Sequence[Path],
    results: dict[str, Any],
) -> None:
    """Write what a product was made of, by which code, and what it is, in the shape of an artifact's manifest."""
    write_json(
        path,
        {
            "stage": stage,
            "code": code_digest(stage),
            "spec": spec,
            "results": results,
            "inputs": {str(each): manifest.describe(each) for each in inputs},
            "outputs": {each.name: manifest.describe(each) for each in outputs},
        },
    )
