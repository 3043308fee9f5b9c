"""Sources: terms first, files that a user brought, trust on first use, and the plan of what is fetched."""

import errno
import gzip
import hashlib
import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest
import yaml

from encore.config.sources import SourceEntry
from encore.datasets.download.source import fetch
from encore.errors import EncoreError
from encore.plan import folders
from encore.plan.artifacts.collections import fetched_ir_datasets, fetched_source
from encore.products.catalogue import load_catalogue, load_plan
from tests.support import inside

ROOT = Path(__file__).parents[3]
SOURCES = load_catalogue(ROOT / "config").sources


def source(*files, **fields):
    return SourceEntry.model_validate(
        {"licence": "free", "terms": "https://example.org/terms", "files": list(files), **fields}
    )


def sha256(path):
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def web(tmp_path):
    """Two published files."""
    (tmp_path / "web").mkdir()
    (tmp_path / "web/list.tsv").write_text("1\tone\n")
    with zipfile.ZipFile(tmp_path / "web/set.zip", "w") as archive:
        archive.writestr("set/corpus.jsonl", "{}")
        archive.writestr("set/other.txt", "not wanted")
    return tmp_path / "web"


def entry(web, name="list.tsv", **fields):
    return {"url": (web / name).as_uri(), **fields}


def test_files_of_a_source_are_unpacked_together_after_its_terms(web, tmp_path, capsys):
    both = source(entry(web), entry(web, "set.zip", unpack="zip", members=["set/corpus.jsonl"]))
    found = fetch("both", both, tmp_path / "data", tmp_path / "out")
    files = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert files == ["list.tsv", "set/corpus.jsonl"]
    assert sorted(path.name for path in (tmp_path / "data/both").iterdir()) == ["list.tsv", "set.zip"]
    assert found["list.tsv"] == {"digest": sha256(web / "list.tsv"), "bytes": 6}
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["both: licence: free", "both: terms: https://example.org/terms"]
    assert "list.tsv" in said[2]


def test_a_file_that_a_user_brought_needs_no_network(web, tmp_path):
    (tmp_path / "data/own").mkdir(parents=True)
    shutil.copy(web / "list.tsv", tmp_path / "data/own/list.tsv")
    away = source({"url": "http://127.0.0.1:9/list.tsv", "digest": sha256(web / "list.tsv")})
    fetch("own", away, tmp_path / "data", tmp_path / "out")
    assert (tmp_path / "out/list.tsv").read_text() == "1\tone\n"
    (tmp_path / "data/own/list.tsv").write_text("another")
    with pytest.raises(EncoreError, match="has the digest sha256:"):
        fetch("own", away, tmp_path / "data", tmp_path / "out")
    assert (tmp_path / "data/own/list.tsv").exists()


def test_what_came_first_is_held_to(web, tmp_path):
    one = source(entry(web))
    fetch("one", one, tmp_path / "data", tmp_path / "out")
    first = sha256(web / "list.tsv")
    assert json.loads((tmp_path / "data/trusted.json").read_text()) == {"one/list.tsv": first}
    (tmp_path / "data/one/list.tsv").unlink()
    fetch("one", one, tmp_path / "data", tmp_path / "out")
    (tmp_path / "data/one/list.tsv").unlink()
    (web / "list.tsv").write_text("1\tanother\n")
    with pytest.raises(EncoreError, match=rf"{first} came first \(.*trusted\.json\); see https://example\.org/terms"):
        fetch("one", one, tmp_path / "data", tmp_path / "out")
    assert not (tmp_path / "data/one/list.tsv").exists()
    (tmp_path / "data/trusted.json").unlink()
    fetch("one", one, tmp_path / "data", tmp_path / "out")


@pytest.mark.parametrize("record", ["{", "[]"])
def test_a_damaged_record_of_trust_is_said_so(web, tmp_path, record):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/trusted.json").write_text(record)
    with pytest.raises(EncoreError, match=r"trusted\.json .*fix it"):
        fetch("one", source(entry(web)), tmp_path / "data", tmp_path / "out")


def test_what_cannot_be_unpacked_is_not_held_to(web, tmp_path):
    (web / "list.gz").write_bytes(b"cut")
    one = source(entry(web, "list.gz", unpack="gz"))
    with pytest.raises(EncoreError, match=r"list\.gz is not a gz archive or is damaged .*remove it and fetch it again"):
        fetch("one", one, tmp_path / "data", tmp_path / "out")
    assert not (tmp_path / "data/trusted.json").exists()
    (tmp_path / "data/one/list.gz").unlink()
    (web / "list.gz").write_bytes(gzip.compress(b"1\tone\n"))
    fetch("one", one, tmp_path / "data", tmp_path / "out")
    assert (tmp_path / "out/list").read_bytes() == b"1\tone\n"


@pytest.mark.parametrize("known", [True, False])
def test_a_data_root_that_can_only_be_read_is_used(web, tmp_path, monkeypatch, capsys, known):
    away = source({"url": "http://127.0.0.1:9/list.tsv"})  # no digest is published, and no network is there
    (tmp_path / "data/own").mkdir(parents=True)
    shutil.copy(web / "list.tsv", tmp_path / "data/own/list.tsv")
    if known:
        fetch("own", away, tmp_path / "data", tmp_path / "out")
    capsys.readouterr()
    os_open = os.open

    def read_only(path, flags, *arguments, **named):
        if flags & (os.O_WRONLY | os.O_RDWR) and Path(path).is_relative_to(tmp_path / "data"):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return os_open(path, flags, *arguments, **named)

    monkeypatch.setattr(os, "open", read_only)
    found = fetch("own", away, tmp_path / "data", tmp_path / "out")
    assert found["list.tsv"]["digest"] == sha256(web / "list.tsv")
    assert ("can only be read" in capsys.readouterr().out) is not known
    assert (tmp_path / "data/trusted.json").exists() is known


def test_a_published_digest_needs_no_trust(web, tmp_path):
    fetch("one", source(entry(web, digest=sha256(web / "list.tsv"))), tmp_path / "data", tmp_path / "out")
    assert not (tmp_path / "data/trusted.json").exists()


def test_two_files_that_hold_one_name_are_refused(web, tmp_path):
    shutil.copy(web / "set.zip", web / "again.zip")
    both = source(entry(web, "set.zip", unpack="zip"), entry(web, "again.zip", unpack="zip"))
    with pytest.raises(EncoreError, match=r"again\.zip holds set/corpus\.jsonl, which is there from another file"):
        fetch("both", both, tmp_path / "data", tmp_path / "out")
    fetch("both", source(entry(web, "set.zip", unpack="zip")), tmp_path / "data", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out/set").iterdir()) == ["corpus.jsonl", "other.txt"]


def test_a_name_stands_once_in_a_source(web):
    with pytest.raises(ValueError, match="two files have one name"):
        source(entry(web), entry(web))


def test_a_moved_address_is_the_same_folder():
    one, other = (source({"url": f"https://{host}/x.gz"}) for host in ("a.org", "b.org/y"))
    assert one.identity() == other.identity()
    assert one.identity() != source({"url": "https://a.org/x.gz", "unpack": "gz"}).identity()
    assert one.identity() != source({"url": "https://a.org/y.gz"}).identity()


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_has_what_a_user_must_know(name):
    entry = SOURCES[name]
    assert entry.licence
    assert entry.terms.startswith("https://")
    assert entry.source
    assert all(each.urls or each.access for each in entry.files)
    assert all(url.startswith("https://") for each in entry.files for url in each.urls)
    assert all(bool(each.digest) != bool(each.no_digest) for each in entry.files)


def test_the_plan_knows_a_source_by_its_folder(monkeypatch):
    monkeypatch.chdir(ROOT)
    plan = load_plan(ROOT / "config/nano.yaml")
    folder = fetched_source(load_plan(ROOT / "config/nano.yaml"), "squad").folder
    assert plan.find(folder).stage == "fetch_source"
    downloads = fetched_ir_datasets(load_plan(ROOT / "config/nano.yaml"), "beir-fiqa").folder
    assert plan.find(downloads).spec["ids"] == ["beir/fiqa", "beir/fiqa/test"]
    with pytest.raises(EncoreError, match=r"'squat' is not in sources\.yaml; did you mean squad"):
        fetched_source(plan, "squat")


def test_where_data_lie_changes_no_folder(monkeypatch):
    monkeypatch.chdir(ROOT)
    run = yaml.safe_load((ROOT / "config/nano.yaml").read_text())
    run["execution"]["data_root"] = "/elsewhere"
    one, other = load_plan(ROOT / "config/nano.yaml"), load_plan(ROOT / "config/nano.yaml", run)
    assert one.collection("beir-fiqa").folder == other.collection("beir-fiqa").folder


def test_the_program_fetches_an_entry(tmp_path, monkeypatch):
    """Of the catalogue, with a file that a user brought; the terms come first."""
    plan = load_plan(ROOT / "config/nano.yaml")
    made = fetched_source(plan, "bookcorpus")
    monkeypatch.setenv("ENCORE_DATA_ROOT", str(tmp_path / "data"))
    done = inside.make(made.stage, made.spec, {}, tmp_path / made.name, details=made.details)
    assert done.returncode == 1
    assert done.stdout.startswith("bookcorpus: licence: ")
    assert "bookcorpus.txt.gz cannot be downloaded: BookCorpus was withdrawn" in done.stderr
    assert not (tmp_path / made.name / "manifest.json").exists()
    (tmp_path / "data/bookcorpus/bookcorpus.txt.gz").write_bytes(gzip.compress(b"A sentence.\n"))
    inside.made(made.stage, made.spec, {}, tmp_path / made.name, details=made.details)
    assert (tmp_path / made.name / "bookcorpus.txt").read_text() == "A sentence.\n"
    manifest = json.loads((tmp_path / made.name / "manifest.json").read_text())
    assert list(manifest["outputs"]) == ["bookcorpus.txt"]
    assert list(manifest["results"]["files"]) == ["bookcorpus.txt.gz"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("msmarco-titls", "msmarco-titles"), ("beir-fiqaa", "beir-fiqa"), ("bert-bse", None), ("bm24", None)],
)
def test_a_misspelt_source_or_dataset_has_its_own_nearest_names(name, meant):
    said = folders.misspelt(load_plan(ROOT / "config/nano.yaml"), name)
    wanted = f"{name!r} is not a source, dataset, backbone or system; did you mean {meant}"
    assert said is None if meant is None else said.startswith(wanted)
