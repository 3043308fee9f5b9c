"""``encore preflight --fetch-check``: what each address says today, before hours of downloads."""

import json
from pathlib import Path
from typing import Any

import pytest

from encore.commands.preflight import fetch_check as checking
from encore.commands.preflight.fetch_check import Address, answer_of, check_json, check_text, fetch_check, without
from encore.config.sources import SourceEntry
from encore.plan.artifact import Artifact
from encore.plan.artifacts.collections import fetched_source
from encore.storage.release import HOME, __version__
from tests.support.server import CONTENT, Server
from tests.support.small_forecast import planned


def test_each_address_of_a_source_is_asked_and_nothing_is_fetched(bare: Path, server: Server) -> None:
    plan = planned()
    files = [{"urls": [server.url, "http://127.0.0.1:9/file.bin"], "no_digest": "nobody prints one"}]
    files += [
        {"url": "http://127.0.0.1:9/gone.bin", "digest": "md5:" + "0" * 32},
        {"name": "own", "access": "bring it"},
    ]
    plan.catalogue.sources["squad"] = SourceEntry.model_validate({"licence": "", "terms": "", "files": files})
    answers = fetch_check(plan, [str(fetched_source(plan, "squad").manifest)])
    assert [each.gives for each in answers] == [True, False, False, False]
    assert without(answers) == ["squad/gone.bin", "squad/own"], "a file that one of its addresses gives is had"
    lines = check_text(answers).splitlines()
    first = [cell.strip() for cell in lines[1].split("  ") if cell]
    assert first == ["squad/file.bin", "the first", "200 OK, 1.0 MB", server.url]
    assert lines[-1] == "2 of 3 files cannot be had: squad/gone.bin, squad/own"
    assert json.loads(json.dumps(check_json(answers)))[0]["held_to"] == "the first: nobody prints one"
    assert server.agents == {f"encore/{__version__} (+{HOME})"}
    assert not Path("data").exists()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"status": 409}, "409 Conflict"),
        ({"version": {"Content-Type": "text/html; charset=utf-8"}}, "a web page in place of the file"),
        ({"content": CONTENT[1:]}, "1,048,575 bytes, and 1,048,576 are published"),
    ],
)
def test_what_is_no_such_file_is_said(server: Server, fault: dict[str, Any], words: str) -> None:
    vars(server).update(fault)
    answer = answer_of(Address("file.bin", server.url, "md5:0", len(CONTENT)))
    assert (answer.gives, answer.words) == (False, words)


def test_ir_datasets_files_are_asked_at_the_library_s_address_and_copies(bare: Path) -> None:
    ids = ["beir/fiqa", "msmarco-passage/trec-dl-2019/judged"]
    made = Artifact("fetch_ir_datasets", "results/ir_datasets/mine-00000000", {"ids": ids})
    asked = {each.url for each in checking._addresses(planned(), made)}
    assert "https://github.com/xhluca/bm25s/releases/download/data/fiqa.zip" in asked
    assert "https://mirror.ir-datasets.com/2f4be390198da108f6845c822e5ada14" in asked
    assert all(url.startswith("https://") for url in asked)


@pytest.mark.parametrize(("revision", "asked"), [(None, "main"), ("1" * 40, "1" * 40)])
def test_a_checkpoint_is_asked_for_at_its_commit(bare: Path, revision: str | None, asked: str) -> None:
    spec = {"id": "someone/bert", "revision": revision}
    made = Artifact("fetch_checkpoint", "results/checkpoints/someone--bert-00000000", spec)
    (one,) = checking._addresses(planned(), made)
    assert one.url == f"https://huggingface.co/someone/bert/resolve/{asked}/config.json"
    assert ("no commit is pinned" in one.held_to) == (revision is None)
