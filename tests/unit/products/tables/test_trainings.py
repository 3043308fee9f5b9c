"""What a table says of fine-tunings that differ in more than what it compares, with each unfairness planted."""

import json
from pathlib import Path
from typing import Any

import pytest

from encore.products.catalogue import load_plan
from encore.products.tables.plan import table_plan
from tests.support.small_table import plan, table_of, write_artifact

WELL = {"examples": 2000, "queries": 1000, "best_step": 20, "validations": 5, "equal_validations": 1}
WELL |= {"validation_queries": 400, "flops": 1.0}


def notes(folder: Path, margin: float | None = None, **planted: dict[str, Any]) -> list[str]:
    """The notes on trainings below the small table of two seeds; ``planted``: other facts of a row, or of its seed."""
    table = plan(folder, seeds=2)
    table["significance"] |= {"margin": margin} if margin else {}
    table["validated"] = []
    for row in (row for row in table["rows"] if row["role"] != "baseline" and row["setting"] != "Copied"):
        for seed in range(2):
            facts = WELL | planted.get(row["id"], {}) | planted.get(f"{row['id']}_{seed}", {})
            results = {name: value for name, value in facts.items() if value is not None}
            model = write_artifact(folder / f"model-{row['id']}-{seed}", "config.json", {})
            record = Path(model) / "manifest.json"
            record.write_text(json.dumps(json.loads(record.read_text()) | {"results": results}))
            about = {"setting": row["setting"], "label": row["label"], "seed": seed, "folder": model}
            table["validated"].append(about)
            if seed == 0:
                row["models"] = {row["system"]: {"pretrain": [], "finetune": [model]}}
    told = ("epoch", "few questions", "The kept model")
    return [note for note in table_of(table).footnotes if any(text in note for text in told)]


def test_trainings_that_are_alike_have_no_note(tmp_path: Path) -> None:
    assert notes(tmp_path) == []


def test_less_than_an_epoch_next_to_more_is_noted_with_the_numbers(tmp_path: Path) -> None:
    """As in the record of real text: every row but the control read 5,120 of 7,583 questions."""
    short = {"examples": 5120, "queries": 7583}
    (note,) = notes(tmp_path, none=short, mlm=short, ict=short, control={"examples": 17280, "queries": 7583})
    assert note == (
        "BM25 negatives, RR@10: some rows were fine-tuned for less than one epoch and others for more, NONE and MLM "
        "and ICT with 0.68; CONTROL with 2.28; differences are of the labels that were read too."
    )


def test_less_than_an_epoch_of_all_rows_alike_is_their_recipe(tmp_path: Path) -> None:
    assert notes(tmp_path, **{row: {"examples": 680} for row in ("none", "control", "mlm", "ict")}) == []


@pytest.mark.parametrize(
    ("margin", "questions", "noted"), [(None, 99, True), (None, 100, False), (0.03, 33, True), (0.03, 34, False)]
)
def test_a_validation_that_is_coarser_than_the_gain_is_noted(
    margin: float | None, questions: int, noted: bool, tmp_path: Path
) -> None:
    found = notes(tmp_path, margin, ict={"validation_queries": questions})
    expected = (
        f"Chosen by validations on few questions: ICT [BM25 negatives] with {questions}; one question is more than the "
        f"gain of {margin or 0.01:g} that is asked for."
    )
    assert found == ([expected] if noted else [])


def test_a_kept_model_that_is_the_first_of_equal_ones_is_noted(tmp_path: Path) -> None:
    equal = {"validations": 45, "equal_validations": 45}
    one, two = notes(tmp_path, control_1=equal, ict={"equal_validations": 2})
    assert one == "The kept model of CONTROL [BM25 negatives] is the first of equal validations: seed 1 (45 of 45)."
    assert two == "The kept model of ICT [BM25 negatives] is the first of equal validations: seeds 0 and 1 (2 of 5)."


def test_of_models_that_were_made_before_these_were_recorded_nothing_is_said(tmp_path: Path) -> None:
    gone = dict.fromkeys(("validation_queries", "equal_validations", "validations"))
    assert notes(tmp_path, control=gone) == []


@pytest.mark.usefixtures("at_the_root")
def test_the_plan_names_the_fine_tunings_that_a_validation_chose() -> None:
    """Of nano's table 1 the control's, under each seed and each kind of negatives."""
    layout = table_plan(load_plan(Path("config/nano.yaml")), "table1")
    assert {each.label for each in layout.validated} == {"More fine-tuning (control)"}
    assert all("+control" in each.folder for each in layout.validated)
