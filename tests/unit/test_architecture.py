"""Planning stays light. The layers are a contract of import-linter (pyproject.toml), which runs with the linters."""

import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/encore"


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
    planning = "encore.products.catalogue, encore.commands.audit, encore.commands.preflight, encore.products.kinds"
    code = f"import json, sys, {planning}; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == []


def test_no_file_is_a_drawer():
    names = {path.stem for path in SOURCE.rglob("*.py")}
    assert "errors" in names, "the library is not there"
    assert names.isdisjoint({"utils", "helpers", "misc", "common_utils"})
