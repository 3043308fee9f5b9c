"""Rows of one table that were trained at different rates: noted, or refused, unless trials show equal choice."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.plan.tuning import Trial
from encore.products.catalogue import load_plan
from encore.products.tables.plan import table_plan, table_to_make
from tools.tune import write_trials

pytestmark = pytest.mark.usefixtures("at_the_root")

ROWS = ["BM25 negatives: none", "BM25 negatives: control", "BM25 negatives: ict"]
UNLIKE = (
    "fine-tuned at different learning rates, No pre-training and ICT at 0.001; More fine-tuning (control) at 0.002. "
)


def plan_of(**rates: float) -> Plan:
    """Nano's plan of three rows of table 1; it fine-tunes at 0.001, and its ICT has 0.003."""
    content = yaml.safe_load(Path("config/nano.yaml").read_text()) | {"tables": {"table1": ROWS}}
    for step, rate in rates.items():
        content["scale"]["steps"].setdefault(step, {})["learning_rate"] = rate
    return load_plan(given=content)


def tried(row: str, step: str, *rates: float, recipe: float | None = None, best: float) -> list[Trial]:
    """A trial for each rate of a step; those of a pre-training are fine-tuned at the rate ``recipe``."""
    after = f"+marco-bm25~learning_rate={recipe}" if recipe else ""
    return [
        Trial(
            row,
            step,
            {"learning_rate": rate},
            f"tiny+{step}~learning_rate={rate}{after}",
            "12345678",
            "valid",
            "RR@10",
            0.5,
            chosen=rate == best,
            recipe=after[1:],
        )
        for rate in rates
    ]


def crossed() -> dict[str, list[Trial]]:
    """Four trials of each row, chosen at the rates of a run whose control has 0.002."""
    rates = (0.0005, 0.001, 0.002, 0.004)
    ict = [*tried("ict", "ict", 0.003, 0.002, recipe=0.001, best=0.003)]
    ict += tried("ict", "ict", 0.003, 0.002, recipe=0.002, best=0)
    return {
        "none": tried("none", "marco-bm25", *rates, best=0.001),
        "control": tried("control", "control", *rates, best=0.002),
        "ict": ict,
    }


def record(folder: Path, trials: dict[str, list[Trial]], monkeypatch: pytest.MonkeyPatch) -> None:
    write_trials(folder / "planted.csv", [each for own in trials.values() for each in own])
    monkeypatch.setattr("encore.plan.tuning.TUNING", folder)


def notes_of(plan: Plan) -> list[str]:
    return [
        note for note in table_plan(plan, "table1").notes if "rates of pre-training" in note or "learning rate" in note
    ]


def test_rows_of_different_rates_without_trials_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path, {}, monkeypatch)
    assert notes_of(plan_of()) == []
    (note,) = notes_of(plan_of(control=0.002))
    assert note.startswith(
        f"BM25 negatives, MRR@10: {UNLIKE}No trials show that each row had the same choice (no trial of"
    )
    assert note.endswith("so differences are of the rates too.")


def test_a_pretraining_whose_rate_was_searched_unlike_anothers_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, {"ict": tried("ict", "ict", 0.003, 0.002, recipe=0.001, best=0.003)}, monkeypatch)
    assert notes_of(plan_of()) == [], "nothing else is pre-trained"
    content = yaml.safe_load(Path("config/nano.yaml").read_text())
    content["tables"] = {"table1": [*ROWS, "BM25 negatives: mlm"]}
    (note,) = notes_of(load_plan(given=content))
    assert "rates of pre-training that were tried: Further MLM with 0; ICT with 2" in note


def without(trials: dict[str, list[Trial]], row: str, *places: int) -> dict[str, list[Trial]]:
    return trials | {row: [each for place, each in enumerate(trials[row]) if place not in places]}


@pytest.mark.parametrize(
    ("planted", "reason"),
    [
        (lambda trials: trials, ""),
        (
            lambda trials: without(trials, "ict", 0, 1, 2, 3),
            "no trial of ICT was chosen at its rates (0.003 then 0.001)",
        ),
        (
            lambda trials: without(trials, "none", 0),
            "they had unequally many: No pre-training with 3; More fine-tuning",
        ),
        (lambda trials: without(trials, "ict", 2, 3), "ICT tried no second rate of fine-tuning with its own"),
        (
            lambda trials: trials | {"control": [replace(each, chosen=False) for each in trials["control"]]},
            "no trial of More fine-tuning (control) was chosen at its rates (0.002)",
        ),
        (
            lambda trials: (
                trials | {"none": [replace(each, lineage=f"other{each.lineage[4:]}") for each in trials["none"]]}
            ),
            "no trial of No pre-training was chosen",
        ),
    ],
    ids=["crossed", "no trials", "fewer", "not crossed", "not the best", "another start"],
)
def test_crossed_trials_are_all_that_a_table_with_such_a_promise_accepts(
    planted, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, planted(crossed()), monkeypatch)
    plan = plan_of(control=0.002)
    assert bool(notes_of(plan)) == bool(reason)
    table = plan.catalogue.tables["table1"]
    promise = table.significance.model_copy(update={"crossed": True})
    monkeypatch.setitem(plan.catalogue.tables, "table1", table.model_copy(update={"significance": promise}))
    table_plan(plan, "table1")  # which trials are made with
    if not reason:
        assert table_to_make(plan, "table1").significance.crossed
        return
    with pytest.raises(EncoreError) as refused:
        table_to_make(plan, "table1")
    assert reason in str(refused.value)
    assert str(refused.value).startswith("table 'table1', MRR@10: `crossed` promises")
