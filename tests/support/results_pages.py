"""The programs ``docs/results.py`` and ``docs/judge_again.py``, and their part ``docs/recording.py``, as modules."""

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


sys.path.append(str(DOCS))  # has the package `judging`
JUDGE = load("judge_again")  # before what imports it by this name
RECORDING = load("recording")
PROGRAM = load("results")
