"""Building a product: its files and its manifest, by the entry of its kind."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.products import slices
from encore.products.kinds import BY_RULE
from encore.storage import manifest
from encore.storage.files import full_digest, write_json


def make_product(stage: str, plan: Path, spec: dict[str, Any] | None, outputs: Sequence[Path]) -> str:
    """Verify what a product reads, build its files, and write its manifest, which has the form of an artifact's.

    Args:
        stage: of its kind, such as ``table``.
        plan: its slice of the plan, ``results/plan/<name>.json``.
        spec: the name and the digest that the slice must have, or None.
        outputs: its files, the manifest last.
    """
    kind, (*files, record) = BY_RULE[stage], outputs
    product, content = slices.read(plan, kind.typed)
    if spec is not None and spec != {"name": product.name, "sha256": full_digest(content)}:
        raise EncoreError(f"{plan} was rewritten by another run of the workflow; run this one again")
    reads = product.reads()
    for folder, names in reads.items():
        manifest.verify(folder, names)
    record.unlink(missing_ok=True)
    said = kind.write(record.parent, product, record.parent)
    is_drawn = any(file.suffix == ".svg" for file in files)  # by matplotlib, of which another version draws other bytes
    inputs = [*(folder / manifest.MANIFEST for folder in reads), *product.others(record.parent)]
    write_json(
        record,
        {
            "stage": stage,
            "code": kind.code,
            "spec": content,
            "results": {"matplotlib": version("matplotlib")} if is_drawn else {},
            "inputs": {str(each): manifest.describe(each) for each in inputs},
            "outputs": {file.name: manifest.describe(file) for file in files},
        },
    )
    return said
