"""Archives of strangers: regular files and folders below their own folder, or one line of refusal."""

import gzip
import io
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from encore.datasets.download.unpack import unpack
from encore.errors import EncoreError

FILES = {"set/corpus.jsonl": b"passages " * 2000, "set/qrels/test.tsv": b"judgments " * 500, "readme": b""}


def member(name: str, kind: bytes = tarfile.REGTYPE, linkname: str = "", size: int = 0) -> tarfile.TarInfo:
    one = tarfile.TarInfo(name)
    one.type, one.linkname, one.size = kind, linkname, size
    return one


def tar(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], mode: str = "w", form: int = tarfile.PAX_FORMAT):
    with tarfile.open(path, mode, format=form) as archive:
        for one, content in members:
            one.size = one.size or len(content)
            archive.addfile(one, io.BytesIO(content))
    return path


def good_tar(path: Path, mode: str = "w:gz", form: int = tarfile.PAX_FORMAT) -> Path:
    folders = [(member("set", tarfile.DIRTYPE), b""), (member("set/qrels/", tarfile.DIRTYPE), b"")]
    return tar(path, [*folders, *((member(name), content) for name, content in FILES.items())], mode, form)


def good_zip(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("set") if hasattr(archive, "mkdir") else archive.writestr("set/", b"")
        for name, content in FILES.items():
            archive.writestr(name, content)
    return path


def inside(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("packing", ["", "gz", "bz2", "xz"])
def test_a_tar_of_any_form_is_unpacked_without_the_filters_of_newer_pythons(
    packing: str, form: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("data_filter", "tar_filter", "FilterError"):  # Python 3.11.2 has none
        monkeypatch.delattr(tarfile, name, raising=False)
    monkeypatch.setattr(tarfile.TarFile, "extract", None)
    archive = good_tar(tmp_path / "a.tar", f"w:{packing}", form)
    unpack(archive, "tar", (), tmp_path / "all")
    assert inside(tmp_path / "all") == FILES
    unpack(archive, "tar", ("set/qrels/test.tsv",), tmp_path / "part")
    assert inside(tmp_path / "part") == {"set/qrels/test.tsv": FILES["set/qrels/test.tsv"]}


def test_a_zip_is_unpacked(tmp_path: Path) -> None:
    unpack(good_zip(tmp_path / "a.zip"), "zip", (), tmp_path / "all")
    assert inside(tmp_path / "all") == FILES
    unpack(tmp_path / "a.zip", "zip", ("readme",), tmp_path / "part")
    assert inside(tmp_path / "part") == {"readme": b""}


def test_a_single_file_is_unpacked_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "docs.tsv.gz"
    path.write_bytes(gzip.compress(b"text"))
    unpack(path, "gz", (), tmp_path / "set")
    assert inside(tmp_path / "set") == {"docs.tsv": b"text"}
    unpack(path, "none", (), tmp_path / "plain")
    assert inside(tmp_path / "plain") == {path.name: path.read_bytes()}


def linked(kind: bytes) -> Callable[[Path], Path]:
    return lambda path: tar(path, [(member("set/file"), b"content"), (member("set/link", kind, "file"), b"")])


def linked_zip(path: Path) -> Path:
    link = zipfile.ZipInfo("set/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    return path


def escaping_by_long_links(path: Path) -> Path:
    """The archive of CVE-2025-4517, which tarfile's own filter lets out of the folder."""
    members, place, deep = [], "", "d" * 247
    for name in "abcdefghijklmnop":
        members += [
            (member(f"{place}{deep}", tarfile.DIRTYPE), b""),
            (member(f"{place}{name}", tarfile.SYMTYPE, deep), b""),
        ]
        place += f"{deep}/"
    link = f"{'/'.join('abcdefghijklmnop')}/{'l' * 254}"
    members += [
        (member(link, tarfile.SYMTYPE, "../" * 16), b""),
        (member("escape", tarfile.SYMTYPE, f"{link}/../../victim"), b""),
        (member("hard", tarfile.LNKTYPE, "escape"), b""),
        (member("hard"), b"overwritten"),
    ]
    return tar(path, members)


def named(kind: str, name: str) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        if kind == "tar":
            return tar(path, [(member("set/file"), b"content"), (member(name), b"content")])
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("set/file", b"content")
            archive.writestr(zipfile.ZipInfo(name), b"content")
        return path

    return make


def damaged(make: Callable[[Path], Path], place: Callable[[bytes], int]) -> Callable[[Path], Path]:
    def change(path: Path) -> Path:
        content = bytearray(make(path).read_bytes())
        content[place(content)] ^= 1
        path.write_bytes(content)
        return path

    return change


def cut(path: Path) -> Path:
    path.write_bytes(gzip.compress(FILES["set/corpus.jsonl"])[:20])
    return path


def plain_tar(path: Path) -> Path:
    return good_tar(path, "w")


NO_FILE = r"a holds 'set/link', which is no regular file and no folder; do not use this archive"
LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"?")
OUTSIDE = ("../out", "/out", "set/../../out", "set\\..\\..\\out")
DAMAGED = r"is not a {} archive or is damaged \(.*remove it and fetch it again"
REFUSED = [
    *(("tar", linked(kind), NO_FILE) for kind in LINKS),
    ("zip", linked_zip, NO_FILE),
    ("tar", escaping_by_long_links, "no regular file and no folder"),
    *((kind, named(kind, name), "which is outside of its folder") for kind in ("tar", "zip") for name in OUTSIDE),
    *((kind, named(kind, "set/file"), "or twice") for kind in ("tar", "zip")),
    *((kind, cut, DAMAGED.format(kind)) for kind in ("gz", "tar", "zip")),
    ("tar", damaged(plain_tar, lambda content: content.rindex(b"set/qrels/test.tsv")), DAMAGED.format("tar")),
    ("tar", damaged(good_tar, lambda content: -6), DAMAGED.format("tar")),  # its checksum
    ("zip", damaged(good_zip, lambda content: content.index(b"readme") - 35), DAMAGED.format("zip")),
]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("kind", "make", "says"), REFUSED)
def test_an_archive_with_anything_else_is_refused(
    kind: str, make: Callable[[Path], Path], says: str, tmp_path: Path
) -> None:
    """In one line, also where other members are wanted; and nothing outside of the folder is written."""
    make(tmp_path / "a")
    for members, also in (((), ""), (("set/file",), "|does not hold set/file")):
        with pytest.raises(EncoreError, match=says + also) as caught:
            unpack(tmp_path / "a", kind, members, tmp_path / "out" / "set")  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        assert [path.name for path in tmp_path.rglob("*")] == ["a"]


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_member_that_an_archive_lacks_is_named(kind: str, tmp_path: Path) -> None:
    archive = good_tar(tmp_path / "a") if kind == "tar" else good_zip(tmp_path / "a")
    with pytest.raises(EncoreError, match=r"does not hold set/none.*members"):
        unpack(archive, kind, ("set/none",), tmp_path / "out")  # type: ignore[arg-type]
