"""Downloads: whole or not at all, resumed after a break, held to digests, and tried at other addresses."""

import errno
import hashlib
from typing import Any

import pytest
import urllib3

from encore.config.sources import Remote, digest_of
from encore.datasets.download import download as downloading
from encore.datasets.download.download import download
from encore.errors import EncoreError
from encore.storage.release import HOME, __version__
from tests.support.server import CONTENT, Server

BREAK = 6 << 16  # bytes; a multiple of what is written at once
KILLED = [BREAK, 0]  # a connection that breaks, and no byte when it is tried again
DATE = "Sat, 21 Nov 2026 12:00:00 GMT"
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(downloading, "RETRIES", downloading.RETRIES.new(backoff_factor=0))


@pytest.fixture
def other():
    one = Server()
    yield one
    one.server.shutdown()
    one.server.server_close()


def remote(url, **fields):
    digest = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
    return Remote.model_validate(
        {"url": url, "digest": digest, "licence": "none", "terms": "https://example.org/terms", **fields}
    )


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_fetched_once(server, tmp_path):
    for _ in range(2):
        download(remote(server.url, digest=MD5), tmp_path / "file.bin")
    assert digest_of(tmp_path / "file.bin", "md5") == MD5
    assert server.requests == [None]
    assert server.agents == {f"encore/{__version__} (+{HOME})"}
    assert left(tmp_path) == ["file.bin"]


def test_a_broken_connection_goes_on_where_it_broke(server, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(downloading, "SECONDS", 0.0)
    server.breaks = [5 << 16, 3 << 16]
    download(remote(server.url), tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.requests == [None, f"bytes={5 << 16}-", f"bytes={8 << 16}-"]
    said = capsys.readouterr().out
    assert said.count("the connection broke") == 2
    assert said.count(" of 1 MB, ") == 16, "a line for each piece, where lines are not ten seconds apart"


@pytest.mark.parametrize(
    "version", [{"ETag": '"one"'}, {"Last-Modified": DATE}, {"ETag": 'W/"1"', "Last-Modified": DATE}]
)
def test_a_killed_transfer_is_resumed_by_the_next_command(server, tmp_path, version):
    server.version, server.breaks = version, list(KILLED)
    with pytest.raises(EncoreError, match=r"does not answer .*run the same command again.*login node.*file\.bin$"):
        download(remote(server.url), tmp_path / "file.bin")
    assert left(tmp_path) == ["file.bin.part", "file.bin.part.json"]
    download(remote(server.url), tmp_path / "file.bin")
    assert server.requests[-1] == f"bytes={BREAK}-"
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert left(tmp_path) == ["file.bin"]


@pytest.mark.parametrize(
    "versions", [({"ETag": '"1"'}, {"ETag": '"2"'}), ({"Last-Modified": DATE}, {"ETag": '"2"'}), ({}, {})]
)
def test_two_versions_of_a_file_are_never_joined(server, tmp_path, versions):
    server.version, server.breaks = versions[0], list(KILLED)
    with pytest.raises(EncoreError):
        download(remote(server.url), tmp_path / "file.bin")
    server.content, server.version = bytes(len(CONTENT)), versions[1]
    download(remote(server.url, digest=None), tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == server.content


def test_a_part_that_is_whole_needs_no_byte_more(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    (tmp_path / "file.bin.part.json").write_text('{"version": "\\"one\\""}')
    download(remote(server.url), tmp_path / "file.bin")
    assert server.requests == [f"bytes={len(CONTENT)}-"]
    assert left(tmp_path) == ["file.bin"]


def test_another_part_than_was_requested_is_never_joined(server, tmp_path):
    server.breaks = list(KILLED)
    with pytest.raises(EncoreError):
        download(remote(server.url, digest=None), tmp_path / "file.bin")
    server.headers = {"Content-Range": "bytes 5-1048575/1048576", "Content-Length": str(len(CONTENT) - BREAK)}
    with pytest.raises(EncoreError, match="answers 206 "):
        download(remote(server.url, digest=None), tmp_path / "file.bin")
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENT[:BREAK]


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"status": 404}, {}, r"answers 404 Not Found, which is not the file.*example\.org/terms.*config/sources\.yaml"),
    ({"status": 503}, {}, "answers 503 Service Unavailable"),
    ({"status": 202}, {}, "answers 202 "),
    ({"status": 206}, {"digest": None}, "answers 206 "),
    ({"content": b"<!DOCTYPE html><title>Moved</title>"}, {"digest": None}, r"a web page .*example\.org/terms"),
    ({"content": b"\n<html>please log in</html>"}, {}, "a web page or nothing came in place of the file"),
    ({}, {"digest": f"md5:{'0' * 32}"}, f"has the digest {MD5}, md5:{'0' * 32} is published.*example"),
    ({}, {"digest": None, "bytes": len(CONTENT) + 1}, rf"{len(CONTENT)} bytes came, {len(CONTENT) + 1} are published"),
    ({"headers": {}}, {"digest": None}, r"does not say how long the file is.*add `digest:` or `bytes:`"),
]


@pytest.mark.parametrize(("fault", "fields", "says"), REFUSED)
def test_what_is_not_the_file_is_refused_and_leaves_nothing(server, tmp_path, fault, fields, says):
    vars(server).update(fault)
    with pytest.raises(EncoreError, match=says) as refused:
        download(remote(server.url, **fields), tmp_path / "file.bin")
    assert "\n" not in str(refused.value)
    assert left(tmp_path) == []
    assert len(server.requests) == (6 if fault.get("status") == 503 else 1), "a server in trouble is tried again"


def test_a_server_that_asks_to_wait_is_waited_for(server, tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(urllib3.util.retry.time, "sleep", waited.append)
    server.status, server.retry_after = 429, ["7", "7200"]
    download(remote(server.url), tmp_path / "file.bin")
    assert waited == [7, 60]


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


@pytest.mark.parametrize("fault", [{"status": 409}, {"content": CONTENT[::-1]}, {"content": b"<html>moved</html>"}])
def test_a_second_address_is_tried_where_the_first_gives_no_such_file(server, other, tmp_path, capsys, fault):
    vars(server).update(fault)
    download(remote(None, urls=[server.url, other.url], name="file.bin"), tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert f"trying {other.url}" in capsys.readouterr().out
    assert left(tmp_path) == ["file.bin"]


def test_the_first_refusal_is_told_with_the_other_addresses(server, other, tmp_path):
    server.status, other.status = 409, 404
    with pytest.raises(EncoreError, match=rf"{server.url} answers 409 .*; nor does it come from {other.url}$"):
        download(remote(None, urls=[server.url, other.url], name="file.bin"), tmp_path / "file.bin")


def test_a_part_goes_on_at_the_address_that_it_came_from(server, other, tmp_path):
    server.status, other.breaks = 404, list(KILLED)
    both = remote(None, urls=[server.url, other.url], name="file.bin")
    with pytest.raises(EncoreError):
        download(both, tmp_path / "file.bin")
    server.status, asked = 200, len(server.requests)
    download(both, tmp_path / "file.bin")
    assert other.requests[-1] == f"bytes={BREAK}-"
    assert len(server.requests) == asked


def test_a_disk_that_fills_up_keeps_the_part(server, tmp_path, monkeypatch):
    def full(self, size=1):
        yield CONTENT[:1000]
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("requests.Response.iter_content", full)
    with pytest.raises(OSError, match="No space left"):
        download(remote(server.url), tmp_path / "file.bin")
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENT[:1000]


def test_a_mirror_on_this_machine_is_copied(tmp_path):
    (tmp_path / "mirror.bin").write_bytes(CONTENT)
    download(remote((tmp_path / "mirror.bin").as_uri()), tmp_path / "data" / "file.bin")
    assert (tmp_path / "data/file.bin").read_bytes() == CONTENT
    with pytest.raises(EncoreError, match="there is no such file"):
        download(remote((tmp_path / "none.bin").as_uri()), tmp_path / "data" / "none.bin")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"digest": "abc"}, "digest"),
        ({"url": "ftp://example.org/x"}, "url"),
        ({"url": "https://example.org/.."}, "ends without a file's name"),
        ({"bytes": 0}, "bytes"),
        ({"url": None}, "url"),
        ({"name": "../x"}, "name"),
        ({"urls": ["https://example.org/y"]}, "urls"),
        ({"no_digest": "nobody prints one"}, "no_digest"),
    ],
)
def test_an_entry_is_checked(wrong, says):
    with pytest.raises(ValueError, match=says):
        remote(**{"url": "https://example.org/x", **wrong})
