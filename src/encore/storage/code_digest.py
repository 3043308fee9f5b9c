"""Which code makes which stage, its declared version, and what changed since that was declared.

Library code is no trigger for Snakemake: a reformatted line must not cost a GPU-week. Each stage declares ``impl`` in
``stages.yaml`` instead; it is part of the stage's spec. The code of a stage is its program and all that this imports,
directly or not, wherever in a file the import stands. ``digests.yaml`` has the digest of each module as it was when
the stages' versions were last declared; a test names every stage that rests on a module which has changed since, and
asks to raise ``impl`` (results change) or to record the new digests (they do not): ``make digests``.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from encore.errors import EncoreError
from encore.storage.files import write_text

PACKAGE = Path(__file__).resolve().parents[1]
HEAD = "# The code behind each stage as it was when its `impl` was last declared; `make digests` writes it.\n"
OF_AN_OBJECTIVE = ("pretrain", "prepare", "count_pairs")
RECORDED = "digests.yaml"


class Code:
    """The code of one version of Encore: the library, and the programs that rules call."""

    def __init__(self, package: Path) -> None:
        """
        Args:
            package: the library's folder, ``src/encore`` of a clone; programs lie in ``workflow/scripts`` next to it.
        """
        self.package = package
        self.programs = package.parents[1] / "workflow/scripts"
        self._files: dict[str, _File] = {}

    @cached_property
    def stages(self) -> dict[str, dict[str, Any]]:
        """``stages.yaml``: for each stage its ``impl``, and the ``modules`` that its program loads by their names."""
        declared: dict[str, dict[str, Any]] = yaml.safe_load((self.package / "stages.yaml").read_text())
        return declared

    def impl(self, stage: str) -> int:
        """The declared version of a stage's behaviour."""
        return int(self._stage(stage)["impl"])

    def modules(self, stage: str) -> list[str]:
        """Names of a stage's program and of all modules of Encore that it imports, directly or not, in order.

        Stages of one objective (``pretrain.<objective>``) have its module as well, which the program loads by its name.

        Raises:
            EncoreError: the stage is not in ``stages.yaml``.
        """
        kind, _, variant = stage.partition(".")
        declared = self._stage(stage if stage in self.stages else kind)
        waiting = [f"{kind}.py", *declared.get("modules", [])]
        waiting += [f"encore.objectives.{variant}"] if kind in OF_AN_OBJECTIVE and variant else []
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self._file(name).imports
        return sorted(found)

    def digest(self, stage: str) -> str:
        """Digest of the syntax trees of all code of a stage, blind to comments, docstrings and layout."""
        return hashlib.sha256("".join(map(self.module_digest, self.modules(stage))).encode()).hexdigest()[:16]

    def module_digest(self, name: str) -> str:
        """The same of one module or program."""
        return self._file(name).digest

    def record(self, stages: Iterable[str]) -> dict[str, Any]:
        """What ``digests.yaml`` keeps: the stages that it is about, and the digest of every module behind them."""
        listed = sorted(stages)
        names = sorted({name for stage in listed for name in self.modules(stage)})
        return {"stages": listed, "modules": {name: self.module_digest(name) for name in names}}

    def changed(self, recorded: dict[str, Any]) -> dict[str, list[str]]:
        """Each module that is not as recorded, with the recorded stages that rest on it.

        A stage that is not recorded is new: nothing was ever made by another version of it.
        """
        found: dict[str, list[str]] = {}
        for stage in filter(self.has, recorded["stages"]):
            for name in self.modules(stage):
                if self.module_digest(name) != recorded["modules"].get(name):
                    found.setdefault(name, []).append(stage)
        return found

    def has(self, stage: str) -> bool:
        """Whether this version has a stage; one that was renamed is another one."""
        return stage in self.stages or stage.partition(".")[0] in self.stages

    def _stage(self, stage: str) -> dict[str, Any]:
        if stage not in self.stages:
            raise EncoreError(f"stage {stage!r} is not in stages.yaml; add it with `impl: 1`")
        return self.stages[stage]

    def _file(self, name: str) -> "_File":
        if name not in self._files:
            self._files[name] = _File(self._path(name), self._path)
        return self._files[name]

    def _path(self, name: str) -> Path | None:
        """The file of a program (``encode.py``) or of a module (``encore.retrieval.encode``); None where it is none."""
        if name.endswith(".py"):
            return self.programs / name
        place = self.package.joinpath(*name.split(".")[1:])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        return file if file.is_file() else None


class _File:
    """One file: the modules of Encore that it imports, and the digest of what it does.

    A module that names the folder ``templates`` next to it does what the files in there say.
    """

    def __init__(self, path: Path | None, find: Any) -> None:
        assert path is not None
        tree = ast.parse(path.read_text())
        self.imports = sorted({name for name in _imported(tree) if find(name) is not None})
        named = any(isinstance(node, ast.Constant) and node.value == "templates" for node in ast.walk(tree))
        files = sorted(each for each in (path.parent / "templates").rglob("*") if each.is_file()) if named else []
        content = [ast.dump(_without_docstrings(tree)).encode(), *(each.read_bytes() for each in files)]
        self.digest = hashlib.sha256(b"".join(content)).hexdigest()[:16]


HERE = Code(PACKAGE)


@cache
def code_digest(stage: str) -> str:
    """Digest of the code of a stage of this version."""
    return HERE.digest(stage)


def impl(stage: str) -> int:
    """The declared version of a stage of this version."""
    return HERE.impl(stage)


def write_record(stages: Iterable[str]) -> None:
    """Record the digests of the code behind stages, as it is now."""
    write_text(PACKAGE / RECORDED, HEAD + yaml.safe_dump(HERE.record(stages)))


def read_record() -> dict[str, Any]:
    """What was recorded last."""
    recorded: dict[str, Any] = yaml.safe_load((PACKAGE / RECORDED).read_text())
    return recorded


def _imported(tree: ast.Module) -> Iterator[str]:
    """Every dotted name of Encore that a file may import, and the packages above it, which Python runs first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "encore":
                yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree
