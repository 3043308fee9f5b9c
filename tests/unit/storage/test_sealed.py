"""Files of unfinished work: whatever is done to one, it is what was written or is refused."""

import errno
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


def blocks_of(path: Path, made_from: str = "this") -> sealed.SealedBlocks:
    return sealed.SealedBlocks(path, made_from)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A file of three blocks."""
    path = tmp_path / "state" / "a"
    for number in range(3):
        blocks = blocks_of(path)
        assert blocks.count == number
        blocks.append(bytes([number]) * (number + 4))
    return path


def test_blocks_make_up_a_file(three: Path, tmp_path: Path) -> None:
    blocks_of(three).move(tmp_path / "made" / "b")
    assert (tmp_path / "made" / "b").read_bytes() == b"\0" * 4 + b"\1" * 5 + b"\2" * 6
    assert [path.name for path in three.parent.iterdir()] == ["a.seals"]
    assert blocks_of(three).count == 0, "without their bytes seals are of nothing"


@pytest.mark.parametrize("file", ["a", "a.seals"])
def test_what_follows_the_first_bit_that_was_flipped_or_lost_is_cut_off(three: Path, file: str) -> None:
    path, whole, seals = three.parent / file, three.read_bytes(), three.with_name("a.seals").read_bytes()
    ends = [0, 4, 9, 15] if file == "a" else [0, 40, 80, 120]
    content = path.read_bytes()
    assert len(content) == ends[-1]
    for place, byte in enumerate(content):
        before = sum(end <= place for end in ends[1:])
        for damaged in (content[:place] + bytes([byte ^ 1]) + content[place + 1 :], content[:place]):
            three.write_bytes(whole)
            three.with_name("a.seals").write_bytes(seals)
            path.write_bytes(damaged)
            blocks = blocks_of(three)
            assert blocks.count == before
            assert three.read_bytes() == whole[: [0, 4, 9][before]]
            for number in range(before, 3):
                blocks.append(bytes([number]) * (number + 4))
            assert (three.read_bytes(), blocks_of(three).count) == (whole, 3)


def test_bytes_without_a_seal_are_cut_off(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with three.open("ab") as file:
        file.write(b"torn")
    assert blocks_of(three).count == 3
    assert len(three.read_bytes()) == 15
    assert f"{three} is cut off after 3 blocks" in capsys.readouterr().out


def test_blocks_of_other_inputs_are_not_gone_on_from(three: Path) -> None:
    assert blocks_of(three, "that").count == 0
    assert three.read_bytes() == b""


def test_a_full_disk_is_one_line(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = blocks_of(three)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(EncoreError, match=r"cannot write .*: No space left on device; make room"):
        blocks.append(b"x")


def test_blocks_are_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("mine")
    (tmp_path / "vectors").symlink_to(tmp_path / "thesis")
    sealed.SealedBlocks(tmp_path / "vectors", "model").append(b"block")
    assert (tmp_path / "thesis").read_text() == "mine"
    assert (tmp_path / "vectors").read_bytes() == b"block"
