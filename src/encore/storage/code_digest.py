"""The code behind each stage, its declared version, and changes since that was declared.

Library code does not trigger Snakemake: a reformatted line must not cost a GPU-week. Each stage declares ``impl`` in
``stages.yaml`` instead; it is part of the stage's spec. The code of a stage is its program and all that this imports,
directly or not, wherever in a file the import is, except for type checkers alone (``if TYPE_CHECKING:``).
``digests.yaml`` has the digest of each module as it was when the stages' versions were last declared; a test names
every stage that rests on a module which has changed since, and asks to raise ``impl`` (results change) or to record the
new digests (they do not): ``make digests``.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from encore.errors import EncoreError
from encore.storage.files import readable_object, write_text

PACKAGE = Path(__file__).resolve().parents[1]
HEAD = "# The code behind each stage as it was when its `impl` was last declared; `make digests` writes it.\n"
VARIANTS = {  # stages that load a module by its name, and the folder that has it: `collection.beir`, `pretrain.ict`
    "collection": "encore.datasets",
    "pretrain": "encore.objectives",
    "prepare": "encore.objectives",
    "count_pairs": "encore.objectives",
}
RECORDED = "digests.yaml"


class Code:
    """The code of one version of Encore: the library, and the programs that rules call."""

    def __init__(self, package: Path) -> None:
        """
        Args:
            package: the library's folder, ``src/encore`` of a clone; programs are in ``workflow/scripts`` next to it,
                and below an installed package.
        """
        self.package = package
        clone, installed = package.parents[1] / "workflow/scripts", package / "program/workflow/scripts"
        self.programs = clone if clone.is_dir() else installed
        self._files: dict[str, _File] = {}
        self._paths: dict[str, Path | None] = {}
        self._kept = package / "__pycache__/read_code.json"  # where Python keeps what it compiles

    @cached_property
    def stages(self) -> dict[str, dict[str, Any]]:
        """``stages.yaml``: for each stage its ``impl``, and the ``modules`` that its program loads by their names.

        A stage whose ``program`` is not called like it says so.
        """
        declared: dict[str, dict[str, Any]] = yaml.safe_load((self.package / "stages.yaml").read_text())
        return declared

    def impl(self, stage: str) -> int:
        """The declared version of a stage's behaviour."""
        return int(self._stage(stage)["impl"])

    def modules(self, stage: str) -> list[str]:
        """Names of a stage's program and of all modules of Encore that it imports, directly or not, in order.

        A variant (``pretrain.<objective>``, ``collection.<kind>``) has its module too, which the program loads by name.
        """
        kind, _, variant = stage.partition(".")
        declared = self._stage(stage if stage in self.stages else kind)
        waiting = [declared.get("program", f"{kind}.py"), *declared.get("modules", [])]
        waiting += [_variant(kind, variant)] if kind in VARIANTS and variant and stage not in self.stages else []
        return sorted(self._reached(waiting))

    def digest(self, stage: str) -> str:
        """Digest of the syntax trees of all code of a stage, regardless of comments, docstrings and layout."""
        found = hashlib.sha256("".join(map(self.module_digest, self.modules(stage))).encode()).hexdigest()[:16]
        self._keep()
        return found

    def read_library(self) -> None:
        """Read all modules behind stages, for the forks of this process; programs may be edited until they start."""
        found = [each.get("program", f"{stage.partition('.')[0]}.py") for stage, each in self.stages.items()]
        found += [name for each in self.stages.values() for name in each.get("modules", [])]
        for folder in set(VARIANTS.values()):
            files = self.package.joinpath(*folder.split(".")[1:]).glob("[!_]*.py")
            found += [f"{folder}.{path.stem}" for path in files]
        self._reached(found)
        self._files = {name: file for name, file in self._files.items() if not name.endswith(".py")}
        self._keep()

    def module_digest(self, name: str) -> str:
        """The same of one module or program."""
        return self._file(name).digest

    def record(self, stages: Iterable[str]) -> dict[str, Any]:
        """The content of ``digests.yaml``: stages, and the digest of every module behind them."""
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
        """True if this version has a stage; one that was renamed is another one."""
        kind, _, variant = stage.partition(".")
        known = self._path(_variant(kind, variant)) is not None if kind in VARIANTS and variant else True
        return stage in self.stages or (kind in self.stages and known)

    def _reached(self, names: Iterable[str]) -> set[str]:
        """Files with all that they import, directly or not."""
        waiting, found = list(names), set[str]()
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self._file(name).imports
        return found

    def _stage(self, stage: str) -> dict[str, Any]:
        if stage not in self.stages:
            raise EncoreError(f"stage {stage!r} is not in stages.yaml; add it with `impl: 1`")
        return self.stages[stage]

    def _file(self, name: str) -> "_File":
        if name not in self._files:
            path = self._path(name)
            assert path is not None
            self._files[name] = self._known_file(name, path) or _File.read(path)
        file = self._files[name]
        return file._replace(imports=[each for each in file.imports if self._path(each) is not None])

    @cached_property
    def _known(self) -> dict[str, Any]:
        """Files that earlier processes read, by name: reading all of them takes a job or an audit seconds."""
        return readable_object(self._kept)

    def _known_file(self, name: str, path: Path) -> "_File | None":
        """The record of a file that has had the same size and time since it was read."""
        try:
            known = _File(*self._known[name])
        except (KeyError, TypeError):
            return None
        return known if known.stamp == _stamp(path) else None

    def _keep(self) -> None:
        """Keep what was read, but for what depends on other files too."""
        files = {name: list(file) for name, file in self._files.items() if file.is_alone}
        if any(self._known.get(name) != file for name, file in files.items()):
            self._known.update(files)
            with suppress(EncoreError):  # the folder can only be read
                write_text(self._kept, json.dumps(self._known))

    def _path(self, name: str) -> Path | None:
        """The file of a program (``encode.py``) or of a module (``encore.retrieval.encode``); None where it is none."""
        if name not in self._paths:
            place = self.package.joinpath(*name.split(".")[1:])
            package = place / "__init__.py"  # a folder without it is left by an earlier version, with compiled files
            file = package if package.is_file() else place.with_suffix(".py")
            file = self.programs / name if name.endswith(".py") else file
            self._paths[name] = file if name.endswith(".py") or file.is_file() else None
        return self._paths[name]


class _File(NamedTuple):
    """One file: its size and time, the digest of what it does, the modules that it may import, and whether that is all.

    A module that names the folder ``templates`` next to it does what the files in there say.
    """

    stamp: list[int]
    digest: str
    imports: list[str]
    is_alone: bool

    @classmethod
    def read(cls, path: Path) -> "_File":
        stamp, tree = _stamp(path), ast.parse(path.read_text())
        named = any(isinstance(node, ast.Constant) and node.value == "templates" for node in ast.walk(tree))
        files = sorted(each for each in (path.parent / "templates").rglob("*") if each.is_file()) if named else []
        content = [_dumped(_without_docstrings(tree)).encode(), *(each.read_bytes() for each in files)]
        return cls(stamp, hashlib.sha256(b"".join(content)).hexdigest()[:16], sorted(set(_imported(tree))), not named)


def _stamp(path: Path) -> list[int]:
    about = path.stat()
    return [about.st_size, about.st_mtime_ns]


def _variant(stage: str, name: str) -> str:
    """The module of a variant of a stage."""
    return f"{VARIANTS[stage]}.{name.replace('-', '_')}"


HERE = Code(PACKAGE)


@cache
def code_digest(stage: str) -> str:
    """Digest of the code of a stage of this version."""
    return HERE.digest(stage)


def write_record(stages: Iterable[str]) -> None:
    """Record the digests of the code behind stages, as it is now."""
    write_text(PACKAGE / RECORDED, HEAD + yaml.safe_dump(HERE.record(stages)))


def read_record() -> dict[str, Any]:
    """The last record."""
    recorded: dict[str, Any] = yaml.safe_load((PACKAGE / RECORDED).read_text())
    return recorded


def _imported(tree: ast.Module) -> Iterator[str]:
    """Every dotted name of Encore that a file may import, and the packages above it, which Python runs first."""
    types = (node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    never_run = {inner for node in types for statement in node.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if node in never_run:
            continue
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


def _dumped(node: Any) -> str:
    """A syntax tree as ``ast.dump`` of Python 3.11 writes it, so that digests are those of any version.

    Later ones have more fields and leave out empty ones, and 3.12 ends some formats with an empty text.
    """
    if isinstance(node, list):
        return f"[{', '.join(map(_dumped, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: getattr(node, name, None) for name in node._fields}
    if isinstance(node, ast.JoinedStr):
        fields["values"] = [each for each in node.values if getattr(each, "value", None) != ""]
    left_out = {name for name, value in fields.items() if value is None and getattr(type(node), name, ...) is None}
    left_out |= {"type_params"} if not fields.get("type_params") else set()
    written = (f"{name}={_dumped(value)}" for name, value in fields.items() if name not in left_out)
    return f"{type(node).__name__}({', '.join(written)})"


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree
