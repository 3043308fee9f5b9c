"""An encoding that was killed goes on after its last whole block, to the same bytes."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.data.tokens import TokenStore
from encore.models import embed
from encore.retrieval import encode
from encore.storage.manifest import record
from tests.support.small_home import NUMERICS

SPEC = {"length": 16, "numerics": NUMERICS}
SHARD = "001-of-002"  # the second half of 64 passages, in blocks of 10
ALL = [40, 50, 60]  # the first passage of each of its blocks


class KilledError(Exception):
    pass


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "BLOCK", 10)
    assert list(encode.CollectionShard.parse(SHARD).rows(64)) == list(range(30, 64))


class Encoding:
    """A shard that is encoded in a folder, until it is killed."""

    def __init__(self, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.folder, self.state = home, folder, folder / "state"
        self.patch, self.model = monkeypatch, home / "start"

    def run(self, blocks: int = 99, spec: dict[str, Any] = SPEC) -> list[int]:
        """Encode, and be killed when so many blocks are begun; the first row of each block that was embedded."""
        begun: list[int] = []
        begin = embed._begin

        def counting(encoder: Any, sequences: Any, rows: np.ndarray, *others: Any) -> Any:
            if len(begun) == blocks:
                raise KilledError
            begun.append(int(rows[0]))
            return begin(encoder, sequences, rows, *others)

        with self.patch.context() as patch:
            patch.setattr(embed, "_begin", counting)
            try:
                how, tokens = encode.Encoding(**spec), self.home / "tokens"
                encode.make_shard(how, self.model, tokens, SHARD, self.folder / "made", self.state)
            except KilledError:
                assert not (self.folder / "made").exists()
        return begun

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self.folder / "made").iterdir()}


@pytest.fixture
def whole(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The files of the shard when nothing is killed."""
    encoding = Encoding(home, tmp_path / "whole", monkeypatch)
    assert encoding.run() == [30, *ALL]
    return encoding.files()


@pytest.fixture
def encoding(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Encoding:
    return Encoding(home, tmp_path / "killed", monkeypatch)


@pytest.mark.parametrize("done", range(5))
def test_only_what_is_missing_is_encoded(
    encoding: Encoding, whole: dict[str, bytes], done: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert encoding.run(done) == [30, *ALL][:done]
    shutil.rmtree(encoding.folder / "made", ignore_errors=True)  # as Snakemake does
    capsys.readouterr()
    assert encoding.run() == ([30, *ALL][done:] if done < 4 else [30, *ALL])  # whose file has its last name
    assert encoding.files() == whole
    assert (f"resuming after {done} blocks" in capsys.readouterr().out) == (0 < done < 4)
    assert [path.name for path in encoding.state.iterdir()] == ["index.seals"], "the vectors were not copied"


def test_a_torn_block_is_encoded_again(encoding: Encoding, whole: dict[str, bytes]) -> None:
    encoding.run(3)
    path = encoding.state / "index"
    path.write_bytes(path.read_bytes()[:-5])
    assert encoding.run() == ALL[1:]
    assert encoding.files() == whole


def test_a_killed_job_of_the_last_moment_has_nothing_to_encode(
    encoding: Encoding, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(encode.SealedBlocks, "move", lambda *_: (_ for _ in ()).throw(KilledError))
        assert encoding.run() == [30, *ALL]
    assert encoding.run() == []
    assert encoding.files() == whole


def test_vectors_of_another_length_precision_or_model_are_not_gone_on_from(
    encoding: Encoding, whole: dict[str, bytes]
) -> None:
    other = encoding.folder / "other"
    with record(other, stage="start", spec={}, inputs=[]):
        shutil.copytree(
            encoding.model, other, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.json.lock", "manifest.json")
        )
        (other / "note").write_text("as good as another model")
    for change in ({"length": 10}, {"vectors": "fp16"}):
        encoding.run(2)
        assert encoding.run(2, SPEC | change) == [30, 40]
    encoding.run(2)
    own, encoding.model = encoding.model, other
    assert encoding.run(3) == [30, 40, 50]
    encoding.model = own
    assert encoding.run() == [30, *ALL]
    assert encoding.files() == whole


def test_progress_counts_the_rate_of_this_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    progress = encode.Progress("encoding", "passages", 4000, done=3000)
    progress._began -= 5
    progress.more(500)
    assert capsys.readouterr().out == "", "a line a minute"
    progress._told -= 60
    progress.more(100)
    assert capsys.readouterr().out == "encoding: 3,600 of 4,000 passages, 120 a second, 3 s left\n"
    progress._began -= 5
    progress.more(400)
    assert capsys.readouterr().out == "encoding: 4,000 of 4,000 passages, 100 a second, 0 s left\n", "the last at once"


def test_the_store_is_what_these_tests_take_it_for(home: Path) -> None:
    assert len(TokenStore(home / "tokens").passages) == 64
