"""The loss on masked words: by hand, alike for all models, and only where a model has a whole head."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from encore import objectives
from encore.config.run import RunConfig
from encore.config.run_file import read_run
from encore.config.validation import checked, read_yaml
from encore.data import tokens, vocabulary
from encore.data.collection import Collection, write_collection
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import checkpoint
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.heads import MlmHead, initialise
from encore.objectives.inspection import pretraining as inspected
from encore.objectives.inspection.pretraining import measure_masked_loss
from encore.plan.artifacts.inspections import masked_loss
from encore.plan.plan import Plan
from encore.products.tables.plan import table_plan
from encore.storage import manifest
from encore.training.randomness import generator
from tests.support import inside

STEP = {
    "kind": "pretrain",
    "objective": "mlm",
    "collection": "made-up",
    "steps": 1,
    "batch": 4,
    "learning_rate": 1.0,
    "length": 24,
    "mask_ratio": 0.3,
}
MLM, NUMERICS = objectives.fields(STEP), {"precision": "fp32", "threads": 1}
SPEC = {"step": STEP, "texts": 10_000, "numerics": NUMERICS}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Eight passages of eight words as tokens."""
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(30)]
    corpus = [{"_id": f"d{i}", "title": "", "text": " ".join(rng.choice(words, size=8))} for i in range(8)]
    made, output = tmp_path / "collection", tmp_path / "tokens"
    write_collection(made, corpus, [], {})
    pieces = vocabulary.train([row["text"] for row in corpus], 120)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(pieces), tmp_path / "tokenizer")
    with manifest.record(output, stage="tokens", spec={}, inputs=[]):
        tokens.write_store(Collection(made), tmp_path / "tokenizer", output)
    return output


def model(store: Path, output: Path, head: str = "whole", seed: int = 0) -> Path:
    """A small model that gives its start's head whole, in part, or none."""
    torch.manual_seed(seed)
    opened = TokenStore(store)
    shape = EncoderConfig(
        vocabulary=opened.vocabulary, layers=1, hidden=16, heads=2, intermediate=32, max_length=32, dropout=0.5
    )
    encoder, own = initialise(Encoder(shape)), nn.ModuleDict({"mlm": initialise(MlmHead(shape))})
    state = own.state_dict()
    kept = {"whole": state, "bias": {"mlm.bias": state["mlm.bias"]}, "none": {}}[head]
    with manifest.record(output, stage="start", spec={}, inputs=[]):
        checkpoint.save_model(encoder, kept, output, opened.tokenizer_folder)
    return output


def by_hand(store: Path, at: Path) -> float:
    """The mean of -log p(masked piece), text by text and unpadded, over batches of like length."""
    opened, encoder = TokenStore(store), checkpoint.load_encoder(at).eval()
    objective = objectives.load("mlm")(objectives.fields(STEP), opened, None)
    heads = objective.heads(encoder).eval()
    checkpoint.restore_heads(heads, at)
    made = [objective.example(index, generator(0, "held out", index)) for index in range(len(objective))]
    made.sort(key=lambda text: len(text.ids))
    means, sizes = [], []
    for first in range(0, len(made), STEP["batch"]):  # type: ignore[call-overload]
        losses = []
        for text in made[first : first + 4]:  # STEP["batch"]
            batch = {name: torch.from_numpy(array) for name, array in objective.collate([text]).items()}
            with torch.no_grad():
                hidden = encoder(batch["ids"], batch["mask"])[0, batch["masked"]]
                logits = heads["mlm"](hidden, encoder.word_embeddings)
            scores = torch.log_softmax(logits.double(), dim=1)
            losses += [-float(row[label]) for row, label in zip(scores, batch["labels"], strict=True)]
        means.append(math.fsum(losses) / len(losses))
        sizes.append(len(made[first : first + 4]))
    return float(np.average(means, weights=sizes))


def test_the_loss_is_the_mean_over_masked_pieces_without_dropout(store: Path, tmp_path: Path) -> None:
    at = model(store, tmp_path / "model")
    found = measure_masked_loss(MLM, 10_000, NUMERICS, store, at, tmp_path)
    assert found["texts"] == 8
    assert found["loss"] == pytest.approx(by_hand(store, at), rel=1e-4)
    assert found["loss"] == measure_masked_loss(MLM, 10_000, NUMERICS, store, at, tmp_path)["loss"]
    assert json.loads((tmp_path / "loss.json").read_text()) == found


def test_fewer_texts_are_the_same_for_every_model(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []

    def terms(models: Any, indices: np.ndarray, *sizes: int) -> dict[str, float]:
        seen.append(indices.tolist())
        return {"mlm": 1.0}

    monkeypatch.setattr("encore.training.held_out.held_out_losses", terms)
    for seed in (0, 1):
        measure_masked_loss(MLM, 3, NUMERICS, store, model(store, tmp_path / f"m{seed}", seed=seed), tmp_path)
    assert seen[0] == seen[1] == sorted(seen[0])
    assert len(seen[0]) == 3


@pytest.mark.parametrize("head", ["bias", "none"])
def test_without_a_whole_head_there_is_no_loss(store: Path, tmp_path: Path, head: str) -> None:
    at = model(store, tmp_path / "model", head)
    assert measure_masked_loss(MLM, 10_000, NUMERICS, store, at, tmp_path)["loss"] is None


def test_tokens_of_another_vocabulary_are_refused(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = model(store, tmp_path / "model")
    other = TokenStore(store)
    other.vocabulary += 1
    monkeypatch.setattr(inspected, "TokenStore", lambda path: other)
    with pytest.raises(EncoreError, match="have different vocabularies"):
        measure_masked_loss(MLM, 10_000, NUMERICS, store, at, tmp_path)


def test_the_program_writes_a_loss_and_its_manifest(store: Path, tmp_path: Path) -> None:
    at, output = model(store, tmp_path / "model"), tmp_path / "loss"
    inside.made("masked_loss", SPEC, {"tokens": store, "model": at}, output)
    record = json.loads((output / "manifest.json").read_text())
    assert record["results"] == json.loads((output / "loss.json").read_text())
    assert len(record["inputs"]) == 2


@pytest.fixture
def plan(catalogue: Any, at_the_root: None) -> Plan:
    content = read_yaml(Path("config/nano.yaml"))
    return Plan(checked(RunConfig, content, "nano"), catalogue)


def test_only_how_words_are_masked_decides_and_it_is_part_of_no_other_artifact(plan: Plan) -> None:
    lineage = plan.resolve.lineage("bert-base+mlm")
    found = masked_loss(plan, lineage, 0, "msmarco-passage", "mlm")
    assert found.folder.startswith(f"results/losses/{plan.model(lineage, 0).name}/pydocs-stdlib-")
    assert found.spec["step"]["length"] == plan.resolve.step(lineage.steps[0]).length
    assert found.spec["step"]["learning_rate"] == 1.0
    assert plan.find(found.folder) is found
    for wrong in ("ict", "marco-bm25"):
        with pytest.raises(EncoreError, match="is not a step of MLM"):
            masked_loss(plan, lineage, 0, "msmarco-passage", wrong)


@pytest.mark.parametrize(("run", "length"), [("paper", 144), ("config", 64)])
def test_passages_are_masked_at_the_length_that_the_papers_models_search(
    catalogue: Any, at_the_root: None, run: str, length: int
) -> None:
    plan = Plan(read_run(Path(f"config/{run}.yaml")), catalogue)
    folders = [row["cells"]["mlm"]["reads"][0]["folder"] for row in table_plan(plan, "bow/table1").dumped()["rows"]]
    assert len(folders) == 5
    assert {plan.find(folder).spec["step"]["length"] for folder in folders} == {length}
