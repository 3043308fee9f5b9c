"""From judged queries to a run: negatives, fine-tuning, encoding and search, by the programs of the workflow."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from encore.data.collection import QuerySample
from encore.data.runs import read_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.step import FinetuneInputs
from encore.models import checkpoint, embed
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.retrieval.dense import Queries, answer_exactly
from encore.retrieval.encode import Encoding, make_shard
from encore.storage.manifest import record, state_of
from tests.support import forks, inside
from tests.support.small_home import NUMERICS, STEP, finetuned


@pytest.fixture(scope="module")
def model(home, negatives):
    """By a process of its own."""
    spec = {"step": STEP, "seed": 0, "numerics": NUMERICS}
    inputs = {"weights": "start"} | {role: role for role in ("tokens", "collection", "negatives")}
    command = [forks.python(), *inside.making("finetune", spec, inputs, "model")]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=True)
    assert "40 training queries" in done.stdout
    return home / "model"


def tuned(home, output, **changes):
    places = [home / name for name in ("tokens", "collection", "start", "negatives")]
    step = {name: value for name, value in {**STEP, **changes}.items() if value is not None}
    return finetuned(step, FinetuneInputs(*places), output, output.parent / "state")


def test_a_program_and_the_library_make_the_same_bytes(home, model, tmp_path):
    done = tuned(home, tmp_path / "model")
    for name in ("model.safetensors", "validation.tsv", "losses.tsv", "heads.safetensors"):
        assert (tmp_path / "model" / name).read_bytes() == (model / name).read_bytes(), name
    results = json.loads((model / "manifest.json").read_text())["results"]
    expected = {"steps": 12, "examples": 96, "flops": done.flops, "best_step": done.best_step, "queries": 40}
    values = [value for _, value in done.validations]
    chosen = {"validations": 3, "equal_validations": values.count(max(values)), "validation_queries": 12}
    assert results == expected | chosen
    assert not (home / state_of(Path("model"))).exists()


def test_a_step_says_how_texts_get_their_vectors_from_then_on(home, model, tmp_path):
    """BEIR's script fine-tunes with the mean and cosines what another way of pooling pre-trained."""
    before = checkpoint.load_encoder(model).config
    other = {
        "pooling": "mean" if before.pooling == "cls" else "cls",
        "similarity": "dot" if before.similarity == "cosine" else "cosine",
    }
    tuned(home, tmp_path / "other", **other, validate_every=None)
    after = checkpoint.load_encoder(tmp_path / "other").config
    assert {name: getattr(after, name) for name in other} == other
    assert (tmp_path / "other" / "model.safetensors").read_bytes() != (model / "model.safetensors").read_bytes()


def test_heads_of_pre_training_are_handed_on(model):
    assert checkpoint.load_heads(model)["mlm.bias"].tolist() == [0.0, 1.0, 2.0]


def test_the_best_validation_gives_the_weights(home, model, tmp_path):
    rows = [line.split("\t") for line in (model / "validation.tsv").read_text().splitlines()]
    assert rows[0] == ["step", "rr@10"]
    assert [row[0] for row in rows[1:]] == ["4", "8", "12"]
    values = [float(row[1]) for row in rows[1:]]
    best = json.loads((model / "manifest.json").read_text())["results"]["best_step"]
    assert best == 4 * (1 + values.index(max(values)))
    done = tuned(home, tmp_path / "last", validate_every=None)
    assert done.validations == []
    assert not (tmp_path / "last" / "validation.tsv").exists()


SEARCH = {
    "split": "test",
    "queries": 5,
    "sample": 0,
    "depth": 7,
    "query_length": 8,
    "system": "ours",
    "numerics": NUMERICS,
}
EXACT = {**SEARCH, "index": "vectors"}
WHOLE = "index/000-of-001"
READ = {"model": "model", "tokens": "tokens", "collection": "collection"}
ENCODE = {"length": 16, "numerics": NUMERICS}


@pytest.fixture(scope="module")
def index(home, model):
    printed = inside.made("encode", ENCODE, {"model": "model", "tokens": "tokens"}, WHOLE, home)
    assert not (home / state_of(Path(WHOLE))).exists()
    assert "encoding: 64 of 64 passages, " in printed
    return home / WHOLE


def test_a_run_has_the_queries_of_its_split_in_any_number_of_shards(home, model, index):
    assert "5 queries answered" in inside.made("search", EXACT, READ | {"shard0": WHOLE}, "answer", home)
    run = read_run(home / "answer")
    assert len(run) == 5
    assert set(run) <= {f"q{i}" for i in range(52, 64)}
    assert {len(ranking) for ranking in run.values()} == {7}

    shards = [home / "shards" / name for name in ("000-of-002", "001-of-002")]
    for shard in shards:
        make_shard(Encoding(**ENCODE), model, home / "tokens", shard.name, shard, home / "state")
    queries = Queries(QuerySample("test", 5), 7, 8, NUMERICS, "ours")
    _, speed = answer_exactly(queries, model, home / "tokens", home / "collection", shards[::-1], home / "again")
    recorded = json.loads((home / "answer" / "run.json").read_text())["search"]
    assert {name: value for name, value in recorded.items() if name != "gflops"} == {
        name: value for name, value in speed.items() if name != "gflops"
    }
    assert recorded["gflops"] > 0
    assert (home / "again" / "run.npz").read_bytes() == (home / "answer" / "run.npz").read_bytes()


def test_what_built_and_searched_an_index_is_recorded_with_its_threads_and_rate(home, model):
    shard = home / "whole" / "000-of-001"
    with record(shard, stage="encode", spec=ENCODE, inputs=[home / "model", home / "tokens"]):
        make_shard(Encoding(**ENCODE), model, home / "tokens", shard.name, shard, home / "state")
    shards = {"shard0": "whole/000-of-001"}
    inside.made("search", EXACT, READ | shards, "exact", home)
    inside.made("build_index", {"index": {"kind": "fp16"}, "vectors": "whole"}, shards, "halved", home)
    inputs = READ | {"index": "halved", "exact": "exact"}
    inside.made("search_index", {**SEARCH, "search": {}}, inputs, "found", home)
    for folder, key, rate in (("halved", "build", "vectors_per_second"), ("found", "search", "queries_per_second")):
        recorded = json.loads((home / folder / "run.json").read_text())[key]
        assert recorded.pop(rate) > 0
        assert recorded == {"way": "FAISS on cpu", "threads": 1}


def test_a_corrupted_shard_is_one_clear_line(home, model, index):
    shutil.copytree(index, home / "broken")
    whole = (index / "index").read_bytes()
    (home / "broken" / "index").write_bytes(whole[:-8])
    process = inside.make("search", EXACT, READ | {"shard0": "broken"}, "never", home)
    assert process.returncode == 1
    assert process.stderr.startswith(f"error: broken/index has {len(whole) - 8} bytes")
    assert process.stderr.count("\n") == 1
    assert not (home / "never").exists() or not list((home / "never").iterdir())


def test_tokens_of_another_vocabulary_are_refused(home, tmp_path):
    store = TokenStore(home / "tokens")
    checkpoint.save_model(Encoder(EncoderConfig(50, 1, 16, 2, 32, 16)), {}, tmp_path / "other", store.tokenizer_folder)
    with pytest.raises(EncoreError, match=r"ids of 90 pieces, .* knows 50"):
        embed.load_for_tokens(tmp_path / "other", store)


def test_a_wrong_field_is_named(home, tmp_path):
    with pytest.raises(EncoreError, match=r"step\.temprature: unknown key; did you mean temperature"):
        tuned(home, tmp_path / "model", temprature=1)
