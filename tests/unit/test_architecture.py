"""Planning stays light. The layers are a contract of import-linter (pyproject.toml), which runs with the linters."""

import json
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src/encore"


def test_planning_imports_no_heavy_library():
    heavy = ("torch", "transformers", "pandas", "scipy", "faiss", "pyarrow", "matplotlib")
    heavy += ("ir_measures", "pyserini", "snakemake", "requests")
    planning = "encore.products.catalogue, encore.commands.audit, encore.commands.preflight.jobs, encore.products.kinds"
    code = f"import json, sys, {planning}; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == []


def test_a_training_imports_torchs_compiler_only_to_compile():
    """Importing it takes seconds, which a short training would pay for nothing, whatever ``compiled`` says."""
    code = """
import sys, tempfile
from pathlib import Path
from tests.support import small_training
small_training.NUMERICS["compiled"] = {asked}
small_training.run(Path(tempfile.mkdtemp()), "mlm", steps=2, min_tokens=8)
print("torch._dynamo" in sys.modules)
"""
    for asked in (False, True):
        words = [sys.executable, "-c", code.format(asked=asked)]
        found = subprocess.run(words, capture_output=True, text=True, check=True, cwd=TESTS.parent)
        assert found.stdout.split()[-1] == "False"


def test_no_file_is_a_drawer():
    names = {path.stem for path in SOURCE.rglob("*.py")}
    assert "errors" in names, "the library is not there"
    assert names.isdisjoint({"utils", "helpers", "misc", "common_utils"})


def test_no_test_module_imports_another():
    """What several of them need is in tests/support, or a fixture."""
    modules = [path.stem for path in TESTS.rglob("test_*.py")]
    names = {*modules}
    assert {"test_architecture", "test_reruns"} <= names, "the tests are not there"
    assert len(names) == len(modules), f"pytest takes one file of a name: {sorted(modules)}"
    taken = {
        (path.stem, imported)
        for path in TESTS.rglob("*.py")
        for imported in re.findall(r"^ *(?:from|import) ([\w.]+)", path.read_text(), re.MULTILINE)
        if imported.rpartition(".")[2] in names - {path.stem}
    }
    assert taken == set()
