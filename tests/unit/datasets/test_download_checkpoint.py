"""Checkpoints come whole, of one commit, with the published digests; what is there already needs no network."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from encore.datasets.download import checkpoint, download
from encore.datasets.download.checkpoint import fetch
from encore.errors import EncoreError
from encore.models import checkpoint as model_folder
from encore.storage import manifest
from encore.storage.files import sha256
from encore.storage.release import HOME, __version__
from tests.support import inside
from tests.support.small_adapters import adapter
from tests.support.small_checkpoints import bert
from tests.support.small_hub import COMMIT, Hub
from tests.support.small_models import tokenizer_folder

READ = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What somebody has published: a BERT with its tokenizer, and files that nobody reads."""
    place = tmp_path_factory.mktemp("published")
    bert(place, pieces=93)
    tokenizer_folder(place)
    shutil.copyfile(place / "model.safetensors", place / "pytorch_model.bin")
    (place / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    return place


@pytest.fixture
def hub(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    one = Hub(published)
    monkeypatch.setenv("HF_ENDPOINT", one.url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(download, "RETRIES", download.RETRIES.new(backoff_factor=0))
    yield one
    one.close()


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_the_files_that_are_read_come_once_after_the_terms(
    hub: Hub, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = fetch("someone/bert", None, tmp_path / "data", tmp_path / "made")
    said = capsys.readouterr().out
    assert said.index("licence: apache-2.0") < said.index("config.json")
    assert "terms: https://huggingface.co/someone/bert" in said
    assert f"no commit is pinned; this one, the newest when it was asked for, is kept: `revision: {COMMIT}`" in said
    assert names(tmp_path / "made") == READ
    assert found["commit"] == COMMIT
    assert found["files"]["model.safetensors"]["digest"] == f"sha256:{sha256(published / 'model.safetensors')}"
    assert len(hub.requests) == 1 + len(READ)
    trusted = json.loads((tmp_path / "data" / "trusted.json").read_text())
    assert "checkpoints/someone--bert/config.json" in trusted
    hub.close()
    again = fetch("someone/bert", None, tmp_path / "data", tmp_path / "again")
    assert again == found


def test_an_interrupted_download_goes_on_at_its_commit_though_the_model_was_replaced(hub: Hub, tmp_path: Path) -> None:
    hub.breaks = [4000]
    with pytest.raises(EncoreError, match=r"run the same command again.*model\.safetensors"):
        fetch("someone/bert", None, tmp_path / "data", tmp_path / "made")
    assert not (tmp_path / "made").exists()
    hub.requests.clear()
    found = fetch("someone/bert", None, tmp_path / "data", tmp_path / "made")
    assert found["commit"] == COMMIT
    assert not [path for path in hub.requests if path.startswith("/api/")], "asked once"
    assert sha256(tmp_path / "made" / "model.safetensors") == sha256(hub.folder / "model.safetensors")


def test_a_pinned_commit_is_what_is_asked_for(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fetch("someone/bert", COMMIT, tmp_path / "data", tmp_path / "made")
    assert hub.requests[0] == f"/api/models/someone/bert/revision/{COMMIT}"
    assert (tmp_path / "data" / "checkpoints" / f"someone--bert@{COMMIT}").is_dir()
    assert "no commit is pinned" not in capsys.readouterr().out
    with pytest.raises(EncoreError, match=r"does not list someone/bert at 0{40} \(.*404.*\); correct .*revision"):
        fetch("someone/bert", "0" * 40, tmp_path / "data", tmp_path / "other")


def test_nothing_is_told_of_the_machine_and_nothing_written_elsewhere(hub: Hub, tmp_path: Path) -> None:
    """With a token in the home folder, which stays there."""
    token = tmp_path / "home/.cache/huggingface/token"
    token.parent.mkdir(parents=True)
    token.write_text("hf_secret")
    code = "import sys; from pathlib import Path; from encore.datasets.download.checkpoint import fetch; "
    code += f"fetch('someone/bert', {COMMIT!r}, Path('data'), Path('made')); print('torch' in sys.modules)"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "XDG_"))}
    environment = kept | {"HOME": str(tmp_path / "home"), "HF_ENDPOINT": hub.url}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
    assert done.stderr == ""
    assert hub.agents == {f"encore/{__version__} (+{HOME})"}, "the listing's and the files'"
    assert hub.secrets == {None}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "home", "made"]
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file()] == [token]


def test_other_bytes_than_the_published_are_refused_and_removed(hub: Hub, tmp_path: Path) -> None:
    hub.damaged = True
    with pytest.raises(EncoreError, match=r"model\.safetensors.*has the digest sha256:.* is published"):
        fetch("someone/bert", None, tmp_path / "data", tmp_path / "made")
    assert not (tmp_path / "made").exists()
    assert "model.safetensors" not in names(tmp_path / "data" / "checkpoints" / "someone--bert")


def test_a_file_that_changed_after_the_first_is_refused(hub: Hub, tmp_path: Path) -> None:
    fetch("someone/bert", None, tmp_path / "data", tmp_path / "made")
    vocabulary = tmp_path / "data" / "checkpoints" / "someone--bert" / "vocab.txt"
    size = vocabulary.stat().st_size
    vocabulary.unlink()
    vocabulary.write_text("x" * size)
    with pytest.raises(EncoreError, match=r"vocab\.txt has the digest .* came first"):
        fetch("someone/bert", None, tmp_path / "data", tmp_path / "again")


def test_files_that_a_user_put_there_need_no_network(hub: Hub, published: Path, tmp_path: Path) -> None:
    hub.close()
    place = tmp_path / "data" / "checkpoints" / "someone--bert"
    shutil.copytree(published, place)
    found = fetch("someone/bert", None, tmp_path / "data", tmp_path / "made")
    assert (found["commit"], names(tmp_path / "made")) == (None, READ)
    assert names(place) == names(published), "nothing is added to a user's folder"


def test_an_adapter_comes_with_its_base_and_both_are_recorded(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adapter(tmp_path / "adapter", "someone/bert", {"encoder.layer.0.output.dense": (8, 16)}, revision=COMMIT)
    (tmp_path / "adapter/vocab.txt").write_text("of its own")
    hub.others = {"someone/adapter": tmp_path / "adapter"}
    found = fetch("someone/adapter", None, tmp_path / "data", tmp_path / "made")
    assert names(tmp_path / "made" / "encore-adapter") == ["adapter_config.json", "adapter_model.safetensors"]
    assert names(tmp_path / "made") == ["config.json", "encore-adapter", "model.safetensors", "vocab.txt"]
    assert (tmp_path / "made/vocab.txt").read_text() == "of its own"
    assert (found["commit"], found["base"]) == (COMMIT, {"id": "someone/bert", "commit": COMMIT})
    for name, each in found["files"].items():
        assert each["digest"] == f"sha256:{sha256(tmp_path / 'made' / name)}"
    assert (tmp_path / "data" / "checkpoints" / f"someone--bert@{COMMIT}").is_dir()
    assert capsys.readouterr().out.count("licence: apache-2.0") == 2, "each has its own"
    hub.close()
    assert fetch("someone/adapter", None, tmp_path / "data", tmp_path / "again") == found


@pytest.mark.parametrize(
    ("asked", "lacking", "says"),
    [
        ("no-one/bert", [], r"does not list no-one/bert at main \(.*404.*checkpoints/no-one--bert$"),
        ("someone/bert", ["config.json"], r"someone/bert, .* lacks config\.json"),
        ("someone/bert", ["model.safetensors", "pytorch_model.bin"], "lacks weights;"),
        ("someone/bert", ["tokenizer.json", "vocab.txt"], "lacks a vocabulary"),
    ],
)
def test_what_the_hub_has_not_is_one_line(
    asked: str, lacking: list[str], says: str, hub: Hub, published: Path, tmp_path: Path
) -> None:
    hub.folder = tmp_path / "poorer"
    shutil.copytree(published, hub.folder)
    for name in lacking:
        (hub.folder / name).unlink()
    with pytest.raises(EncoreError, match=says) as caught:
        fetch(asked, None, tmp_path / "data", tmp_path / "made")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists(), "nothing half-written"


def test_no_network_is_one_line_that_says_where_the_files_go(hub: Hub, tmp_path: Path) -> None:
    hub.close()
    with pytest.raises(EncoreError, match=r"does not list .*login node.*checkpoints/someone--bert") as caught:
        fetch("someone/bert", None, tmp_path / "data", tmp_path / "made")
    assert "\n" not in str(caught.value)


def test_a_damaged_note_of_what_the_hub_said_is_one_line(hub: Hub, tmp_path: Path) -> None:
    place = tmp_path / "data" / "checkpoints" / "someone--bert"
    place.mkdir(parents=True)
    (place / checkpoint.PUBLISHED).write_text("{")
    with pytest.raises(EncoreError, match=r"published\.json is not a JSON object.*remove it"):
        fetch("someone/bert", None, tmp_path / "data", tmp_path / "made")


def test_the_programs_make_a_model_that_answers_as_it_is(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetched, then without a network: its vocabulary, and a model that says how many tokens it reads."""
    spec = {"id": "someone/bert", "revision": None}
    inside.made("fetch_checkpoint", spec, {}, "made/manifest.json")
    hub.close()
    inside.made("tokenizer", {}, {"checkpoint": "made"}, "words")
    fields = {"start": "checkpoint", "layers": 2, "hidden": 8, "heads": 2, "intermediate": 16, "max_length": 20}
    fields |= {"pooling": "content", "query_marker": "[Q]", "passage_marker": "[D]", "separator": False}
    fields |= {"augment": True, "length": 16, "query_length": 9}
    start = {"backbone": fields, "seed": 0, "numerics": {}}
    inside.made("start", start, {"tokenizer": "words", "checkpoint": "made"}, "model")
    use = model_folder.load_use(Path("model"))
    assert (use.length, use.query_length) == (16, 9)
    assert manifest.read_manifest(Path("model"))["inputs"].keys() == {"made/manifest.json", "words/manifest.json"}
    assert manifest.read_manifest(Path("made"))["results"]["commit"] == COMMIT


def test_a_users_folder_that_changed_since_the_plan_is_refused(published: Path, tmp_path: Path) -> None:
    done = inside.make(
        "tokenizer", {"content": {"config.json": "other"}}, {}, tmp_path / "words", source=str(published)
    )
    assert done.returncode == 1
    assert re.search("is not what was planned with.*run snakemake again", done.stderr)
