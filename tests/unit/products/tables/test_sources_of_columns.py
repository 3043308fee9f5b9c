"""Where a column's values come from besides measures: losses, counts, lengths, means; by hand, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.products.tables import formats
from encore.products.tables.layout import Layout
from encore.storage import manifest
from tests.support.small_table import NUMERIC, entries_of, lines_of, notes_of, plan, row_of, table_of, write_artifact

LOSS_OF = {"mlm": 2.5, "ict": None}
LOSSES = "step\tloss\tmlm\tbow\n0\t9.5\t6.5\t3.0\n10\t4.25\t{mlm}\t2.0\n"


def add(table: dict[str, Any], column: dict[str, Any], cells: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The table with one more column; rows without a cell of their own have an empty one."""
    table["columns"].append({"label": column["id"], **column})
    for row in table["rows"]:
        row["cells"][column["id"]] = cells.get(row["id"], {})
    return table


def reads(*folders: str, seeds: bool = True) -> list[dict[str, Any]]:
    return [{"seed": number if seeds else None, "folder": folder} for number, folder in enumerate(folders)]


def with_losses(tmp_path: Path, term: str = "mlm") -> dict[str, Any]:
    models = [
        write_artifact(tmp_path / f"m{n}", "held_out.tsv", LOSSES.format(mlm=mlm)) for n, mlm in enumerate((2, 3))
    ]
    return add(
        plan(tmp_path, seeds=2), {"id": "l", "source": "held_out"}, {"ict": {"value": term, "reads": reads(*models)}}
    )


def with_statistics(tmp_path: Path, key: str, content: Any) -> dict[str, Any]:
    folder = write_artifact(tmp_path / "collection", "statistics.json", content)
    (tmp_path / "collection/corpus.jsonl.gz").write_bytes(b"large")
    cell = {"value": key, "reads": reads(folder, seeds=False)}
    return add(plan(tmp_path, seeds=1), {"id": "n", "label": "N", "source": "statistic"}, {"ict": cell})


def means(table: dict[str, Any], name: str, *parts: str, **column: Any) -> dict[str, Any]:
    return add(table, {"id": name, "label": name, "source": "mean_of", "mean_of": list(parts), **column}, {})


def test_a_loss_is_its_last_value_for_each_seed(tmp_path: Path) -> None:
    table = with_losses(tmp_path)
    lines = lines_of(tmp_path, table_of(table))
    line = lines["ict", "held-out mlm"]
    assert (line["reproduced"], float(line["sd"]), line["seeds"]) == ("2.5", pytest.approx(0.5**0.5), "2")
    assert {value for key, value in line.items() if key.startswith(("delta", "p_", "tie", "queries"))} == {""}
    shown = table_of(table)
    assert "l: at the end of the last pre-training step, on its own held-out texts." in notes_of(shown)
    entries = {label: entries[3] for label, entries in entries_of(shown).items()}
    assert (entries["ICT"].text, entries["ICT"].best, entries["MLM"].text) == ("2.5000 ±0.7071", False, "")


def test_a_gain_is_taken_under_each_seed_that_both_rows_have(tmp_path: Path) -> None:
    """The other row's runs may lie in another order, and it has no gain over itself."""
    gain = {"id": "gain", "label": "Gain", "source": "gain", "gain": {"of": "rr", "over": "none"}}
    table = add(plan(tmp_path, seeds=3), gain, {})
    values = {
        name: [scores.read_scores(tmp_path / f"{name}-s{seed}")["test", "RR@10"].values.mean() for seed in range(3)]
        for name in ("ict", "none")
    }
    of_none = row_of(table, "none")["cells"]["rr"]
    for shared in ([0, 1, 2], [2, 1]):
        of_none["reads"] = [{"seed": seed, "folder": str(tmp_path / f"none-s{seed}")} for seed in shared]
        lines = lines_of(tmp_path, table_of(table))
        line, own = lines["ict", "gain of rr over none"], lines["none", "gain of rr over none"]
        gains = [values["ict"][seed] - values["none"][seed] for seed in shared]
        assert float(line["reproduced"]) == pytest.approx(np.mean(gains), abs=1e-11)
        assert float(line["sd"]) == pytest.approx(np.std(gains, ddof=1), abs=1e-11)
        assert (line["seeds"], own["reproduced"], own["sd"]) == (str(len(shared)), "", "")


def test_a_gain_over_a_row_without_seeds_is_taken_under_each_seed_and_the_other_way_round(tmp_path: Path) -> None:
    gain = {"id": "gain", "label": "Gain", "source": "gain", "gain": {"of": "rr", "over": "none"}}
    for fixed in ("none", "ict"):
        table = add(plan(tmp_path, seeds=1), dict(gain), {})
        row_of(table, fixed)["cells"]["rr"]["reads"] = [{"seed": None, "folder": str(tmp_path / f"{fixed}-s0")}]
        line = lines_of(tmp_path, table_of(table))["ict", "gain of rr over none"]
        own, other = (scores.read_scores(tmp_path / f"{name}-s0")["test", "RR@10"].values for name in ("ict", "none"))
        assert float(line["reproduced"]) == pytest.approx(own.mean() - other.mean(), abs=1e-11)


def test_the_lowest_loss_under_one_mask_is_the_best(tmp_path: Path) -> None:
    found = {
        name: write_artifact(tmp_path / name, "loss.json", {"loss": loss, "texts": 9})
        for name, loss in (("none", 2.9), ("mlm", 1.9), ("ict", 2.0))
    }
    cells = {name: {"value": "mlm", "reads": reads(folder)} for name, folder in found.items()}
    shown = table_of(add(plan(tmp_path, seeds=1), {"id": "l", "source": "masked_loss"}, cells))
    bold = {label: entries[3].best for label, entries in entries_of(shown).items() if entries[3].text}
    assert list(bold.values()).count(True) == 1
    assert bold["MLM"]
    assert any("lower is better" in note for note in notes_of(shown))


def test_a_loss_that_a_step_does_not_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match=r"m0/held_out\.tsv has no 'ict', only loss, mlm, bow; .*`not_applicable`"):
        table_of(with_losses(tmp_path, term="ict"))


def test_a_statistic_is_found_by_its_keys_even_with_full_stops_in_them(tmp_path: Path) -> None:
    content = {"passages": 1234567, "splits": {"test-80.sentence": {"queries": 12}}, "ratio": 0.125, "packages": ["a"]}
    for key, number, text in (
        ("passages", "1234567.0", "1,234,567"),
        ("splits.test-80.sentence.queries", "12.0", "12"),
        ("ratio", "0.125", "0.12"),
    ):
        shown = table_of(with_statistics(tmp_path, key, content))
        assert lines_of(tmp_path, shown)["ict", f"statistic {key}"]["reproduced"] == number
        assert text in formats.render(shown, "md")
    for key in ("packages", "splits", "queries"):
        with pytest.raises(EncoreError, match=rf"statistics\.json has no number '{key}'"):
            table_of(with_statistics(tmp_path, key, content))


def test_of_a_large_folder_only_what_is_read_is_verified(tmp_path: Path) -> None:
    table = Layout.model_validate(with_statistics(tmp_path, "passages", {"passages": 1}))
    found = table.reads()
    assert found[tmp_path / "collection"] == ("statistics.json",)
    assert {files for folder, files in found.items() if folder != tmp_path / "collection"} == {None}
    for folder, files in found.items():
        manifest.verify(folder, files)


def test_a_length_is_the_mean_over_texts(tmp_path: Path) -> None:
    folder = tmp_path / "tokens"
    folder.mkdir()
    np.save(folder / "queries.offsets.npy", np.array([0, 3, 4, 12]))
    cell = {"value": "queries", "reads": reads(str(folder), seeds=False)}
    table = add(plan(tmp_path, seeds=1), {"id": "q", "source": "tokens"}, {"ict": cell})
    assert lines_of(tmp_path, table_of(table))["ict", "tokens of queries"]["reproduced"] == "4.0"
    assert "queries.offsets.npy" in (Layout.model_validate(table).reads()[folder] or ())


def test_a_mean_is_of_means_for_each_seed_and_is_never_tested(tmp_path: Path) -> None:
    table = means(means(plan(tmp_path, seeds=3), "both", "rr", "ndcg"), "of a mean", "both", "rr")
    lines = lines_of(tmp_path, table_of(table))
    line = lines["ict", "mean of rr ndcg"]
    folders = [read["folder"] for read in row_of(table, "ict")["cells"]["rr"]["reads"]]
    found = [scores.read_scores(Path(folder)) for folder in folders]
    each = [(one["test", "RR@10"].values.mean() + one["graded", "nDCG@10"].values.mean()) / 2 for one in found]
    assert float(line["reproduced"]) == pytest.approx(np.mean(each), abs=1e-11)
    assert float(line["sd"]) == pytest.approx(np.std(each, ddof=1), abs=1e-11)
    assert float(line["tie_low"]) == pytest.approx(np.mean(each) - 0.0005, abs=1e-11)
    assert {line[key] for key in line if key.startswith(("delta", "p_", "queries"))} | {line["markers"]} == {""}
    above = (float(line["reproduced"]) + float(lines["ict", "RR@10"]["reproduced"])) / 2
    assert float(lines["ict", "mean of both rr"]["reproduced"]) == pytest.approx(above, abs=1e-11)
    assert lines["bm25", "mean of rr ndcg"]["seeds"] == ""
    shown = table_of(table)
    assert "both: the mean of RR@10, nDCG@10; not tested." in notes_of(shown)
    assert entries_of(shown)["ICT"][3].best


def test_a_mean_of_what_is_not_there_is_not_there(tmp_path: Path) -> None:
    table = means(plan(tmp_path, seeds=1), "both", "rr", "ndcg")
    row_of(table, "ict")["cells"]["ndcg"]["reads"] = []
    line = lines_of(tmp_path, table_of(table))["ict", "mean of rr ndcg"]
    assert {line[name] for name in line if name.startswith(NUMERIC)} == {""}


def test_a_mean_of_runs_under_other_seeds_is_refused(tmp_path: Path) -> None:
    table = means(plan(tmp_path, seeds=2), "both", "rr", "ndcg")
    cell = row_of(table, "ict")["cells"]["ndcg"]
    cell["reads"] = [read | {"seed": read["seed"] + 7} for read in cell["reads"]]
    with pytest.raises(EncoreError, match="different seeds"):
        table_of(table)


@pytest.mark.parametrize("fixed", ["rr", "ndcg"])
def test_a_mean_with_a_cell_without_seeds_is_taken_under_each_seed(tmp_path: Path, fixed: str) -> None:
    table = means(plan(tmp_path, seeds=1), "both", "rr", "ndcg")
    (read,) = row_of(table, "ict")["cells"][fixed]["reads"]
    read["seed"] = None
    lines = lines_of(tmp_path, table_of(table))
    parts = [float(lines["ict", name]["reproduced"]) for name in ("RR@10", "nDCG@10")]
    assert float(lines["ict", "mean of rr ndcg"]["reproduced"]) == pytest.approx(sum(parts) / 2, abs=1e-11)


def test_a_hidden_column_is_data_and_not_shown(tmp_path: Path) -> None:
    table = means(plan(tmp_path), "both", "rr", "ndcg")
    table["columns"][1]["hidden"] = True
    shown = table_of(table)
    assert shown.header()[:3] == ["", "RR@10", "both"]
    assert {len(entries) for entries in entries_of(shown).values()} == {len(shown.header())}
    assert lines_of(tmp_path, shown)["ict", "nDCG@10"]["reproduced"] != ""


def test_rows_without_a_setting_have_no_heading(tmp_path: Path) -> None:
    table = plan(tmp_path, seeds=1)
    for row in table["rows"]:
        row["setting"] = ""
    shown = table_of(table)
    assert len([line for line in formats.render(shown, "md").splitlines() if line.startswith("|")]) == 2 + 6
    assert "multicolumn" not in formats.render(shown, "tex")
    assert "rowgroup" not in formats.render(shown, "html")


def test_a_loss_on_masked_words_is_there_only_for_models_that_can_tell_them(tmp_path: Path) -> None:
    folders = {name: write_artifact(tmp_path / name, "loss.json", {"loss": loss}) for name, loss in LOSS_OF.items()}
    cells = {row: {"value": "mlm", "reads": reads(folders[row])} for row in LOSS_OF}
    table = add(plan(tmp_path, seeds=1), {"id": "w", "label": "W", "source": "masked_loss"}, cells)
    lines = lines_of(tmp_path, table_of(table))
    assert [lines[row, "masked loss as mlm"]["reproduced"] for row in LOSS_OF] == ["2.5", ""]
    notes = notes_of(table_of(table))
    assert sum("the same words masked for all models" in note for note in notes) == 1
    assert f"No vocabulary head, so no loss on masked words: {[*LOSS_OF][1].upper()}." in notes


def test_how_vectors_lie_is_read_for_each_seed(tmp_path: Path) -> None:
    folders = [
        write_artifact(tmp_path / f"v{n}", "inspection.json", {"texts": 300, "mean_cosine": cosine})
        for n, cosine in enumerate((0.25, 0.75))
    ]
    cells = {"ict": {"value": "mean_cosine", "reads": reads(*folders)}}
    table = add(plan(tmp_path, seeds=2), {"id": "v", "label": "V", "source": "vectors"}, cells)
    assert lines_of(tmp_path, table_of(table))["ict", "vectors: mean_cosine"]["reproduced"] == "0.5"
    assert "0.50 ±0.35" in [entry.text for entry in entries_of(table_of(table))["ICT"]]
    assert "Cosine: the mean cosine of the vectors of two texts." in notes_of(table_of(table))
