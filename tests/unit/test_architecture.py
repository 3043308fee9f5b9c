"""Arrows go one way, and planning stays light."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/encore"
# From the ground up; a module may import its own layer (without a circle) and those below.
LAYERS = [
    {"errors", "mistakes", "storage", "lines", "names", "sentences"},
    {"columns", "rows", "mojibake"},
    {"lineage", "config", "table_entries", "claim_entries", "figure_entries", "cli_support", "runs", "losses"}
    | {"checkpoints", "fetching"},
    {"catalogue", "collections", "recipe", "systems", "index_types", "expansions"},
    {"provenance.implementation", "provenance.manifest", "vocabulary", "checkpoint_vocabulary", "bodies", "tokens"},
    {"modeling", "training"},
    {"objectives", "finetuning", "pretraining", "masked_loss", "pair_counts"},
    {"scoring"},
    {"retrieval", "teaching", "expanding", "probing"},
    {"evaluation", "latency", "comparing"},
    {"reporting"},
    {
        "resolution",
        "planning",
        "plan",
        "growth",
        "figures",
        "tables",
        "claims",
        "targets",
        "budget",
        "ledger",
        "provenance.audit",
        "provenance.explain",
        "provenance.explain_product",
    },
    {"project", "tuning", "preflight", "whatif", "report", "provenance.again"},
    {"cli"},
]
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent != SOURCE)


def unit(module):
    """The entry of ``LAYERS`` that a dotted name below ``encore`` belongs to."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "provenance" else parts[0]


def layer(module):
    return next((number for number, names in enumerate(LAYERS) if unit(module) in names), None)


def name(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imported(path):
    """Dotted names below ``encore`` that a file imports when it runs; names for type checkers do not count."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.startswith("encore")
            and id(node) not in skipped
        ):
            base = node.module.removeprefix("encore").strip(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".strip(".")
                yield (
                    full
                    if (SOURCE / Path(*full.split("."))).with_suffix(".py").is_file()
                    or (SOURCE / Path(*full.split("."))).is_dir()
                    else base
                )


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_has_a_layer_and_imports_nothing_above_it(path):
    if name(path) == "provenance":
        return
    own = layer(name(path))
    assert own is not None, f"{name(path)} has no layer; give it one in LAYERS"
    above = [other for other in imported(path) if other != "provenance" and (layer(other) or 0) > own]
    assert not above


def test_packages_of_one_layer_form_no_circle():
    edges = {(unit(name(path)), unit(other)) for path in MODULES for other in imported(path) if other}
    peers = {(a, b) for a, b in edges if a != b and layer(a) == layer(b)}
    assert not [(a, b) for a, b in peers if (b, a) in peers]


def test_planning_imports_no_heavy_library():
    heavy = (
        "torch",
        "transformers",
        "pandas",
        "scipy",
        "faiss",
        "pyarrow",
        "matplotlib",
        "ir_measures",
        "pyserini",
        "snakemake",
    )
    planning = "encore.project, encore.cli, encore.tables, encore.targets"
    code = f"import json, sys, {planning}; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == []


def test_the_library_knows_nothing_of_snakemake():
    assert not [
        path for path in MODULES if "import snakemake" in path.read_text() or "from snakemake" in path.read_text()
    ]


def test_transformers_serves_expansions_alone():
    """It takes seconds to import; all other models are our own."""
    users = [name(path) for path in MODULES if re.search(r"^\s*(from|import) transformers", path.read_text(), re.M)]
    assert users == ["expanding.model"]


def test_no_file_is_a_drawer():
    assert not [path for path in MODULES if path.stem in ("utils", "helpers", "misc", "common_utils")]
