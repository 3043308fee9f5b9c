"""Blocks of code in the pages can be read as they are printed, and what Python imports is there."""

import ast
import importlib
import json
import re

import pytest
import yaml

from tests.support.documented import PAGES, ROOT

BLOCKS = [
    (f"{path.relative_to(ROOT)}:{page.count(chr(10), 0, found.start()) + 1}", *found.groups())
    for pattern in PAGES
    for path in sorted(ROOT.glob(pattern))
    for page in [path.read_text()]
    for found in re.finditer(r"^```(\w+)\n(.*?)^```$", page, re.M | re.S)
]
OTHERS = ("docs/study.md", "docs/add-a-stage.md")  # run by tests/workflow/test_elsewhere.py and test_new_stage.py


def is_python(place: str, language: str) -> bool:
    return language == "python" and not place.startswith(OTHERS)


@pytest.mark.parametrize(("place", "language", "text"), [each for each in BLOCKS if each[1] in ("yaml", "json")])
def test_blocks_of_data_can_be_read(place: str, language: str, text: str) -> None:
    """An alias may be of the file that the page has its reader append the block to."""
    read = [*yaml.parse(text)] if language == "yaml" else [json.loads(line) for line in text.splitlines()]
    assert read


@pytest.mark.parametrize(("place", "language", "text"), [each for each in BLOCKS if is_python(*each[:2])])
def test_what_blocks_of_python_import_is_there(place: str, language: str, text: str) -> None:
    for found in (each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.ImportFrom)):
        if found.module and found.module.split(".")[0] == "encore":
            module = importlib.import_module(found.module)
            assert [name.name for name in found.names if not hasattr(module, name.name)] == []
