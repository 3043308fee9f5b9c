"""``docs/results.py`` and ``docs/recording.py``, a program and its part, as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


def load(name: str) -> ModuleType:
    described = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert described
    assert described.loader
    module = sys.modules[name] = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


RECORDING = load("recording")  # before the program, which imports it by this name
PROGRAM = load("results")
