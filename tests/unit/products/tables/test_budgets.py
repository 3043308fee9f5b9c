"""A comparison is fair when every objective, and the control, spend the same."""

import json
from dataclasses import replace

import pytest

from encore.commands.flops import budget_complaints
from encore.products.catalogue import load_plan
from encore.products.tables.budgets import RowFlops
from encore.products.tables.plan import table_plan
from tests.support.small_table import plan, table_of, write_artifact


def rows(**changes):
    spent = {"none": (0, 1.0), "control": (0, 3.0), "mlm": (2.0, 1.0), "ict": (1.9, 1.0)} | changes
    roles = {"none": "none", "control": "control"}
    return [RowFlops(row, "s", roles.get(row, "objective"), *values) for row, values in spent.items()]


def test_budgets_within_a_tenth_are_fair():
    assert budget_complaints(rows()) == []


def test_a_cheap_objective_is_named():
    (complaint,) = budget_complaints(rows(ict=(1.7, 1.0)))
    assert "ict" in complaint


def test_a_control_that_spends_too_little_or_too_much_is_named():
    assert "control" in budget_complaints(rows(control=(0, 2.5)))[0]
    assert "control" in budget_complaints(rows(control=(0, 3.5)))[0]


def test_settings_are_compared_apart():
    dear = [RowFlops("mlm", "other", "objective", 9.0, 1.0)]
    assert budget_complaints(rows() + dear) == []


def test_a_control_is_compared_with_the_plain_fine_tuning_of_its_column():
    """With few labels fine-tuning is short, and so is what the control has to be longer than."""
    few, many = ({"none": (0, plain), "control": (0, plain + 2.0), "mlm": (2.0, plain)} for plain in (1.0, 5.0))
    both = [
        RowFlops(row, "s", row if row != "mlm" else "objective", *spent, column)
        for column, own in (("r10-1", few), ("r100-1", few), ("r10-80", many))
        for row, spent in own.items()
    ]
    assert budget_complaints(both) == []
    less = [replace(row, finetuning=2.5) if (row.row, row.column[-2:]) == ("control", "-1") else row for row in both]
    (complaint,) = budget_complaints(less)
    assert complaint.startswith("s: control spends")


def spent(tmp_path, pretraining, finetuning):
    """The small table, with models that took so many operations."""
    table = plan(tmp_path, seeds=1)
    for row in table["rows"]:
        if row["id"] in finetuning:
            row["models"] = {
                row["system"]: {
                    kind: [model(tmp_path / f"{row['id']}-{kind}", flops[row["id"]])] if row["id"] in flops else []
                    for kind, flops in (("pretrain", pretraining), ("finetune", finetuning))
                }
            }
    return [note for note in table_of(table).footnotes if "budget" in note]


def model(folder, flops):
    place = write_artifact(folder, "config.json", {})
    record = folder / "manifest.json"
    record.write_text(record.read_text().replace('"results": {}', f'"results": {{"flops": {flops}}}'))
    return place


def test_the_table_says_by_how_much_budgets_differ(tmp_path):
    """Steps that were calibrated on one collection make unequal budgets on another."""
    finetuning = {"none": 1.0, "control": 3.32, "mlm": 1.0, "ict": 1.0}
    (note,) = spent(tmp_path, {"mlm": 1.72, "ict": 2.0}, finetuning)
    assert note.startswith("Unequal budgets under BM25 negatives: MLM −14%, CONTROL +16% of the operations of the most")


def test_the_table_says_in_which_column_budgets_differ(tmp_path):
    """Where each column has a system: the control is at its budget in the first, and short of it in the second."""
    table, spends = plan(tmp_path, seeds=1), {"none": (1.0, 5.0), "control": (3.0, 6.5), "mlm": (1.0, 5.0)}
    for row in table["rows"]:
        for column, flops in zip(("rr", "ndcg"), spends.get(row["id"], ()), strict=False):
            row["cells"][column] = row["cells"][column] | {"system": f"{row['id']}-{column}"}
            tuned = [model(tmp_path / f"{row['id']}-{column}", flops)]
            before = [model(tmp_path / f"before-{column}", 2.0)] if row["id"] == "mlm" else []
            row.setdefault("models", {})[f"{row['id']}-{column}"] = {"pretrain": before, "finetune": tuned}
    (note,) = [note for note in table_of(table).footnotes if "budget" in note]
    assert note.startswith(
        "Unequal budgets under BM25 negatives: CONTROL in nDCG@10 −25% of the operations of the most"
    )


def test_models_that_were_removed_are_no_budget_that_was_met(tmp_path):
    table = plan(tmp_path, seeds=1)
    table["rows"][1]["models"] = {"tiny": {"pretrain": [], "finetune": [str(tmp_path / "gone")]}}
    assert "Budgets were not compared: models of this table" in " ".join(table_of(table).footnotes)


def test_the_table_says_nothing_of_equal_budgets(tmp_path):
    assert spent(tmp_path, {"mlm": 1.9, "ict": 2.0}, {"none": 1.0, "control": 2.9, "mlm": 1.0, "ict": 1.0}) == []


@pytest.mark.usefixtures("at_the_root")
def test_objectives_without_a_control_are_compared():
    """A table of the catalogue that has none knows the models behind its rows."""
    rows = {row["id"]: row for row in table_plan(load_plan(), "pooling").dumped()["rows"]}
    assert all(row["role"] != "control" for row in rows.values())
    (mlm,), (none,) = (rows[name]["models"].values() for name in ("mlm", "none"))
    assert [len(mlm[kind]) for kind in ("pretrain", "finetune")] == [1, 1]
    assert none["pretrain"] == []


def test_the_table_says_whose_vocabulary_head_began_at_random(tmp_path):
    table = plan(tmp_path, seeds=1)
    for row in table["rows"]:
        if row["id"] in ("mlm", "ict"):
            folder = write_artifact(tmp_path / row["id"], "config.json", {})
            random = ', "random_vocabulary_head": 1' if row["id"] == "mlm" else ""
            record = tmp_path / row["id"] / "manifest.json"
            record.write_text(record.read_text().replace('"results": {}', f'"results": {{"flops": 1{random}}}'))
            row["models"] = {row["system"]: {"pretrain": [folder], "finetune": []}}
    notes = [note for note in table_of(table).footnotes if "vocabulary head" in note]
    assert [note.split(":")[0] for note in notes] == ["MLM"]


def test_the_table_says_which_rates_were_chosen_and_which_trainings_hardly_moved_vectors(tmp_path):
    table = plan(tmp_path, seeds=1)
    cosines = {"none": 0.994, "mlm": 0.7}
    for row in (row for row in table["rows"] if row["id"] in cosines):
        folder = write_artifact(tmp_path / row["id"], "config.json", {})
        found = {"flops": 1, "learning_rate": 3e-05, "validation_before": 0.5, "cosine_to_start": cosines[row["id"]]}
        found |= {"validation_at_1e-05": 0.55, "validation_at_3e-05": 0.625}
        record = tmp_path / row["id"] / "manifest.json"
        record.write_text(record.read_text().replace('"results": {}', f'"results": {json.dumps(found)}'))
        row["models"] = {row["system"]: {"pretrain": [], "finetune": [folder]}}
    rates, unmoved = (note for note in table_of(table).footnotes if "earning" in note or "hardly" in note)
    assert rates == (
        "Learning rates, the best of 1e-05, 3e-05 on validation queries: NONE 3e-05 (0.625; before, 0.500), "
        "MLM 3e-05 (0.625; before, 0.500)."
    )
    assert "(mean cosine to those before: NONE 0.994): that such a row gains nothing does not" in unmoved
