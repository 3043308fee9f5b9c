"""Building a product: its files and its manifest, by the module of its kind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic

from encore.errors import EncoreError
from encore.products import slices
from encore.products.slices import P
from encore.storage import manifest
from encore.storage.files import full_digest, write_json
from encore.storage.source_text import source_digest

# The module that builds each kind of product, by its rule; planning imports none of them.
BUILDERS = {
    "draw": "encore.products.figures.kinds",
    "table": "encore.products.tables.formats",
    "figure": "encore.products.figures.forest",
    "curves": "encore.products.figures.learning",
    "report": "encore.products.report.page",
    "claims": "encore.products.claims.run_claims",
    "checks": "encore.products.known_numbers",
}


@dataclass(frozen=True)
class Builder(Generic[P]):
    """How the files of a kind of product are built, as ``BUILDER`` of its module.

    Args:
        typed: gives its slice of the plan types.
        build: writes its files to a folder, from its slice and from files of other products in a second folder, which
            is the same but for an audit; returns what the log says.
    """

    typed: Callable[[Any], P]
    build: Callable[[Path, P, Path], str]


def load_builder(stage: str) -> Builder[Any]:
    """The builder of a kind of product; what it needs is only imported here."""
    found: Builder[Any] = import_module(BUILDERS[stage]).BUILDER
    return found


def make_product(stage: str, plan: Path, spec: dict[str, Any] | None, outputs: Sequence[Path]) -> str:
    """Verify what a product reads, build its files, and write its manifest, which has the form of an artifact's.

    Args:
        stage: of its kind, such as ``table``.
        plan: its slice of the plan, ``results/plan/<name>.json``.
        spec: the name and the digest that the slice must have, or None.
        outputs: its files, the manifest last.
    """
    builder, (*files, record) = load_builder(stage), outputs
    product, content = slices.read(plan, builder.typed)
    if spec is not None and spec != {"name": product.name, "sha256": full_digest(content)}:
        raise EncoreError(f"{plan} was rewritten by another run of the workflow; run this one again")
    reads = product.reads()
    for folder, names in reads.items():
        manifest.verify(folder, names)
    record.unlink(missing_ok=True)
    said = builder.build(record.parent, product, record.parent)
    is_drawn = any(file.suffix == ".svg" for file in files)  # by matplotlib, of which another version draws other bytes
    inputs = [*(folder / manifest.MANIFEST for folder in reads), *product.others(record.parent)]
    write_json(
        record,
        {
            "stage": stage,
            "code": source_digest(BUILDERS[stage]),
            "spec": content,
            "results": {"matplotlib": version("matplotlib")} if is_drawn else {},
            "inputs": {str(each): manifest.describe(each) for each in inputs},
            "outputs": {file.name: manifest.describe(file) for file in files},
        },
    )
    return said
