"""Word sets of collections of any size: block by block, in bounded memory, by several processes, and after a stop."""

import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.data.tokens import TokenStore
from encore.objectives.bprop import BpropSets
from encore.objectives.cpdae import Idf
from encore.objectives.parts import attention, chunks
from encore.objectives.parts.lexicon import Lexicon
from encore.objectives.prop import PropSets
from encore.storage.files import appending
from tests.support import small_objective, small_store

FILES = ("documents", "pieces", "offsets", "scores")
PROP = PropSets(length=48, skip_share=0.0, least_count=1)
BPROP = BpropSets(length=48, skip_share=0.0, least_words=3, drawn_words="content")


def contents(folder: Path) -> list[bytes]:
    return [(folder / f"{name}.npy").read_bytes() for name in FILES]


def written(fields: Any, store: Any, output: Path, processes: int = 1) -> list[bytes]:
    attention_to = small_objective.attention_to(store, fields) if fields.reads_attention else None
    fields.write(store, output, attention_to, processes)
    return contents(output)


def one_by_one(model: Any, texts: list[np.ndarray], length: int) -> list[np.ndarray]:
    """Attention that depends on no other text, not even in its last bit."""
    return [((text % 13 + 1) / np.float32(14 * len(text))).astype(np.float32) for text in texts]


@pytest.mark.parametrize("fields", [PROP, BPROP, BPROP.model_copy(update={"word_attention": "sum"})])
def test_any_blocks_write_the_same_bytes(fields: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = small_store.random_store(20)
    monkeypatch.setattr(attention, "text_attention", one_by_one)
    whole = written(fields, store, tmp_path / "whole")
    for pieces in (1, 300, 1000):
        monkeypatch.setattr(chunks, "PIECES", pieces)
        assert written(fields, store, tmp_path / str(pieces)) == whole


@pytest.mark.parametrize("fields", [PROP, BPROP, BPROP.model_copy(update={"word_attention": "sum"}), Idf(length=48)])
def test_any_number_of_processes_writes_the_same_bytes(
    fields: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums in other orders would differ in their last digits."""
    monkeypatch.setattr(chunks, "PIECES", 400)
    store = small_store.random_store(20)
    attention_to = small_objective.attention_to(store, fields) if fields.reads_attention else None
    made = []
    for processes in (1, 2, 3):
        output = tmp_path / str(processes)
        output.mkdir()
        counts = fields.write(store, output, attention_to, processes)
        made.append((counts, {path.name: path.read_bytes() for path in output.iterdir()}))
    assert made[0] == made[1] == made[2]
    assert made[0][1]


# The attention of a model


def attended(store: Any, output: Path) -> list[np.ndarray]:
    small_objective.attention_to(store, BPROP, output)
    read = attention.Attention(output)
    return [read.of(number) for number in range(len(list(output.glob("*.f4"))))]


def test_attention_is_kept_by_block_and_is_that_of_all_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = small_store.random_store(20)
    (whole,) = attended(store, tmp_path / "one")
    monkeypatch.setattr(chunks, "PIECES", 400)
    parts = attended(store, tmp_path / "many")
    assert len(parts) > 3
    assert np.concatenate(parts) == pytest.approx(whole, rel=1e-4)


def test_blocks_that_were_read_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop leaves some blocks; one was damaged since, one was not read yet."""
    store, stopped = small_store.random_store(20), tmp_path / "b/state"
    monkeypatch.setattr(chunks, "PIECES", 400)
    attended(store, tmp_path / "a")
    shutil.copytree(tmp_path / "a", stopped, ignore=shutil.ignore_patterns("state"))
    damaged, lost = sorted(stopped.iterdir())[:2]
    lost.unlink()
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    read: list[int] = []
    original = attention.text_attention
    monkeypatch.setattr(
        attention, "text_attention", lambda model, texts, length: read.append(1) or original(model, texts, length)
    )
    attended(store, tmp_path / "b")
    assert read == [1, 1]
    assert blocks_of(tmp_path / "b") == blocks_of(tmp_path / "a")
    assert not list(stopped.iterdir())
    attended(store, tmp_path / "b")  # once more, over the blocks of the first time
    assert len(read) == 2 + len(blocks_of(tmp_path / "a"))
    assert blocks_of(tmp_path / "b") == blocks_of(tmp_path / "a")


def blocks_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.f4")}


SHARED = """
import sys
from pathlib import Path
from tests.support import small_objective, small_store
from encore.objectives.parts import chunks
from test_word_set_blocks import BPROP
chunks.PIECES = 400
small_objective.parent = lambda: Path(sys.argv[2])
small_objective.attention_to(small_store.random_store(20), BPROP, Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_two_processes_share_the_blocks_and_write_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "shared.py"
    program.write_text(SHARED)
    path = [str(Path(__file__).parents[0]), str(Path(__file__).parents[3]), str(Path(__file__).parents[3] / "src")]
    monkeypatch.setenv("PYTHONPATH", ":".join(path))
    command = [sys.executable, "-m", "encore.training.launch", "--standalone", "--nproc-per-node=2", str(program)]
    subprocess.run([*command, str(tmp_path / "made"), str(small_objective.parent())], check=True, timeout=600)
    monkeypatch.setattr(chunks, "PIECES", 400)
    attended(small_store.random_store(20), tmp_path / "alone")
    assert blocks_of(tmp_path / "made") == blocks_of(tmp_path / "alone")
    assert len(blocks_of(tmp_path / "made")) > 3


# Size


def long_store(folder: Path, texts: int, each: int) -> TokenStore:
    """Passages of words drawn from the small vocabulary, written as a store is."""
    store = small_store.store([])
    rng = np.random.default_rng(0)
    pieces = rng.integers(5, 80, size=texts * each, dtype=np.uint16)  # words of one piece: no more with more texts
    empty = np.zeros(1, dtype=np.int64)
    for name, offsets in (("passages", np.arange(texts + 1) * each), ("sentences", empty), ("titles", empty)):
        np.save(folder / f"{name}.offsets.npy", offsets)
        (folder / f"{name}.ids.bin").write_bytes(pieces.tobytes() if name == "passages" else b"")
    for name in ("sections", "articles"):
        np.save(folder / f"{name}.npy", empty)
    opened = TokenStore.__new__(TokenStore)
    opened.folder, opened.pieces, opened.special = folder, store.pieces, store.special
    opened.vocabulary = len(store.pieces)
    return opened


def test_a_collection_eight_times_as_large_takes_hardly_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "PIECES", 4096)
    fields, peaks = PropSets(length=512, skip_share=0.0, least_count=1, stored_pairs=2), []
    for texts in (40, 320):
        folder = tmp_path / str(texts)
        folder.mkdir()
        store = long_store(folder, texts, 400)
        fields.write(store, folder / "warm")
        tracemalloc.start()
        fields.write(store, folder / "made")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 280 * 400  # a byte a piece; as int64 alone they took 8


def test_words_have_the_same_numbers_in_whatever_order_texts_come() -> None:
    store, rng = small_store.store([]), np.random.default_rng(3)
    texts = [rng.integers(5, 96, size=30).astype(np.uint16) for _ in range(50)]
    both = []
    for order in (range(50), rng.permutation(50)):
        words = Lexicon(store.pieces, store.continues)
        for place in order:
            words.enter([texts[place]])
        words.close()
        both.append([words.pieces(np.array([word]))[0].tolist() for word in range(len(words))])
    words = Lexicon(store.pieces, store.continues)
    for part in (texts[30:], [], texts[:40]):  # as processes give them
        own = Lexicon(store.pieces, store.continues)
        nodes, here = own.enter(part).word, words.join(own)
        assert np.array_equal(here[nodes], words.enter(part).word)
    words.close()
    both.append([words.pieces(np.array([word]))[0].tolist() for word in range(len(words))])
    assert both[0] == both[1] == both[2] == sorted(both[0], key=lambda word: (len(word), word))
    assert len({tuple(word) for word in both[0]}) == len(both[0]) > 200


@pytest.mark.parametrize("shape", [(), (3, 2)])
@pytest.mark.parametrize("parts", [[], [0], [5], [2, 0, 4]])
def test_an_array_that_is_appended_to_has_the_bytes_of_one_that_is_saved(
    shape: tuple[int, ...], parts: list[int], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(count, *shape)) for count in parts]
    with appending(tmp_path / "a.npy", "<f8", shape) as append:
        for array in arrays:
            append(array)
    np.save(tmp_path / "b.npy", np.concatenate([np.zeros((0, *shape)), *arrays]))
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
