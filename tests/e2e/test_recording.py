"""A finished run is recorded, and what is not its own or was altered is not."""

import csv
import json

from tests.support.clones import Clone, Done

CONFIG = ("--config", "config/nano.yaml")


def record(clone: Clone) -> Done:
    return clone.program("docs/results.py", "record", "trial", *CONFIG, env={"PYTHONPATH": str(clone.root / "src")})


def test_a_run_is_recorded_as_it_is(nano: Clone) -> None:
    record(nano).succeeded()
    folder = nano.root / "docs/recorded/trial"
    provenance = json.loads((folder / "run.json").read_text())
    assert provenance["config"] == "config/nano.yaml"
    assert provenance["seeds"] == [0]
    assert provenance["artifacts"] > 10
    assert provenance["cpu_hours"] > 0
    assert {"per_seed.csv", "tables/table1.queries.csv.gz", "trainings.csv"} <= provenance["files"].keys()
    with (folder / "trainings.csv").open(newline="", encoding="utf-8") as file:
        models = {(line["row"], line["stage"]): line for line in csv.DictReader(file)}
    assert models["ict", "pretrain.ict"]["learning_rate"] == "0.003"
    assert models["control", "finetune"]["kept_step"] in ("6", "12", "17")
    again = nano.program("docs/judge_again.py", "trial").succeeded()
    assert "words were judged again, 0 differ" in again
    for name in ("tables/table1.csv", "tables/table1.md", "figures/table1.png"):
        assert name in provenance["files"]
        assert (folder / name).read_bytes() == (nano.root / "results" / name).read_bytes()


def test_a_run_that_was_altered_is_not_recorded(nano: Clone) -> None:
    table = nano.root / "results/tables/table1.csv"
    table.write_text(table.read_text().replace("0.", "0.9", 1))
    assert "results/tables/table1" in record(nano).error()
    assert not (nano.root / "docs/recorded/trial").exists()


def test_a_run_that_is_not_finished_is_not_recorded(nano: Clone) -> None:
    nano.replace("config/nano.yaml", "seeds: [0]", "seeds: [0, 1]")
    assert "only an intact run is recorded" in record(nano).error()
