"""The program that pre-trains: what it writes, what it goes on from, and what it says about bad input."""

import json
import re
import runpy
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from encore import objectives
from encore.config.entries import PretrainStep
from encore.data import tokens, vocabulary
from encore.data.collection import Collection, Judgment, write_collection
from encore.errors import EncoreError
from encore.models import checkpoint
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.heads import initialise
from encore.objectives.parts.step import PretrainInputs, pretrain
from encore.stages import code_digest
from encore.storage import manifest
from encore.training.checkpoint import Resume
from encore.training.loop import train
from tests.support import forks, inside

STEP = {
    "kind": "pretrain",
    "collection": "made-up",
    "batch": 8,
    "learning_rate": 1e-3,
    "length": 48,
    "query_length": 24,
    "source": "a test",
}
NUMERICS = {"precision": "fp32", "threads": 1}


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[Path, Path]:
    """A token store and a start, made by the library from a small collection."""
    words = [f"word{i}" for i in range(30)]
    rng = np.random.default_rng(0)

    def sentence() -> str:
        return " ".join(rng.choice(words, size=8)) + "."

    articles = [
        {
            "_id": f"a{i}",
            "title": f"title{i}",
            "sections": [{"title": "", "sentences": [sentence() for _ in range(3)]} for _ in range(3)],
            "links": [],
        }
        for i in range(24)
    ]
    corpus = [{"_id": f"d{i}", "title": "", "text": sentence()} for i in range(5)]
    made, store, start = tmp_path / "collection", tmp_path / "tokens", tmp_path / "start"
    write_collection(
        made, corpus, [{"_id": "q0", "text": "word1 word2"}], {"train": [Judgment("q0", "d0", 1)]}, articles
    )
    collection = Collection(made)
    pieces = vocabulary.train([row["text"] for row in corpus], 120)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(pieces), tmp_path / "tokenizer")
    with manifest.record(store, stage="tokens", spec={}, inputs=[]):
        tokens.write_store(collection, tmp_path / "tokenizer", store)
    torch.manual_seed(0)
    model = initialise(
        Encoder(EncoderConfig(vocabulary=len(pieces), layers=1, hidden=16, heads=2, intermediate=32, max_length=64))
    )
    with manifest.record(start, stage="start", spec={}, inputs=[]):
        checkpoint.save_model(model, {"mlm.bias": torch.arange(len(pieces)).float()}, start, tmp_path / "tokenizer")
    return store, start


def spec(**fields: Any) -> dict[str, Any]:
    return {"step": {**STEP, "steps": 5, **fields}, "seed": 0, "numerics": NUMERICS}


def training(**fields: Any) -> tuple[PretrainStep, int, dict[str, Any]]:
    return objectives.fields(spec(**fields)["step"]), 0, NUMERICS


def program(
    store: Path, start: Path, output: Path, processes: int = 1, **fields: Any
) -> subprocess.CompletedProcess[str]:
    words = inside.making("pretrain", spec(**fields), {"tokens": store, "weights": start}, output)
    command = [forks.python(), *words, "--processes", str(processes)]
    return subprocess.run(command, cwd=output.parent, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_program_writes_a_model_its_curve_and_its_manifest(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    done = program(*inputs, tmp_path / "one", objective="bow")
    assert done.returncode == 0, done.stderr
    assert "step 5/5" in done.stdout
    made = json.loads((tmp_path / "one/manifest.json").read_text())
    assert made["results"]["steps"] == 5
    assert made["results"]["held_out"].keys() == {"loss", "mlm", "bow"}
    assert made["results"]["examples"] == 40
    assert made["results"]["flops"] > 0
    assert made["results"]["texts"] > 40
    assert 2 < made["results"]["pieces_per_text"] <= made["spec"]["step"]["length"] - 2
    assert set(made["outputs"]) >= {"losses.tsv", "model.safetensors", "heads.safetensors", "encoder.json"}
    run = json.loads((tmp_path / "one/run.json").read_text())
    assert run["losses"].keys() == {"loss", "mlm", "bow"}
    assert run["code"] == code_digest("pretrain.bow") != code_digest("pretrain.mlm")
    assert len((tmp_path / "one/losses.tsv").read_text().splitlines()) == 6
    assert not (tmp_path / manifest.state_of(tmp_path / "one")).exists()

    with manifest.record(tmp_path / "two", stage="pretrain", spec=spec(objective="bow"), inputs=[]):
        pretrain(*training(objective="bow"), PretrainInputs(*inputs), tmp_path / "two", Resume(tmp_path / "state"))
    assert manifest.read_manifest(tmp_path / "two")["outputs"] == made["outputs"]  # another process, the same bytes


def test_heads_go_on_from_the_parents_and_unused_ones_are_handed_on(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    parent = checkpoint.load_heads(inputs[1])["mlm.bias"]
    pretrain(*training(objective="mlm"), PretrainInputs(*inputs), tmp_path / "mlm", Resume(tmp_path / "state"))
    learned = checkpoint.load_heads(tmp_path / "mlm")["mlm.bias"]
    assert torch.allclose(learned, parent, atol=0.1)
    assert not torch.equal(learned, parent)
    pretrain(*training(objective="ict"), PretrainInputs(*inputs), tmp_path / "ict", Resume(tmp_path / "state"))
    assert torch.equal(checkpoint.load_heads(tmp_path / "ict")["mlm.bias"], parent)
    assert checkpoint.load_encoder(tmp_path / "ict").config == checkpoint.load_encoder(inputs[1]).config


@pytest.mark.parametrize("fields", [{"objective": "mlm"}, {"objective": "costa", "min_tokens": 8}])
def test_heads_can_learn_alone_before_the_rest(
    fields: dict[str, Any], inputs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, bool, bool]] = []  # steps, whether the encoder changed, whether the heads did

    def watched(task: Any, encoder: Any, heads: Any, step: Any, *others: Any, **more: Any) -> Any:
        before = [{name: value.clone() for name, value in each.state_dict().items()} for each in (encoder, heads)]
        done = train(task, encoder, heads, step, *others, **more)
        after = [each.state_dict() for each in (encoder, heads)]
        changed = [
            any(not torch.equal(old[name], new[name]) for name in old) for old, new in zip(before, after, strict=True)
        ]
        seen.append((done.steps, *changed))
        return done

    monkeypatch.setattr("encore.objectives.parts.step.train", watched)
    plain = pretrain(*training(**fields), PretrainInputs(*inputs), tmp_path / "plain", Resume(tmp_path / "state"))
    warm = pretrain(
        *training(**fields, head_warmup=3), PretrainInputs(*inputs), tmp_path / "warm", Resume(tmp_path / "other")
    )
    assert seen == [(5, True, True), (3, False, True), (5, True, True)]
    assert warm.steps == plain.steps
    assert warm.flops > plain.flops, "its operations count"
    calibrated = runpy.run_path(str(Path(__file__).parents[3] / "tools/calibrate.py"))["steps"]
    given = dict(zip(("tokens", "weights"), inputs, strict=True))
    for done, more in ((plain, {}), (warm, {"head_warmup": 3})):
        step, seed, _ = training(**fields, **more)
        assert calibrated(step, given, done.flops, seed) == 5
    with pytest.raises(EncoreError, match="trains no module besides the encoder"):
        pretrain(
            *training(objective="ict", head_warmup=3),
            PretrainInputs(*inputs),
            tmp_path / "ict",
            Resume(tmp_path / "third"),
        )


@pytest.mark.slow
def test_a_head_that_a_checkpoint_lacks_is_said_to_begin_at_random(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    store, start = inputs
    with manifest.record(start, stage="start", spec={}, inputs=[]) as facts:
        facts["results"] = {"no_vocabulary_head": 1}
    given = {
        "mlm": program(store, start, tmp_path / "mlm", objective="mlm"),
        "ict": program(store, start, tmp_path / "ict", objective="ict"),
    }
    assert [done.returncode for done in given.values()] == [0, 0]
    assert "the vocabulary head begins at random" in given["mlm"].stdout
    results = {name: manifest.read_results(str(tmp_path / name)) for name in given}
    assert results["mlm"]["random_vocabulary_head"] == results["ict"]["no_vocabulary_head"] == 1
    assert "random_vocabulary_head" not in results["ict"]
    assert "no_vocabulary_head" not in results["mlm"]
    unsaved = pretrain(
        *training(objective="mlm", save_heads=[]),
        PretrainInputs(*inputs),
        tmp_path / "unsaved",
        Resume(tmp_path / "state"),
    )
    assert unsaved.counts["random_vocabulary_head"] == unsaved.counts["no_vocabulary_head"] == 1


def test_a_step_saves_only_the_modules_that_it_keeps(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    def modules(output: str, objective: str, **fields: Any) -> set[str]:
        resume = Resume(tmp_path / "state" / output)
        pretrain(*training(objective=objective, **fields), PretrainInputs(*inputs), tmp_path / output, resume)
        return {name.split(".")[0] for name in checkpoint.load_heads(tmp_path / output)}

    assert modules("all", "costa", min_tokens=8) == {"mlm", "projector"}
    assert modules("projector", "costa", min_tokens=8, save_heads=["projector"]) == {"projector"}
    assert modules("none", "costa", min_tokens=8, save_heads=[]) == set()
    assert modules("simlm", "simlm") == {"mlm", "decoder"}, "the generator is the start, which is there already"
    assert modules("cocondenser", "cocondenser", packing="article", length=16) == {"mlm", "head"}
    assert modules("parent", "ict", save_heads=[]) == {"mlm"}, "what an objective does not train is handed on"
    with pytest.raises(
        EncoreError, match="step 'costa', field 'save_heads': it trains no module 'decoder'; use some of mlm, p"
    ):
        modules("unknown", "costa", min_tokens=8, save_heads=["mlm", "decoder"])


def test_losses_on_held_out_examples_are_written_beside_those_in_training(
    inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    made = {}
    for share in (0.0, 0.1):
        output = tmp_path / str(share)
        with manifest.record(output, stage="pretrain", spec={}, inputs=[]):
            resume = Resume(tmp_path / "state" / str(share))
            done = pretrain(*training(objective="ict", held_out=share), PretrainInputs(*inputs), output, resume)
        made[share] = (output / "held_out.tsv").read_text().splitlines()
    assert made[0.0] == ["step"]
    assert made[0.1][0] == "step\tloss\tcontrast\taccuracy"
    assert [row.split("\t")[0] for row in made[0.1][1:]] == ["0", "1", "2", "3", "4", "5"]
    last = dict(zip(made[0.1][0].split("\t")[1:], map(float, made[0.1][-1].split("\t")[1:]), strict=True))
    assert done.held_out[-1].rounded() == last


@pytest.mark.slow
def test_two_processes_write_what_one_writes_but_for_rounding(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    with manifest.record(tmp_path / "one", stage="pretrain", spec={}, inputs=[]):
        alone = pretrain(
            *training(objective="ict"), PretrainInputs(*inputs), tmp_path / "one", Resume(tmp_path / "alone")
        )
    pair = program(*inputs, tmp_path / "two", processes=2, objective="ict")
    assert pair.returncode == 0, pair.stderr
    assert pair.stdout.count("step 5/5") == 1
    one, two = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("one", "two"))
    assert one["outputs"].keys() == two["outputs"].keys()
    assert alone.examples == two["results"]["examples"] == 40
    ran = json.loads((tmp_path / "two/run.json").read_text())
    assert (ran["processes"], ran["threads"]) == (2, 1)
    assert not (tmp_path / "state").exists()
    curves = [np.loadtxt(tmp_path / name / "held_out.tsv", skiprows=1) for name in ("one", "two")]
    np.testing.assert_allclose(*curves, rtol=0.05)


@pytest.mark.slow
def test_the_program_says_in_one_line_what_is_wrong(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    done = program(*inputs, tmp_path / "bad", objective="wlp")
    assert done.returncode == 1
    assert done.stderr.startswith("error: objective wlp needs links")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "bad/manifest.json").exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"objective": "itc"}, "objective 'itc' is unknown; did you mean ict?"),
        ({"objective": "ict", "tau": 1}, "objective ict.tau: unknown key"),
        ({"objective": "mlm", "length": 500}, "tokens are too long for an encoder of 64 positions; lower"),
    ],
)
def test_bad_steps_are_refused(inputs: tuple[Path, Path], tmp_path: Path, fields: Any, message: str) -> None:
    with pytest.raises(EncoreError, match=re.escape(message)):
        pretrain(*training(**fields), PretrainInputs(*inputs), tmp_path / "bad", Resume(tmp_path / "state"))


def test_tokens_of_another_vocabulary_are_refused(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    other = initialise(
        Encoder(EncoderConfig(vocabulary=50, layers=1, hidden=16, heads=2, intermediate=32, max_length=64))
    )
    checkpoint.save_model(other, {}, tmp_path / "other", tmp_path / "tokenizer")
    wrong = PretrainInputs(inputs[0], tmp_path / "other")
    with pytest.raises(EncoreError, match=r"different vocabularies: .* the model knows 50; make the tokens again"):
        pretrain(*training(objective="mlm"), wrong, tmp_path / "bad", Resume(tmp_path / "state"))
