"""What cannot be written is said in one line, and no half file stays."""

import errno
import os
import re
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.storage import program
from encore.storage.csv_rows import read_rows
from encore.storage.files import replacing
from tests.support import inside

FULL = os.strerror(errno.ENOSPC)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, FULL), RuntimeError(f"write error: 0 != 8 ({FULL})")])
def test_a_full_disk_is_one_line_whoever_writes(tmp_path, error):
    with pytest.raises(EncoreError, match=rf"cannot write .*index: {FULL}; make room"), replacing(tmp_path / "index"):
        raise error
    assert not list(tmp_path.iterdir())


def test_a_bug_keeps_its_traceback_and_the_old_file_stays(tmp_path):
    path = tmp_path / "index"
    path.write_text("old")

    def write():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        write()
    assert [each.name for each in tmp_path.iterdir()] == ["index"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EFBIG])  # the second under `ulimit -f`
def test_a_program_says_in_one_line_what_it_may_not_write(number, capsys):
    def forbidden():
        raise OSError(number, os.strerror(number), "results/models")

    with pytest.raises(SystemExit) as ended:
        program.run(forbidden)
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"error: results/models: {os.strerror(number)}; fix that, then repeat\n"


def broken(*_):
    raise ValueError("two\nlines")


@pytest.mark.parametrize("traceback", [True, False])
@pytest.mark.parametrize(
    ("main", "says"),
    [
        (
            lambda: read_rows(Path("gone.csv")),
            r"FileNotFoundError: .*: 'gone\.csv' \(encore/storage/csv_rows\.py:\d+\)",
        ),
        (broken, r"ValueError: two lines \(.*/test_program_arguments\.py:\d+\)"),
    ],
)
def test_another_error_is_one_line_with_its_type_and_place_and_in_a_log_its_traceback(main, says, traceback, capsys):
    with pytest.raises(SystemExit) as ended:
        program.run(main, traceback=traceback)
    assert ended.value.code == 1
    *above, line, end = capsys.readouterr().err.split("\n")
    assert re.fullmatch(f"error: {says}", line)
    assert end == ""
    assert above[0] == "Traceback (most recent call last):" if traceback else above == []


@pytest.mark.parametrize(("asked", "traceback"), [("", False), ("1", True)])
def test_a_command_shows_the_traceback_if_it_is_asked_to(asked, traceback, monkeypatch):
    monkeypatch.setenv("ENCORE_TRACEBACK", asked)
    monkeypatch.setattr("encore.commands.schema.answer", broken)
    done = inside.encore("schema")
    assert done.returncode == 1
    assert ("Traceback" in done.stderr) is traceback
    assert done.stderr.splitlines()[-1].startswith("error: ValueError: two lines (")
