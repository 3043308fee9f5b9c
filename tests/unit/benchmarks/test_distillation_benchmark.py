"""The benchmark of teachers: what runs in the loop learns what the workflow's own tasks learn from kept answers."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from encore.finetuning.distillation import BatchDistillation, PairDistillation
from encore.finetuning.retrieval_task import RetrievalTask
from encore.finetuning.teachers.outputs import write_scores, write_vectors
from encore.models import late_interaction
from encore.models.encoder import Encoder
from tests.support.simulated_gpu import simulated_gpu
from tests.support.whole_loss import whole_loss

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import distillation
from harness import gpu_goals, record, teachers, texts
from harness.setting import Setting
from harness.teachers import ColbertInTheLoop, CrossEncoderOverTheBatch

SETTING = Setting("nano", 500, 24, 4, False, "fp32", 1, "wall", 1, 1)
FIELDS = {
    "kind": "finetune", "collection": "made-up", "negatives": "bm25", "per_query": 1, "batch": 4, "length": 24,
    "query_length": 10, "learning_rate": 1e-5, "steps": 1, "teacher_temperature": teachers.TEMPERATURE,
}  # fmt: skip


class Home:
    """Judged texts, a student, and a teacher with other weights."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store, self.queries = texts.write_judged(folder, 4, 24, 10, 500, full=False)
        torch.manual_seed(1)
        self.student, self.teacher = (Encoder(SETTING.shape(positions=34)).eval() for _ in range(2))

    def step(self, loss: str) -> teachers.FinetuneStep:
        return teachers.FinetuneStep.model_validate(FIELDS | {"loss": loss})

    def loss(self, task: RetrievalTask) -> float:
        examples = [task.example(row, np.random.default_rng(0)) for row in range(4)]
        batch = {name: torch.from_numpy(array) for name, array in task.collate(examples).items()}
        return whole_loss(task, self.student, nn.ModuleDict(), batch)["loss"].item()

    def keep_vectors(self, linear: nn.Module) -> None:
        """What the teacher says of each text by itself, as the workflow keeps it."""
        for name, count, normalised in (("queries", 4, False), ("passages", 8, True)):
            vectors = [self._tokens(linear, getattr(self.store, name)[row], normalised) for row in range(count)]
            write_vectors(self.folder, name, np.arange(count), vectors, "token")

    def _tokens(self, linear: nn.Module, ids: np.ndarray, normalised: bool) -> np.ndarray:
        special = self.store.special
        row = torch.tensor([[special.cls, *ids.tolist(), special.sep]])
        with torch.no_grad():
            found, counted = late_interaction.token_vectors(self.teacher, linear, row, row > 0, normalised)
        return found[counted].numpy()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_teacher_in_the_loop_says_what_its_kept_vectors_say(home: Home) -> None:
    looped = ColbertInTheLoop(home.step("kl-in-batch"), home.queries, home.store, home.teacher)
    home.keep_vectors(looped.linear)
    kept = BatchDistillation(home.step("kl-in-batch"), home.queries, home.store, [home.folder])
    assert home.loss(looped) == pytest.approx(home.loss(kept), rel=1e-2)  # which are kept in float16
    assert home.loss(looped) > 1e-4


def test_a_teacher_in_the_loop_says_what_its_kept_scores_say(home: Home) -> None:
    looped = ColbertInTheLoop(home.step("kl-pairwise"), home.queries, home.store, home.teacher)
    scores = []
    for query in home.queries:
        asked = torch.from_numpy(home._tokens(looped.linear, home.store.queries[query.row], False))
        for passage in (*query.positives, *query.negatives):
            known = torch.from_numpy(home._tokens(looped.linear, home.store.passages[passage], True))
            scores.append(float((asked @ known.T).max(dim=1).values.sum()))
    write_scores(home.folder, np.arange(4).repeat(2), np.arange(8), np.array(scores))
    kept = PairDistillation(home.step("kl-pairwise"), home.queries, home.store, [home.folder])
    assert home.loss(looped) == pytest.approx(home.loss(kept), rel=1e-4)


def test_a_cross_encoder_reads_every_query_with_every_passage(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some pairs at once, of which the last are fewer; each says what it says alone."""
    task = CrossEncoderOverTheBatch(home.step("kl-in-batch"), home.queries, home.store, home.teacher)
    examples = [task.example(row, np.random.default_rng(0)) for row in range(4)]
    batch = {name: torch.from_numpy(array) for name, array in task.collate(examples).items()}
    queries, vectors = task.embed(home.student, batch)
    answers = [
        task.scores({name: torch.from_numpy(row) for name, row in task.joint([(example.query.row, passage)]).items()})
        for example in examples
        for passage in batch["passages"].flatten().tolist()
    ]
    scores, teachers_ = queries @ vectors.flatten(0, 1).T, torch.cat(answers).view(4, 8) / teachers.TEMPERATURE
    expected = (teachers_.softmax(1) * (teachers_.log_softmax(1) - scores.log_softmax(1))).sum(1).mean().item()
    monkeypatch.setattr(teachers, "AT_ONCE", 5)
    assert home.loss(task) == pytest.approx(expected, rel=1e-4)
    assert expected > 1e-4


def test_a_frozen_forward_pass_is_a_third_of_a_training_step(home: Home) -> None:
    """Where neither heads nor scores weigh: what the paper measured at BERT's size."""
    shape = SETTING.shape(positions=34)
    student, teacher = (Encoder(shape) for _ in range(2))
    task = ColbertInTheLoop(home.step("kl-pairwise"), home.queries, home.store, teacher)
    arrays = task.collate([task.example(row, np.random.default_rng(0)) for row in range(4)])
    alone = RetrievalTask.flops(task, student, arrays)
    linear = task.flops(student, arrays) - alone
    assert linear > alone / 3 * 0.99


@pytest.mark.slow
def test_a_quick_measurement_writes_its_record(home: Home, tmp_path: Path) -> None:
    with simulated_gpu():
        contents = distillation.measure(SETTING, tmp_path / "made")
    arms = [row["arm"] for row in contents["arms"]]
    assert arms[0] == "no teacher"
    assert len(set(arms)) == 6
    assert contents["arms"][0]["more_time"] == contents["arms"][0]["more_operations"] == "+0.0 %"
    assert [row["paper"] for row in contents["arms"][3:]] == ["+32.7 %", "+33.5 %", "+48.1 %"]
    written = json.loads(record.write(tmp_path, "here", contents, 0.0).read_text())
    assert written["arms"] == contents["arms"]
    for goal in gpu_goals.GOALS:
        if goal.part == "distillation":
            assert gpu_goals.value_at(written, goal.path) is not None
