"""Entries of the catalogue that are no mapping of fields: one line with file and name, whatever they are."""

import shutil
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.products.catalogue import load_catalogue

CONFIG = Path(__file__).parents[3] / "config"


@pytest.mark.parametrize("file", ["backbones", "steps", "datasets", "systems", "indexes", "doc2query", "sources"])
@pytest.mark.parametrize("entry", ["mine:", "mine: 5", "mine: [1]"])
def test_an_entry_without_fields_is_named(file: str, entry: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(CONFIG, tmp_path / "config"))
    with (folder / f"{file}.yaml").open("a") as written:
        written.write(f"\n{entry}\n")
    with pytest.raises(EncoreError, match=rf"{file}\.yaml: mine: .* is no mapping of fields; give the entry its"):
        load_catalogue(folder)


@pytest.mark.parametrize("kind", ["[1]", "nothing", "{a: 1}"])
@pytest.mark.parametrize("file", ["systems", "indexes", "doc2query"])
def test_a_kind_that_is_none_is_named(file: str, kind: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(CONFIG, tmp_path / "config"))
    with (folder / f"{file}.yaml").open("a") as written:
        written.write(f"\nmine: {{kind: {kind}}}\n")
    with pytest.raises(EncoreError, match=rf"{file}\.yaml: mine: unknown kind of "):
        load_catalogue(folder)
