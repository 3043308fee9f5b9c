"""Whatever a file of the user's holds, its lines are read, or one line says which is wrong."""

import errno
import gzip
import json
import lzma
import os
import tracemalloc
from pathlib import Path

import pytest

from encore.errors import SHOWN, EncoreError, quoted
from encore.storage import files, text_files
from encore.storage.text_files import numbered_lines, numbered_objects, numbered_records

TEXT = b"one\ntwo\nthree\n"


def written(folder: Path, content: bytes, name: str = "a.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def refusal(rows) -> str:
    with pytest.raises(EncoreError) as caught:
        list(rows)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    return message


@pytest.mark.parametrize(
    "content",
    [TEXT, TEXT[:-1], b"\xef\xbb\xbf" + TEXT, TEXT.replace(b"\n", b"\r\n"), TEXT.replace(b"\n", b"\r\n")[:-1]],
    ids=["plain", "no end", "byte order mark", "CR LF", "CR at the end"],
)
def test_what_is_read_past(tmp_path, content):
    assert list(numbered_lines(written(tmp_path, content))) == [(1, "one"), (2, "two"), (3, "three")]


def test_packed_files_are_read(tmp_path):
    for name, packed in (("a.gz", gzip.compress(TEXT)), ("a.xz", lzma.compress(TEXT))):
        assert [line for _, line in numbered_lines(written(tmp_path, packed, name))] == ["one", "two", "three"]


def test_all_streams_of_a_packed_file_are_read_and_a_damaged_one_is_refused(tmp_path):
    for name, pack in (("a.gz", gzip.compress), ("a.xz", lzma.compress)):
        packed = pack(TEXT) + pack(b"four\n")
        assert [line for _, line in numbered_lines(written(tmp_path, packed, name))][2:] == ["three", "four"]
        begins = len(pack(TEXT))
        damaged = packed[:begins] + bytes([packed[begins] ^ 1]) + packed[begins + 1 :]
        assert "cannot be read" in refusal(numbered_lines(written(tmp_path, damaged, name)))


def test_a_text_may_hold_what_a_record_may_not(tmp_path):
    assert list(numbered_lines(written(tmp_path, b"a\rb\0\r\nc\n"))) == [(1, "a\rb\0"), (2, "c")]


def test_an_empty_file_has_no_line_and_an_empty_line_is_one(tmp_path):
    assert list(numbered_lines(written(tmp_path, b""))) == []
    assert list(numbered_lines(written(tmp_path, b"a\n\nb\n"))) == [(1, "a"), (2, ""), (3, "b")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"one\rtwo\r", "line 1: a carriage return within the line"),
        (b"one\nt\rwo\n", "line 2: a carriage return within the line"),
        (b"one\nt\0wo\n", "line 2: a NUL byte"),
        ("one\ntwo".encode("utf-16-le"), "line 1: a NUL byte; if the file is UTF-16 convert it"),
        ("one\ntwo".encode("utf-16"), "line 1: "),
        (b"one\ncaf\xe9\n", "line 2: not UTF-8"),
        (b"one\n\xed\xa0\x80\n", "line 2: not UTF-8"),  # half of a surrogate pair
        (b"one\ntwo\nt\xc3", "line 3: not UTF-8"),
        (
            gzip.compress(TEXT, mtime=0),
            "line 1: not UTF-8 (invalid start byte); convert it, e.g. with iconv, or unpack it",
        ),
    ],
)
def test_other_bytes_are_refused_with_their_line(tmp_path, content, said):
    assert f"a.txt, {said}" in refusal(numbered_records(written(tmp_path, content)))


@pytest.mark.parametrize("packed", [gzip.compress, lzma.compress])
def test_damaged_archives_are_refused(tmp_path, packed):
    name = "a.gz" if packed is gzip.compress else "a.xz"
    whole = packed(os.urandom(200).hex().encode() * 2000 + b"\n")
    for content in (whole[:-9], whole[:40], b"<!DOCTYPE html>\n" * 9, whole[:60] + b"\0" * 9 + whole[69:]):
        assert f"{name}, after line" in refusal(numbered_lines(written(tmp_path, content, name)))
    altered = bytearray(whole)
    altered[-6] ^= 1  # of the checksum, behind the last line
    assert "cannot be read" in refusal(numbered_lines(written(tmp_path, bytes(altered), name)))


@pytest.mark.parametrize("name", ["a.txt", "a.gz"])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, name):
    """A hundred megabytes are in the file, and a third of them in memory, as a line may be long."""
    path = tmp_path / name
    with path.open("wb") if name == "a.txt" else gzip.open(path, "wb", 1) as file:
        file.write(b"short\n")
        for _ in range(100):
            file.write(b"x" * 10**6)
    tracemalloc.start()
    said = refusal(numbered_lines(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "line 2: longer than 32 MiB" in said
    assert peak < 2.2 * text_files.LONGEST


def test_a_line_as_long_as_may_be_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "LONGEST", 10)
    assert list(numbered_lines(written(tmp_path, b"x" * 9 + b"\nab\n"))) == [(1, "x" * 9), (2, "ab")]
    assert "line 1: longer" in refusal(numbered_lines(written(tmp_path, b"x" * 10 + b"\nab\n")))


def test_folders_and_locked_files_are_refused(tmp_path, monkeypatch):
    assert "cannot be read (Is a directory)" in refusal(numbered_lines(tmp_path))

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / "a.txt"))

    monkeypatch.setattr(Path, "open", refuse)
    assert "a.txt, after line 0: cannot be read (Permission denied)" in refusal(numbered_lines(tmp_path / "a.txt"))
    with pytest.raises(EncoreError, match=r"a\.txt: (No such file|Permission denied).*can be read"):
        files.contents({"a": tmp_path / "a.txt"})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "Expecting value at character 1"),
        ('{"a": 1', "not JSON"),
        ('{"a": 1}{"a": 2}', "Extra data at character 9"),
        ("[1]", "needs an object"),
        ("null", "needs an object"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' occurs twice"),
        ('{"a": "\\ud800"}', "half of a surrogate pair"),
        ('{"\\udc00": 1}', "half of a surrogate pair"),
        ('{"a": ' + "9" * 5000 + "}", "not JSON"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"a": "tab\tin it"}', "Invalid control character"),
    ],
)
def test_json_that_cannot_be_read_is_refused_with_its_line(tmp_path, line, said):
    message = refusal(numbered_objects(written(tmp_path, f'{{"a": 0}}\n{line}\n{{"a": 1}}\n'.encode())))
    assert "a.txt, line 2: " in message
    assert said in message


def test_objects_are_given_as_they_are(tmp_path):
    rows = [{"a": "é\u2028\U0001f600", "b": [1, {"c": None}]}, {}]
    content = "".join(json.dumps(row) + "\n" for row in rows)  # with the pair's halves as escapes
    assert "\\ud83d\\ude00" in content
    assert list(numbered_objects(written(tmp_path, content.encode()))) == [(1, rows[0]), (2, rows[1])]


def test_what_is_found_is_shown_in_short():
    assert quoted("é\n") == "'é\\n'"
    assert quoted("x" * SHOWN) == repr("x" * SHOWN)
    assert quoted("x" * 10**7) == f"'{'x' * SHOWN}'…"
    assert len(quoted(list(range(10**5)))) <= SHOWN + 3
