"""Fetching: whole or not at all, gone on with after a break, and one line for whatever goes wrong."""

import errno
import hashlib
import shutil
from collections import namedtuple

import pytest

from encore.config.sources import Remote, digest_of
from encore.datasets.download import download as downloading
from encore.datasets.download.download import download
from encore.datasets.download.source import NAME as TRUSTED
from encore.datasets.download.source import trust
from encore.errors import EncoreError
from encore.storage.release import HOME, __version__
from tests.support.server import CONTENT, Server


def remote(url, **fields):
    digest = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
    return Remote.model_validate(
        {"url": url, "digest": digest, "licence": "none", "terms": "https://example.org/terms", **fields}
    )


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_fetched_once(server, tmp_path):
    for _ in range(2):
        download(remote(server.url), tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.requests == [None]
    assert left(tmp_path) == ["file.bin"]


def test_a_broken_connection_goes_on_where_it_broke(server, tmp_path, capsys):
    server.breaks = [5 << 16, 3 << 16]
    download(remote(server.url), tmp_path / "file.bin", pause=0)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.requests == [None, f"bytes={5 << 16}-", f"bytes={8 << 16}-"]
    assert capsys.readouterr().out.count("the connection broke") == 2


def test_a_killed_transfer_is_gone_on_with_by_the_next_command(server, tmp_path):
    server.breaks = [6 << 16] + [0] * downloading.TRIES
    with pytest.raises(EncoreError, match=r"does not answer .*run the same command again.*login node.*file\.bin"):
        download(remote(server.url), tmp_path / "file.bin", pause=0)
    assert not (tmp_path / "file.bin").exists()
    asked = len(server.requests)
    download(remote(server.url), tmp_path / "file.bin", pause=0)
    assert server.requests[asked:] == [f"bytes={6 << 16}-"]
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_two_versions_of_a_file_are_never_joined(server, tmp_path):
    server.breaks = [6 << 16] + [0] * downloading.TRIES
    with pytest.raises(EncoreError):
        download(remote(server.url), tmp_path / "file.bin", pause=0)
    server.content, server.version = bytes(len(CONTENT)), {"ETag": '"two"'}
    with pytest.raises(EncoreError, match=r"has the digest sha256:.* is published"):
        download(remote(server.url), tmp_path / "file.bin", pause=0)
    download(remote(server.url, digest=None), tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == server.content


@pytest.mark.parametrize("tag", [{}, {"ETag": 'W/"one"'}])
def test_a_date_says_the_version_where_no_strong_tag_does(server, tmp_path, tag):
    server.version = tag | {"Last-Modified": "Sat, 21 Nov 2026 12:00:00 GMT"}
    server.breaks = [5 << 16]
    download(remote(server.url), tmp_path / "file.bin", pause=0)
    assert server.requests == [None, f"bytes={5 << 16}-"]
    server.requests.clear()
    server.breaks = [5 << 16] + [0] * downloading.TRIES
    with pytest.raises(EncoreError):
        download(remote(server.url), tmp_path / "again.bin", pause=0)
    server.content, server.version = bytes(len(CONTENT)), {"Last-Modified": "Sat, 21 Nov 2026 13:00:00 GMT"}
    download(remote(server.url, digest=None), tmp_path / "again.bin", pause=0)
    assert (tmp_path / "again.bin").read_bytes() == server.content, "none of the older version is in it"


def test_a_server_that_names_no_version_begins_anew(server, tmp_path):
    server.version, server.breaks = {}, [5 << 16]
    download(remote(server.url), tmp_path / "file.bin", pause=0)
    assert server.requests == [None, None]
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_part_that_is_whole_needs_no_byte_more(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    (tmp_path / "file.bin.part.json").write_text('{"version": "\\"one\\""}')
    download(remote(server.url), tmp_path / "file.bin")
    assert server.requests == [f"bytes={len(CONTENT)}-"]
    assert left(tmp_path) == ["file.bin"]


def test_a_wrong_digest_leaves_nothing(server, tmp_path):
    with pytest.raises(EncoreError, match=rf"{server.url}.*md5:{'0' * 32} is published.*https://example.org/terms"):
        download(remote(server.url, digest=f"md5:{'0' * 32}"), tmp_path / "file.bin")
    assert not (tmp_path / "file.bin").exists()
    assert not (tmp_path / "file.bin.part").exists()


def test_a_file_that_a_user_put_there_is_checked_and_kept(server, tmp_path):
    (tmp_path / "file.bin").write_bytes(CONTENT[:-1])
    with pytest.raises(EncoreError, match="has the digest sha256:"):
        download(remote(server.url), tmp_path / "file.bin")
    assert left(tmp_path) == ["file.bin"]
    assert server.requests == []


def test_what_cannot_be_downloaded_says_how_to_get_it(tmp_path):
    form = remote(None, name="file.bin", access="fill in the form")
    with pytest.raises(EncoreError, match=r"file\.bin cannot be downloaded: fill in the form .*example\.org/terms"):
        download(form, tmp_path / "file.bin")
    (tmp_path / "file.bin").write_bytes(CONTENT)
    download(form, tmp_path / "file.bin")


def test_md5_is_checked_too(server, tmp_path):
    right = "md5:" + hashlib.md5(CONTENT).hexdigest()
    download(remote(server.url, digest=right), tmp_path / "file.bin")
    assert digest_of(tmp_path / "file.bin", "md5") == right


def test_a_short_file_is_refused(server, tmp_path):
    with pytest.raises(EncoreError, match=f"has {len(CONTENT)} of {len(CONTENT) + 1} bytes"):
        download(remote(server.url, digest=None, bytes=len(CONTENT) + 1), tmp_path / "file.bin")
    assert not (tmp_path / "file.bin").exists()


def test_every_request_names_the_program_its_version_and_its_address(server, tmp_path):
    server.breaks = [5 << 16]
    download(remote(server.url), tmp_path / "file.bin", pause=0)
    assert len(server.requests) == 2
    assert server.agents == {f"encore/{__version__} (+{HOME})"}
    assert HOME.startswith("https://")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "a password"),
        (403, "not given to everybody"),
        (404, "has moved or was removed"),
        (409, "closed public access"),
        (410, "was removed"),
        (451, "legal reasons"),
    ],
)
def test_a_refusal_has_its_own_words_and_says_where_to_look(server, tmp_path, status, words):
    server.status = status
    says = rf"answers {status} .*{words}.*https://example.org/terms.*config/sources.yaml"
    with pytest.raises(EncoreError, match=says):
        download(remote(server.url), tmp_path / "file.bin")
    assert len(server.requests) == 1
    assert left(tmp_path) == []


@pytest.mark.parametrize("page", [b"<!DOCTYPE html><title>Moved</title>", b"\n<html>please log in</html>"])
@pytest.mark.parametrize("digest", [None, "sha256:" + "0" * 64])
def test_a_web_page_in_place_of_a_file_is_no_file(server, tmp_path, page, digest):
    server.content = page  # what a server answers, with 200, after the address of a file that has moved
    with pytest.raises(
        EncoreError, match=r"a web page came in place of the file.*example\.org/terms.*`url:`"
    ) as refused:
        download(remote(server.url, digest=digest), tmp_path / "file.bin")
    assert "\n" not in str(refused.value)
    assert left(tmp_path) == []


def test_a_server_in_trouble_is_tried_again(server, tmp_path):
    server.status = 503
    with pytest.raises(EncoreError, match="503 Service Unavailable"):
        download(remote(server.url), tmp_path / "file.bin", pause=0)
    assert len(server.requests) == downloading.TRIES


def test_a_server_that_asks_to_wait_a_little_is_waited_for(server, tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(downloading.time, "sleep", waited.append)
    server.status, server.retry_after = 429, ["7", "Wed, 21 Oct 2015 07:28:00 GMT"]
    download(remote(server.url), tmp_path / "file.bin")
    assert waited == [7, 0]


@pytest.mark.parametrize(("asks", "says"), [("7200", "in 120 minutes"), ("soon", "later")])
def test_a_server_that_asks_to_wait_for_long_is_a_refusal(server, tmp_path, asks, says):
    server.status, server.retry_after = 429, [asks, asks]
    with pytest.raises(EncoreError, match=rf"answers 429 Too Many Requests: .*run the same command again {says}"):
        download(remote(server.url), tmp_path / "file.bin")
    assert len(server.requests) == 1


@pytest.fixture
def other():
    one = Server()
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.mark.parametrize("fault", [{"status": 409}, {"content": CONTENT[::-1]}, {"content": b"<html>moved</html>"}])
def test_a_second_address_is_tried_where_the_first_gives_no_such_file(server, other, tmp_path, capsys, fault):
    vars(server).update(fault)
    download(remote(None, urls=[server.url, other.url], name="file.bin"), tmp_path / "file.bin", pause=0)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert f"trying {other.url}" in capsys.readouterr().out
    assert left(tmp_path) == ["file.bin"]


def test_the_first_refusal_is_told_with_the_other_addresses(server, other, tmp_path):
    server.status, other.status = 409, 404
    with pytest.raises(EncoreError, match=rf"{server.url} answers 409 .*; nor does it come from {other.url}$"):
        download(remote(None, urls=[server.url, other.url], name="file.bin"), tmp_path / "file.bin")


def test_a_part_goes_on_at_the_address_that_it_came_from(server, other, tmp_path):
    server.status = 404
    other.breaks = [6 << 16] + [0] * downloading.TRIES
    both = remote(None, urls=[server.url, other.url], name="file.bin")
    with pytest.raises(EncoreError):
        download(both, tmp_path / "file.bin", pause=0)
    server.status, asked = 200, len(server.requests)
    download(both, tmp_path / "file.bin", pause=0)
    assert other.requests[-1] == f"bytes={6 << 16}-"
    assert len(server.requests) == asked


def test_a_disk_without_room_is_said_before_the_first_byte(server, tmp_path, monkeypatch):
    usage = namedtuple("Usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1, 1, downloading.SPARE))
    with pytest.raises(EncoreError, match=r"needs 1 MB more and the disk has 67 MB free"):
        download(remote(server.url), tmp_path / "file.bin")
    assert not (tmp_path / "file.bin.part").exists()


def test_a_disk_that_fills_up_keeps_the_part(server, tmp_path, monkeypatch):
    def full(self, size=1):
        yield CONTENT[:1000]
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("requests.Response.iter_content", full)
    with pytest.raises(EncoreError, match=r"cannot write .*file\.bin\.part: No space left.*make room"):
        download(remote(server.url), tmp_path / "file.bin")
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENT[:1000]


def test_a_mirror_on_this_machine_is_copied(tmp_path):
    (tmp_path / "mirror.bin").write_bytes(CONTENT)
    download(remote((tmp_path / "mirror.bin").as_uri()), tmp_path / "data" / "file.bin")
    assert (tmp_path / "data/file.bin").read_bytes() == CONTENT
    with pytest.raises(EncoreError, match="there is no such file"):
        download(remote((tmp_path / "none.bin").as_uri()), tmp_path / "data" / "none.bin")


@pytest.mark.parametrize(
    "wrong",
    [
        {"digest": "abc"},
        {"url": "ftp://example.org/x"},
        {"bytes": 0},
        {"url": None},
        {"name": "../x"},
        {"urls": ["https://example.org/y"]},
        {"no_digest": "nobody prints one"},
    ],
)
def test_an_entry_is_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        remote(**{"url": "https://example.org/x", **wrong})


@pytest.mark.parametrize("length", ["many", "-5", "1e6", "", "9" * 40])
def test_a_length_that_is_no_number_is_one_line(server, tmp_path, length):
    server.headers = {"Content-Length": length}
    with pytest.raises(EncoreError, match=r"says that its length is '.*put the file at|does not answer") as refused:
        download(remote(server.url, digest=None), tmp_path / "file.bin", pause=0)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "file.bin").exists()


@pytest.mark.parametrize("status", [201, 202, 204, 206])
def test_an_answer_without_the_file_is_not_the_file(server, tmp_path, status):
    server.status = status
    with pytest.raises(EncoreError, match=rf"answers {status} |sent another part") as refused:
        download(remote(server.url, digest=None), tmp_path / "file.bin", pause=0)
    assert "\n" not in str(refused.value)
    assert left(tmp_path) == []


@pytest.mark.parametrize("status", [299, 599, 999])
def test_a_status_that_nobody_has_defined_is_one_line(server, tmp_path, status):
    server.status = status
    with pytest.raises(EncoreError, match=f"{status} of its own making"):
        download(remote(server.url), tmp_path / "file.bin", pause=0)
    assert left(tmp_path) == []


def test_an_empty_file_is_no_file(server, tmp_path):
    server.content, server.version = b"", {}
    server.status = 200
    server.answer = lambda request: (
        request.send_response(200),
        request.send_header("Content-Length", "0"),
        request.end_headers(),
    )
    with pytest.raises(EncoreError, match=r"file\.bin, http.* is empty; see https://example\.org/terms"):
        download(remote(server.url, digest=None), tmp_path / "file.bin", pause=0)
    assert left(tmp_path) == []


def test_a_file_of_unknown_length_needs_a_digest_or_a_length(server, tmp_path):
    server.headers, server.breaks = {}, [1000]  # cut, and nothing says so
    with pytest.raises(EncoreError, match=r"does not say how long the file is.*add `digest:` or `bytes:`"):
        download(remote(server.url, digest=None), tmp_path / "file.bin", pause=0)
    assert not (tmp_path / "file.bin").exists()
    server.breaks = []
    download(remote(server.url, digest=None, bytes=len(CONTENT)), tmp_path / "file.bin", pause=0)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    server.requests.clear()
    download(remote(server.url), tmp_path / "other.bin", pause=0)
    assert (tmp_path / "other.bin").read_bytes() == CONTENT


def test_more_than_is_published_is_refused(server, tmp_path):
    with pytest.raises(EncoreError, match=rf"{len(CONTENT)} bytes came, 1000 are published"):
        download(remote(server.url, digest=None, bytes=1000), tmp_path / "file.bin", pause=0)
    assert left(tmp_path) == []


@pytest.mark.parametrize("begin", ["bytes 5-1048575/1048576", "lines 1-2/3", "bytes 99999999999999999999-1/2", None])
def test_another_part_than_was_asked_for_is_never_joined(server, tmp_path, begin):
    server.breaks = [6 << 16] + [0] * downloading.TRIES
    with pytest.raises(EncoreError):
        download(remote(server.url, digest=None), tmp_path / "file.bin", pause=0)
    server.headers = {"Content-Length": str(len(CONTENT) - (6 << 16))} | ({"Content-Range": begin} if begin else {})
    original = server.answer

    def answer(request):
        if not request.headers.get("Range"):
            server.headers = None
        original(request)

    server.answer = answer
    download(remote(server.url, digest=None), tmp_path / "file.bin", pause=0)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("note", ["[]", "[" * 100_000, '{"version": 5}', '{"version": "a\\nb"}', "\udcff"])
def test_a_damaged_note_on_a_part_begins_anew(server, tmp_path, note):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:1000])
    (tmp_path / "file.bin.part.json").write_bytes(note.encode(errors="surrogateescape"))
    download(remote(server.url), tmp_path / "file.bin", pause=0)
    assert server.requests == [None]
    assert left(tmp_path) == ["file.bin"]


def test_what_the_disk_says_is_one_line(server, tmp_path):
    target = tmp_path / "taken" / "file.bin"
    (tmp_path / "taken").write_text("a file, and no folder")
    with pytest.raises(EncoreError, match=r"taken.*: (File exists|Not a directory).*make the folder"):
        download(remote(server.url), target)


@pytest.mark.parametrize("record", ["[]", "{", "[" * 100_000, "\udcff"])
def test_a_damaged_record_of_first_downloads_is_one_line(tmp_path, record):
    (tmp_path / TRUSTED).write_bytes(record.encode(errors="surrogateescape"))
    (tmp_path / "file.bin").write_bytes(CONTENT)
    with pytest.raises(EncoreError, match=r"trusted\.json is not a JSON object .*remove it to trust again") as refused:
        trust(tmp_path / "file.bin", "sha256:0", tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://example.org/..", "https://example.org/"])
def test_a_name_of_no_file_is_refused(url):
    with pytest.raises(ValueError, match="ends without a file's name"):
        remote(url)
