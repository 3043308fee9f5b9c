"""Archives of strangers: regular files and folders below their own folder, or one line and nothing written."""

import errno
import gzip
import io
import random
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from encore.datasets.download import unpack as unpacking
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


def refused(archive: Path, kind: str, says: str, members: tuple[str, ...] = ()) -> None:
    """Refused in one line; neither the folder, nor anything next to it, has appeared."""
    place = archive.parent
    before = sorted(map(str, place.rglob("*")))
    with pytest.raises(EncoreError, match=says) as caught:
        unpack(archive, kind, members, place / "out" / "set")
    assert "\n" not in str(caught.value)
    (place / "out").rmdir()  # empty
    assert sorted(map(str, place.rglob("*"))) == before


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


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_member_that_there_is_not_is_named(kind: str, tmp_path: Path) -> None:
    archive = good_tar(tmp_path / "a") if kind == "tar" else good_zip(tmp_path / "a")
    refused(archive, kind, r"does not hold set/none.*members", ("set/none",))


@pytest.mark.parametrize("kind", ["gz", "tar", "zip"])
def test_an_archive_that_was_cut_short_is_damaged(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(FILES["set/corpus.jsonl"])[:20])
    refused(path, kind, rf"a\.gz is not a {kind} archive or is damaged")


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"?"]
)
def test_a_tar_holds_no_links_and_no_devices(kind: bytes, tmp_path: Path) -> None:
    members = [(member("set/file"), b"content"), (member("set/link", kind, "file"), b"")]
    archive = tar(tmp_path / "a.tar", members)
    refused(archive, "tar", r"a\.tar holds 'set/link', which is no regular file and no folder.*do not use this archive")
    refused(archive, "tar", r"a\.tar holds 'set/link'", ("set/file",))


def test_no_file_is_written_through_links_longer_than_a_path(tmp_path: Path) -> None:
    """The archive of CVE-2025-4517, which tarfile's own filter lets out of the folder."""
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    members, path, deep = [], "", "d" * 247
    for name in "abcdefghijklmnop":
        members += [
            (member(f"{path}{deep}", tarfile.DIRTYPE), b""),
            (member(f"{path}{name}", tarfile.SYMTYPE, deep), b""),
        ]
        path += f"{deep}/"
    short = "/".join("abcdefghijklmnop")
    link = f"{short}/{'l' * 254}"
    members += [
        (member(link, tarfile.SYMTYPE, "../" * 16), b""),
        (member("escape", tarfile.SYMTYPE, f"{link}/../../victim"), b""),
        (member("hard", tarfile.LNKTYPE, "escape"), b""),
        (member("hard"), b"overwritten"),
    ]
    refused(tar(tmp_path / "a.tar", members), "tar", "no regular file and no folder")
    assert victim.read_text() == "as it was"


@pytest.mark.parametrize("name", ["../out", "/out", "set/../../out", "set\\..\\..\\out"])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_no_name_leaves_the_folder_even_of_what_is_not_wanted(kind: str, name: str, tmp_path: Path) -> None:
    refused(named(tmp_path / f"a.{kind}", name), kind, "outside of its folder")
    refused(named(tmp_path / f"a.{kind}", name), kind, "outside of its folder", ("set/file",))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "name", ["a\nb", "a\x1b[2J", "n" * 300, "/".join("a" * 40), "set/file", "set/file/below", "set", "."]
)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_odd_names_are_one_line(kind: str, name: str, tmp_path: Path) -> None:
    refused(named(tmp_path / f"a.{kind}", name), kind, r"is not the name of a file|is damaged \(")


def named(path: Path, name: str) -> Path:
    if path.suffix == ".tar":
        return tar(path, [(member("set/file"), b"content"), (member(name), b"content")])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("set/file", b"content")
        archive.writestr(zipfile.ZipInfo(name), b"content")
    return path


def test_a_zip_holds_no_links(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("set/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    refused(tmp_path / "a.zip", "zip", r"a\.zip holds 'set/link', which is no regular file")


@pytest.mark.parametrize(("place", "value", "says"), [(6, 1, "encrypted"), (8, 99, "packed in an unknown way")])
def test_a_zip_that_python_cannot_read_is_one_line(place: int, value: int, says: str, tmp_path: Path) -> None:
    content = bytearray(good_zip(tmp_path / "a.zip").read_bytes())
    for signature, offset in ((b"PK\3\4", place), (b"PK\1\2", place + 2)):
        at = content.rindex(signature) if signature == b"PK\1\2" else content.index(b"readme") - 30
        content[at + offset] = value
    (tmp_path / "a.zip").write_bytes(content)
    refused(tmp_path / "a.zip", "zip", f"'readme' is {says}")


@pytest.mark.parametrize("kind", ["gz", "tar", "zip"])
def test_what_unpacks_to_far_more_than_it_is_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "SMALL", 1 << 20)
    zeros = bytes(3 << 20)
    path = tmp_path / "a.bomb"
    if kind == "gz":
        path.write_bytes(gzip.compress(zeros))
    elif kind == "tar":
        tar(path, [(member("set/file"), zeros)], "w:gz")
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in "abc":
                archive.writestr(name, zeros[: 1 << 20])
    refused(path, kind, r"a\.bomb unpacks to more than 0\.0 GB, 200 times its size")
    if kind != "gz":
        refused(path, kind, "unpacks to more than|does not hold", ("none",))


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_of_very_many_files_is_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = good_tar(tmp_path / "a") if kind == "tar" else good_zip(tmp_path / "a")
    monkeypatch.setattr(unpacking, "MOST_FILES", 3)
    refused(archive, kind, "holds more than 3 files")


@pytest.mark.parametrize("size", [-1, -(1 << 40), 1 << 62])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_lengths_that_cannot_be_are_one_line(kind: bytes, size: int, tmp_path: Path) -> None:
    head = member("set/file", kind, size=size).tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "a.tar").write_bytes(head + bytes(2048))
    refused(tmp_path / "a.tar", "tar", "is not a tar archive or is damaged|unpacks to more than")


def test_headers_without_end_are_one_line(tmp_path: Path) -> None:
    head = member("x", tarfile.GNUTYPE_LONGNAME, size=1).tobuf(tarfile.GNU_FORMAT) + bytes(512)
    (tmp_path / "a.tar").write_bytes(head * 5000)
    refused(tmp_path / "a.tar", "tar", "is not a tar archive or is damaged")


def test_a_damaged_header_is_not_taken_for_the_end(tmp_path: Path) -> None:
    content = bytearray(good_tar(tmp_path / "a.tar", "w").read_bytes())
    content[content.rindex(b"readme")] ^= 1
    (tmp_path / "a.tar").write_bytes(content)
    refused(tmp_path / "a.tar", "tar", "damaged")


def test_a_packed_tar_is_compared_with_its_checksum(tmp_path: Path) -> None:
    content = bytearray(good_tar(tmp_path / "a.tar").read_bytes())
    content[-6] ^= 1
    (tmp_path / "a.tar").write_bytes(content)
    refused(tmp_path / "a.tar", "tar", "damaged")


@pytest.mark.parametrize("kind", ["gz", "tar", "plain tar", "zip"])
def test_any_damage_is_one_line_or_changes_nothing(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    if kind == "gz":
        path.write_bytes(gzip.compress(FILES["set/corpus.jsonl"]))
    else:
        good_zip(path) if kind == "zip" else good_tar(path, "w" if kind == "plain tar" else "w:gz")
    content, rng, refusals = path.read_bytes(), random.Random(0), 0
    for number in range(300):
        damaged = bytearray(content)
        for _ in range(rng.choice((1, 1, 4))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged[: rng.randrange(len(damaged))] if number % 5 == 0 else damaged)
        refusal = ""
        try:
            unpack(path, kind.split()[-1], (), tmp_path / "out")  # type: ignore[arg-type]
        except EncoreError as error:
            refusal = str(error)
        refusals += bool(refusal)
        assert "\n" not in refusal
        assert (tmp_path / "out").exists() == (not refusal)
        unpacking.shutil.rmtree(tmp_path / "out", ignore_errors=True)
        assert [each.name for each in tmp_path.iterdir()] == ["a.gz"]
    assert refusals > 50


def test_a_full_disk_is_not_called_a_damaged_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(unpacking.shutil, "copyfileobj", full)
    refused(good_zip(tmp_path / "a.zip"), "zip", r"cannot unpack .*a\.zip: No space left on device; make room")
