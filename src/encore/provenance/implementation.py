"""Which code makes which stage, its declared version, and a digest that notices when it changed.

Library code is no trigger for Snakemake: a reformatted line must not cost a GPU-week. Each stage declares ``impl`` in
``stages.yaml`` instead; it is part of the stage's spec. A test compares the digest recorded there with the one computed
here, and asks to bump ``impl`` (results change) or to record the new digest (they do not).
"""

import ast
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from encore.errors import EncoreError

PACKAGE = Path(__file__).resolve().parents[1]


@cache
def stages() -> dict[str, dict[str, Any]]:
    """``stages.yaml``: for each stage its ``impl``, its source files, and their recorded digest."""
    declared: dict[str, dict[str, Any]] = yaml.safe_load((PACKAGE / "stages.yaml").read_text())
    return declared


def impl(stage: str) -> int:
    """The declared version of a stage's behaviour."""
    return int(_stage(stage)["impl"])


def code_digest(stage: str) -> str:
    """Digest of the syntax trees of a stage's sources, blind to comments, docstrings and layout."""
    total = hashlib.sha256()
    for path in sources(stage):
        total.update(ast.dump(_without_docstrings(ast.parse(path.read_text()))).encode())
    return total.hexdigest()[:16]


def sources(stage: str) -> list[Path]:
    """The files whose code makes a stage; ``pretrain.<objective>`` has the objective's own as well."""
    kind, _, objective = stage.partition(".")
    patterns = list(_stage(stage if stage in stages() else kind)["sources"])
    if kind == "pretrain" and objective:
        patterns += _stage("pretrain")["objectives"].get(objective, [f"objectives/{objective}.py"])
    return sorted({path for pattern in patterns for path in PACKAGE.glob(pattern)})


def _stage(stage: str) -> dict[str, Any]:
    if stage not in stages():
        raise EncoreError(f"stage {stage!r} is not in stages.yaml; add it with its sources and `impl: 1`")
    return stages()[stage]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree
