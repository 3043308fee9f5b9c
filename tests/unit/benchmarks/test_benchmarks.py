"""The benchmarks: their arithmetic with known values, their made-up texts, and a run of seconds."""

import json
import os
import re
import runpy
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval

from tests.support import inside
from tests.support.quick_benchmark import ROOT, quick
from tests.support.simulated_gpu import simulated_gpu

sys.path.insert(0, str(ROOT / "benchmarks"))

import cpu
from harness import comparison, figures, gpu_goals, machine, masks, ours, record, steps, texts, timing
from harness.figures import BASE, Measured
from harness.setting import Setting

from encore.data import tokens
from encore.evaluation import significance
from encore.models.encoder import Encoder
from encore.plan.artifact import upstream
from encore.products.catalogue import load_plan
from encore.products.targets import everything_declared, reads_of


def _zeros(*given: Any, encoded: Any = tokens._Writer._encoded) -> tuple[Any, bytes]:
    """As a store's writer, with other ids."""
    counts, ids = encoded(*given)
    return counts, bytes(len(ids))


SETTING = Setting("nano", 500, 32, 4, False, "fp32", 1, "wall", 1, 1)


def test_degeneration_is_that_of_the_paper() -> None:
    printed = {222.658: 17.4, 215.136: 20.2, 85.797: 68.2, 266.359: 1.2}
    assert {speed: round(timing.degeneration(speed, 269.708), 1) for speed in printed} == printed


def test_utilisation_is_operations_over_what_the_machine_can_do() -> None:
    assert timing.utilisation(flops=3e9, seconds=2.0, peak=6e9) == pytest.approx(0.25)


def test_time_that_operations_explain_is_no_overhead() -> None:
    assert timing.overhead(3.0, 30.0, 1.0, 10.0) == pytest.approx(1.0)
    assert timing.overhead(3.3, 30.0, 1.0, 10.0) == pytest.approx(1.1)


def test_the_best_reading_is_the_shortest_by_the_clock_asked_for() -> None:
    readings = [timing.Seconds(3.0, 1.0), timing.Seconds(2.0, 1.5)]
    assert [timing.best(readings, "wall"), timing.best(readings, "cpu")] == [2.0, 1.0]
    assert timing.Seconds(3.0, 2.0) - timing.Seconds(1.0, 0.5) == timing.Seconds(2.0, 1.5)


def measured() -> list[Measured]:
    return [
        Measured(BASE, step=1.0, data=0.1, flops=10e9, batch=10),
        Measured("bow", step=1.25, data=0.15, flops=11e9, batch=10),
    ]


def test_the_papers_table_is_made_of_readings() -> None:
    first, bow = figures.table4(measured())
    assert (first["samples_per_second"], first["degeneration"], first["paper_samples_per_second"]) == (
        10,
        "",
        "269.708",
    )
    assert bow["decoder_seconds"] == pytest.approx(0.2)  # 1.10 without the data, and 0.90
    assert bow["degeneration"] == pytest.approx(20)
    assert (bow["operations_of_mlm"], bow["paper_degeneration"], bow["data_seconds"]) == (1.1, "1.2", 0.15)


def test_every_row_of_the_papers_table_has_its_printed_numbers() -> None:
    every = [Measured(name, 1.0, 0.1, 1e9, 8) for name, *_ in figures.TABLE4]
    printed = [row["paper_degeneration"] for row in figures.table4(every)]
    assert printed == ["", "17.4", "20.2", "68.2", "1.2"]


def test_goals_say_whether_they_are_reached() -> None:
    rows = figures.rows(measured(), peak=20e9)
    assert rows[0]["utilisation"] == pytest.approx(0.5)
    found = {row["goal"]: (row["value"], row["reached"]) for row in figures.goals(rows, trainer=2.6, base=True)}
    assert found == {
        "MLM step, speed relative to Trainer": (2.6, True),
        "bow, speed relative to MLM 30 %": (0.8, False),
        "bow, time over operations relative to MLM 30 %": (1.136, False),
    }
    assert len(figures.goals(rows, trainer=None, base=False)) == 1


def test_made_up_texts_are_as_long_as_passages(tmp_path: Path) -> None:
    store = texts.write(tmp_path, 2000, 512, 30522, full=False)
    lengths = np.add.reduceat(store.sentences.lengths, store.sections[:-1])
    assert lengths[1:].mean() == pytest.approx(77, abs=2)
    assert store.continues[store.sentences.ids].mean() == pytest.approx(texts.CONTINUED, abs=0.01)
    assert store.sentences.ids.min() >= 5
    assert store.sentences.ids.max() < 30522
    assert sum(texts.histogram(lengths).values()) == 2000


def test_masks_made_row_by_row_are_ours() -> None:
    (row,) = masks.compare(SETTING, [24])
    assert row["tokens"] == 24
    assert row["ratio"] == pytest.approx(row["row_by_row_ms"] / row["ours_ms"], rel=1e-2)


def test_a_markdown_table_has_a_line_a_row() -> None:
    assert record.table([{"a_b": 1, "c": True}]) == ["| a b | c |", "| --- | --- |", "| 1 | yes |"]


@pytest.mark.skipif(find_spec("transformers") is None, reason="the peer needs transformers")
@pytest.mark.slow
def test_a_quick_run_writes_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a simulated GPU. The losses of both sides are compared in the run, which fails where they differ."""
    monkeypatch.setattr(timing, "PEAK_SIZE", dict.fromkeys(timing.PEAK_SIZE, 64))
    name = "pretraining-512"  # whose goals gpu.py looks for
    words = ["--quick", "--threads", "1", "--only", "bow", "enhanced", "--output", str(tmp_path), "--name", name]
    program = str(ROOT / "benchmarks/pretraining.py")
    with simulated_gpu():
        done = inside.ended("pretraining", words, ROOT, lambda: runpy.run_path(program, run_name="__main__"))
    assert done.returncode == 0, done.stderr
    contents = json.loads((tmp_path / f"{name}.json").read_text())
    assert [row["name"] for row in contents["objectives"]] == ["MLM 15 %", BASE, "bow", "enhanced"]
    for row in contents["objectives"]:
        assert 0 < row["wait_percent"] < 100 - row["launch_percent"] < 100
    assert contents["peer"]["our_loss"] == pytest.approx(contents["peer"]["loss"], rel=1e-4)
    assert [row["label"] for row in contents["table4"]] == ["Further Pre-train", "Enhanced Decoding", "BoW Prediction"]
    assert {goal["goal"] for goal in contents["goals"]} >= {"MLM step, speed relative to Trainer"}
    assert contents["machine"]["cores"] == os.cpu_count()
    assert contents["date"]
    judged = {row["goal"]: row["measured"] for row in gpu_goals.judged(tmp_path)}
    speeds = {row["name"]: row["speed_of_mlm"] for row in contents["objectives"]}
    assert judged["MLM of 512, full texts, share of the GPU's best product"] == contents["objectives"][0]["utilisation"]
    assert judged["MLM of 512, speed relative to Hugging Face"] == contents["peer"]["ratio"]
    assert judged["enhanced of 512, speed relative to MLM 30 %"] == speeds["enhanced"]
    assert judged["autoencoding of 512, speed relative to MLM 30 %"] == ""


def test_nothing_can_be_as_fast_in_fp32_with_minilm_as_was_aimed_at() -> None:
    """As the page says: it would be faster than the processor's best products of matrices."""
    contents = json.loads((ROOT / "benchmarks/results/encoding-cpu-2core.json").read_text())
    (part,) = [part for part in contents["parts"] if part["texts"].startswith("passages")]
    (peer,) = [row for row in part["rows"] if row["speed"] == 1]
    assert peer["way"] == "sentence-transformers, batches of 16"
    assert 1.5 * peer["share_of_peak"] > 1


def test_bf16_shortens_the_time_of_both_programs_as_the_page_says() -> None:
    contents = json.loads((ROOT / "benchmarks/results/encoding-cpu-2core.json").read_text())
    for part in contents["parts"][1:]:
        speed = {row["way"]: row["speed"] for row in part["rows"]}
        assert 1.6 < speed["Encore, from texts, in bf16"] / speed["Encore, from texts"] < 2.4
        assert 1.4 < speed["sentence-transformers, batches of 16, in bf16"] < 2.4
    reached = {goal["reached"] for goal in contents["goals"]}
    assert reached == {False}


def test_ways_take_turns_and_the_best_turn_of_each_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, now = iter([3.0, 1.0, 2.0, 5.0]), [0.0]
    monkeypatch.setattr(timing, "now", lambda: timing.Seconds(0.0, now[0]))

    def work(name: str) -> str:
        now[0] += next(taken)
        return name

    given, seconds = comparison.in_turns({name: partial(work, name) for name in ("theirs", "ours")}, 2)
    assert given == {"theirs": "theirs", "ours": "ours"}
    assert seconds == {"theirs": 2.0, "ours": 1.0}
    rows = comparison.rows(seconds, 10, "texts", base="theirs")
    assert [(row["texts_per_second"], row["speed"]) for row in rows] == [(5.0, 1.0), (10.0, 2.0)]


def quickly(part: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A part at tiny sizes, in this process."""
    program, needed = str(ROOT / f"benchmarks/{part}.py"), {"encoding": "sentence_transformers", "tokens": "datasets"}
    if part in needed:
        pytest.importorskip(needed[part])
    given = [*cpu.PARTS[part][2], *words]
    return inside.ended(part, given, ROOT, lambda: runpy.run_path(program, run_name="__main__"))


QUICK = ("evaluation", "runs", "search", "randomisation")
SLOW = [pytest.param(part, marks=pytest.mark.slow) for part in ("encoding", "tokens", "examples")]


@pytest.mark.parametrize("part", [*QUICK, *SLOW])
def test_a_part_compares_outputs_and_writes_its_record(part: str, tmp_path: Path) -> None:
    """It fails where its outputs differ from its peers'."""
    done = quickly(part, "--output", str(tmp_path), "--name", "here")
    assert done.returncode == 0, done.stderr
    contents = json.loads((tmp_path / "here.json").read_text())
    assert {"setting", "agreement", "goals", "machine", "versions", "date"} <= set(contents)
    assert "| speed |" in done.stdout


@pytest.mark.parametrize(
    ("part", "owner", "name", "instead", "says"),
    [
        ("runs", pytrec_eval, "parse_run", lambda file: {}, "pytrec_eval, plain text reads another run than was w"),
        ("randomisation", significance, "randomised", lambda *_: [1.0], r"p is 1 here and [\d.e-]+ there"),
        ("tokens", tokens._Writer, "_encoded", _zeros, "Encore, a token store: other ids than those of tokenizers"),
    ],
)
def test_another_output_fails_the_part(
    part: str, owner: Any, name: str, instead: Any, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, instead)
    done = quickly(part, "--output", str(tmp_path))
    assert done.returncode == 1
    assert re.search(f"error: {says}", done.stderr)


def test_the_parts_of_make_bench_end_in_half_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has time of its own, and may take what others do not need; the last one waits for ever."""
    given = []

    def part(name: str, command: list[str], most: float, log: Path) -> dict[str, object]:
        given.append(most)
        return {"part": name, "ended": "done", "seconds": most if name == "finetuning" else 10.0}

    monkeypatch.setattr(cpu, "run_part", part)
    every = cpu.commands(list(cpu.PARTS), ROOT, quick=False)
    assert len(cpu.run_all(every)) == len(cpu.PARTS) + 1  # the data of fine-tuning
    assert given[0] == cpu.OF_DATA  # which comes first
    assert given[-1] + 10.0 * (len(given) - 1) == cpu.TOTAL <= 1800
    given.clear()
    cpu.run_all({"search": every["search"]})
    assert given == [cpu.TOTAL]


@pytest.mark.slow
def test_the_parts_of_make_bench_survive_each_other(tmp_path: Path) -> None:
    (tmp_path / f"runs-{machine.name()}.json").mkdir()  # so that this part cannot write its record
    done = quick("cpu", tmp_path, "--only", "runs", "evaluation")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.findall(r"^\| (\w+) \| (done|exit code 1) \|", done.stdout, re.MULTILINE) == [
        ("runs", "exit code 1"),
        ("evaluation", "done"),
    ]
    assert "runs failed (exit code 1)" in done.stdout
    assert "| evaluation from text, the check included, speed relative to pytrec_eval |" in done.stdout


def test_bare_snakemake_plans_what_the_plan_has(tmp_path: Path) -> None:
    import planning

    plan = load_plan(ROOT / "config/nano.yaml")
    files = planning.inputs(plan)
    made = upstream(reads for target in everything_declared(plan) for reads in reads_of(plan, target))
    assert sum(map(len, list(files.values())[: len(made)])) == sum(len(each.inputs) for each in made)
    assert len(files["all"]) == len(files) - 1 > len(made)
    assert set(chain(*files.values())) <= set(files["all"])


def test_a_step_is_cut_into_waiting_launching_and_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that stands still but where a batch is made, for 2 seconds (the first: 50), and learned, for 5."""
    step, waits, spent = ours.step_of("mlm", {}, SETTING), iter([50.0]), [0.0]
    monkeypatch.setattr(timing, "clock", lambda: timing.Seconds(sum(spent), sum(spent)))
    task = ours.load(step, texts.write(tmp_path, 64, SETTING.length, SETTING.vocabulary, full=True))
    make, learn = task.collate, task.forward
    task.collate = lambda examples: spent.append(next(waits, 2.0)) or make(examples)
    task.forward = lambda *given: spent.append(5.0) or learn(*given)
    encoder = Encoder(SETTING.shape())
    found = steps.measured(task, encoder, task.heads(encoder), step, SETTING.numerics(), warm=1, count=5)
    assert (found.seconds, found.wait, found.launch) == (timing.Seconds(7.0, 7.0), 2.0, 5.0)
    arrays = task.collate([task.example(row, np.random.default_rng(0)) for row in range(4)])
    assert found.flops == pytest.approx(task.flops(encoder, arrays), rel=0.2)
    row = found.row(batch=4, peak=1e12)
    assert row["samples_per_second"] == pytest.approx(4 / 7, rel=1e-3)
    assert (row["wait_percent"], row["launch_percent"]) == pytest.approx((200 / 7, 500 / 7), rel=1e-3)
