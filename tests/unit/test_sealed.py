"""Files of unfinished work: whatever is done to one, it is what was written or is refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.storage import sealed

CONTENT = bytes(range(256)) * 4


@pytest.mark.parametrize("content", [b"", b"x", CONTENT])
def test_what_was_written_is_read(content: bytes, tmp_path: Path) -> None:
    sealed.write(tmp_path / "a", content)
    assert sealed.read(tmp_path / "a") == content
    assert sealed.is_whole(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a"
    sealed.write(path, CONTENT)
    whole = path.read_bytes()
    rng = random.Random(0)
    for place, byte in enumerate(whole):
        path.write_bytes(whole[:place] + bytes([byte ^ 1 << rng.randrange(8)]) + whole[place + 1 :])
        with pytest.raises(EncoreError, match="a is damaged"):
            sealed.read(path)


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 500, 1055])
def test_a_file_that_was_cut_is_damaged_and_made_again(
    length: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a"
    sealed.write(path, CONTENT)
    path.write_bytes(path.read_bytes()[:length])
    assert not sealed.is_whole(path)
    assert capsys.readouterr().out == f"{path} is damaged; it is made again\n"
    assert not path.exists()
    assert not sealed.is_whole(path)
    assert capsys.readouterr().out == ""


def test_a_file_in_the_place_of_another_is_damaged(tmp_path: Path) -> None:
    sealed.write(tmp_path / "a", CONTENT)
    (tmp_path / "a").rename(tmp_path / "b")
    with pytest.raises(EncoreError, match="b is damaged"):
        sealed.read(tmp_path / "b")


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match=r"a cannot be read \(No such file or directory\)"):
        sealed.read(tmp_path / "a")
