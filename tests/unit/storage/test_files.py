"""Texts that are packed as they are written."""

import platform
from pathlib import Path

import pytest

from encore.storage.files import open_text_writer, sha256

PACKED = "c074932b0fe8a212dc95c8245da01f00c4047b4b8a16fcddcb9cdc021a92fdb2"  # by Python 3.11.7, 3.12.1 and 3.13.0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="ISA-L packs otherwise on other processors")
def test_every_python_packs_a_text_into_the_same_bytes(tmp_path: Path) -> None:
    """From 3.12 on the standard library's gzip, from 3.13 on its text files too, collect what is written otherwise."""
    path = tmp_path / "texts.jsonl.gz"
    with open_text_writer(path) as file:
        for number in range(20_000):
            file.write(f'{{"_id": "{number}", "text": "{"ab " * (number % 97)}{number * number}"}}\n')
    assert sha256(path) == PACKED
