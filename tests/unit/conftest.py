"""The shipped catalogue, read once for all tests that plan with it."""

from pathlib import Path

import pytest

from encore import project
from encore.catalogue import Catalogue

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return project.load_catalogue(ROOT / "config")


@pytest.fixture
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where a person runs Snakemake."""
    monkeypatch.chdir(ROOT)
