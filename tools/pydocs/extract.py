"""Docstrings of a source file, read from its syntax tree; nothing is ever imported or run."""

import ast
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from tools.pydocs.sources import SourceFile

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class ExtractedObject(NamedTuple):
    """An object with a docstring: ``name`` is dotted within the module, and empty for the module itself."""

    module: str
    name: str
    docstring: str


def documented(source: SourceFile) -> list[ExtractedObject]:
    """The public objects of a file that have a docstring, in the order of the file; the module's own comes first.

    Names that start with an underscore are left out, with all they contain. A file that this Python cannot parse
    (a template, say) has none.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # invalid escapes in other people's strings
            tree = ast.parse(source.path.read_bytes())
    except (SyntaxError, ValueError):
        return []
    found: dict[tuple[str, str], ExtractedObject] = {}
    for entry in _entries(tree, source.module):
        found.setdefault((entry.module, entry.name), entry)  # of two definitions, the first that has a docstring
    return list(found.values())


def _entries(tree: ast.Module, module: str) -> Iterator[ExtractedObject]:
    if docstring := ast.get_docstring(tree):
        yield ExtractedObject(module, "", docstring)
    yield from _members(tree.body, module, "")


def _members(body: list[ast.stmt], module: str, prefix: str) -> Iterator[ExtractedObject]:
    for node in body:
        if isinstance(node, Definition):
            if not node.name.startswith("_"):
                yield from _definition(node, module, prefix + node.name)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _members(_branches(node), module, prefix)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _added(node.value, module)


def _definition(node: Definition, module: str, name: str) -> Iterator[ExtractedObject]:
    if docstring := ast.get_docstring(node):
        yield ExtractedObject(module, name, docstring)
    if isinstance(node, ast.ClassDef):
        yield from _members(node.body, module, f"{name}.")


def _branches(node: ast.If | ast.Try | ast.With) -> list[ast.stmt]:
    branches = list(node.body)
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            branches += handler.body
    if not isinstance(node, ast.With):
        branches += node.orelse
    return branches


def _added(call: ast.Call, module: str) -> Iterator[ExtractedObject]:
    """What NumPy and SciPy say about compiled objects by calling ``add_newdoc``.

    ``add_newdoc(module, name, text)``, ``add_newdoc(module, class, (member, text))``, a list of such pairs, or
    ``add_newdoc(name, text)`` about an object of the package that holds the file.
    """
    if not (isinstance(call.func, ast.Name) and call.func.id == "add_newdoc"):
        return
    match [_literal(argument) for argument in call.args[:3]]:
        case [str(name), str(text)]:
            yield from _public(module.rpartition(".")[0], name, text)
        case [str(place), *_] if place.partition(".")[0] != module.partition(".")[0]:
            return  # a function of the same name that takes other arguments
        case [str(place), str(name), str(text)]:
            yield from _public(place, name, text)
        case [str(place), str(name), (str(member), str(text))]:
            yield from _public(place, f"{name}.{member}", text)
        case [str(place), str(name), list(members)]:
            for member, text in members:
                yield from _public(place, f"{name}.{member}", text)


def _public(module: str, name: str, text: str) -> Iterator[ExtractedObject]:
    if not any(part.startswith("_") for part in name.split(".")):
        yield ExtractedObject(module, name, text)


def _literal(node: ast.expr) -> object:
    """The value of a constant expression (also of ``inspect.cleandoc`` or ``"…".strip()`` around one), else None."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        node = node.args[0]
    try:
        return ast.literal_eval(node)
    except (ValueError, SyntaxError, TypeError):
        return None
