"""The program that makes a start of a published checkpoint: what it says, what it notes, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from encore.config import checkpoints
from encore.storage import manifest
from encore.storage.files import sha256
from tests.support import inside
from tests.support.small_adapters import adapter
from tests.support.small_checkpoints import bert
from tests.support.small_models import tokenizer_folder

SHAPE = {"layers": 2, "hidden": 8, "heads": 2, "intermediate": 16, "max_length": 20}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's BERT with its tokenizer, and as an artifact too."""
    monkeypatch.chdir(tmp_path)
    bert(tmp_path / "own", pieces=93)
    tokenizer_folder(tmp_path / "own")
    with manifest.record(tmp_path / "words", stage="tokenizer", spec={}, inputs=[]):
        tokenizer_folder(tmp_path / "words")
    return Path("own")


def started(output: str, backbone: dict[str, Any], inputs: dict[str, str], source: str = "", **spec: Any) -> Any:
    """What the program says, and the results in its manifest."""
    given = {"backbone": backbone | SHAPE, "seed": 0, "numerics": {}, **spec}
    done = inside.make("start", given, {"tokenizer": "words", **inputs}, output, source=source)
    return (done.stdout, manifest.read_results(output)) if done.returncode == 0 else (done.stderr, {})


def test_each_value_of_a_checkpoint_is_said_with_its_file(own: Path) -> None:
    backbone = {"start": "checkpoint", "checkpoint": "./own"}
    said, results = started("model", backbone, {}, "own", content=checkpoints.content(own))
    assert [line for line in said.splitlines() if line.startswith("own/")] == [
        f"own/config.json: {name}: {value}" for name, value in SHAPE.items()
    ]
    assert "vocabulary head" not in said
    assert results.keys() == {"parameters"}


def test_a_start_without_a_vocabulary_head_says_so_and_hands_it_on(own: Path) -> None:
    weights = own / "model.safetensors"
    encoder = {name: each for name, each in load_file(weights).items() if not name.startswith("cls.")}
    save_file(encoder, weights, metadata={"format": "pt"})
    backbone = {"start": "checkpoint", "checkpoint": "./own"}
    said, first = started("model", backbone, {}, "own", content=checkpoints.content(own))
    assert "own: has no vocabulary head; objectives that need one begin with a random one\n" in said
    assert first["no_vocabulary_head"] == 1
    lineage = {"start": "lineage", "lineage": "own+ict"}
    assert started("again", lineage, {"pretrained": "model"})[1] == first


def test_fetched_files_with_another_digest_than_the_pinned_are_refused(own: Path) -> None:
    with manifest.record(own, stage="fetch_checkpoint", spec={}, inputs=[]):
        pass
    pinned = {"model.safetensors": sha256(own / "model.safetensors"), "tokenizer.json": "0" * 64}
    given = {"start": "checkpoint", "checkpoint": "someone/bert"}, {"checkpoint": "own"}
    said, _ = started("model", *given, sha256=pinned)
    assert "own/tokenizer.json has the sha256 " in said
    assert f"and the backbone pins {'0' * 64}; restore that file" in said
    del pinned["tokenizer.json"]
    assert started("model", *given, sha256=pinned)[1]


@pytest.mark.parametrize("fetched", [False, True])
def test_an_adapter_is_joined_to_its_base_and_both_are_held_to_their_digests(fetched: bool, own: Path) -> None:
    """Of a base that is a folder, or that is fetched."""
    adapter(Path("small"), "someone/bert" if fetched else "own", {"bert.encoder.layer.0.output.dense": (8, 16)})
    if fetched:
        with manifest.record(own, stage="fetch_checkpoint", spec={}, inputs=[]):
            pass
    inputs = {"checkpoint": "own"} if fetched else {}
    given = {"start": "checkpoint", "checkpoint": "./small"}, inputs, "small"
    content = checkpoints.content(Path("small"))
    pins = {"model.safetensors": sha256(own / "model.safetensors")}
    said, results = started("model", *given, content=content, sha256=pins)
    assert "checkpoint/config.json: hidden: 8" in said
    assert results.keys() == {"parameters"}
    names = {name: load_file(place / "model.safetensors") for name, place in (("was", own), ("is", Path("model")))}
    theirs = {name.removeprefix("bert."): each for name, each in names["was"].items()}
    changed = [name for name, each in names["is"].items() if not theirs[name][: len(each)].equal(each)]
    assert changed == ["encoder.layer.0.output.dense.weight"]
    said, _ = started("model", *given, content=content, sha256={"config.json": "0" * 64})
    assert f"and the backbone pins {'0' * 64}; restore that file" in said
    if not fetched:
        (own / "vocab.txt").write_text("other pieces")
        assert "small is not what was planned with" in started("model", *given, content=content)[0]
