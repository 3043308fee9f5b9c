"""What cannot be written is said in one line, and no half file stays."""

import errno
import os

import pytest

from encore.errors import EncoreError
from encore.storage import program
from encore.storage.files import replacing

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


def test_a_program_says_in_one_line_what_it_may_not_write(capsys):
    def forbidden():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "results/models")

    with pytest.raises(SystemExit) as ended:
        program.run(forbidden)
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: results/models: Permission denied; fix that, then repeat\n"


def test_a_program_keeps_the_traceback_of_another_os_error():
    def bug():
        raise FileNotFoundError(errno.ENOENT, "gone", "x")

    with pytest.raises(FileNotFoundError):
        program.run(bug)
