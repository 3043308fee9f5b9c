"""Columns of recorded costs and of single stages: what they read, what they say of the machine, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from encore.config.run import RunConfig
from encore.config.validation import checked, read_yaml
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.tables import formats
from encore.products.tables.entries import ColumnEntry
from encore.products.tables.plan import table_plan
from encore.storage.files import sha256
from tests.support.small_table import lines_of, notes_of, plan, table_of, with_costs, write_artifact

RECORD: dict[str, Any] = {
    "setting": {"model": "nano", "length": 32, "batch": 4, "precision": "fp32", "threads": 2},
    "table4": [
        {"label": "MLM", "samples_per_second": 1.25, "degeneration": ""},
        {"label": "BoW", "samples_per_second": 1.2, "degeneration": -2.119},
    ],
    "arms": [{"arm": "pairwise, ColBERT", "more_time": "+25.2 %"}],
    "machine": {"processor": "A Processor", "accelerator": "A GPU"},
}


def table(tmp_path: Path, cells: dict[str, str], record: Any = RECORD) -> dict[str, Any]:
    """The small table with a recorded column; ``cells``: what a row asks for."""
    path = tmp_path / "record.json"
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    made = plan(tmp_path, seeds=1)
    made["columns"].append({"id": "speed", "label": "Samples/s", "source": "recorded"})
    for row in made["rows"]:
        asked = cells.get(row["id"])
        row["cells"]["speed"] = {"value": asked, "record": str(path)} if asked else {}
    return made


def test_a_number_is_found_by_its_keys_and_by_names_of_entries(tmp_path: Path) -> None:
    cells = {
        "none": "pretraining/table4/MLM/samples_per_second",
        "mlm": "pretraining/table4/BoW/degeneration",
        "ict": "pretraining/arms/pairwise, ColBERT/more_time",
        "control": "pretraining/table4/MLM/degeneration",
    }
    shown = table_of(table(tmp_path, cells))
    lines = lines_of(tmp_path, shown)
    assert lines["none", "recorded samples_per_second"]["reproduced"] == "1.25"
    assert lines["mlm", "recorded degeneration"]["reproduced"] == "-2.119"
    assert lines["ict", "recorded more_time"]["reproduced"] == "25.2"
    assert lines["control", "recorded degeneration"]["reproduced"] == ""
    assert "−2.119" in formats.render(shown, "md")
    assert (
        "Samples/s: recorded on A Processor, A GPU, 2 threads, with a model of shape nano, texts of 32 tokens, "
        f"batches of 4 and fp32 ({tmp_path}/record.json). Not tested." in notes_of(shown)
    )


@pytest.mark.parametrize(
    ("asked", "record", "says"),
    [
        ("r/table4/BOW/samples_per_second", RECORD, "no 'BOW' for .*; did you mean BoW"),
        ("r/table5/BoW/samples_per_second", RECORD, "no 'table5'"),
        ("r/table4/BoW/label", RECORD, "is 'BoW', not a number"),
        ("r/table4/BoW", RECORD, ", not a number; name another key"),
        ("r/table4/BoW/label/x", RECORD, "no 'x'"),
        ("r/table4/BoW/x", "{", "is not a record of a measurement"),
        ("r/table4/BoW/x", {"table4": []}, "is not a record of a measurement"),
    ],
)
def test_what_a_record_does_not_have_is_one_line(tmp_path: Path, asked: str, record: Any, says: str) -> None:
    with pytest.raises(EncoreError, match=says) as refusal:
        table_of(table(tmp_path, {"ict": asked}, record))
    assert "\n" not in str(refusal.value)


def make(catalogue: Any, **fields: Any) -> Plan:
    content = read_yaml(Path("config/nano.yaml")) | fields
    return Plan(checked(RunConfig, content, "nano"), catalogue)


def test_a_slice_has_the_digest_of_its_record_and_needs_no_run(catalogue: Any, at_the_root: None) -> None:
    made = make(catalogue)
    path = made.config.records["pretraining"]
    found = table_plan(made, "bow/table4").dumped()
    assert found["records_sha256"] == {path: sha256(Path(path))}
    assert {row["cells"]["speed"]["record"] for row in found["rows"]} == {path}
    assert [read for row in found["rows"] for cell in row["cells"].values() for read in cell["reads"]] == []
    assert "records_sha256" not in table_plan(made, "table1").dumped()


def test_a_record_that_a_run_does_not_have_is_refused(catalogue: Any, at_the_root: None) -> None:
    with pytest.raises(EncoreError, match=r"the run's `records` have no 'pretraining'; did you mean pretrained"):
        table_plan(make(catalogue, records={"pretrained": "x.json"}), "bow/table4").dumped()
    with pytest.raises(EncoreError, match=r"records\.pretraining: x\.json is missing"):
        table_plan(make(catalogue, records={"pretraining": "x.json"}), "bow/table4").dumped()


def with_stages(tmp_path: Path, asked: str) -> dict[str, Any]:
    made = with_costs(tmp_path)
    times = [
        {"stage": "a: search", "median_ms": 1.0},
        {"stage": "search", "median_ms": 2.5},
        {"stage": "fusion", "median_ms": 0.25},
    ]
    record = json.loads((tmp_path / "latency-ict/latency.json").read_text()) | {"stages": times}
    write_artifact(tmp_path / "latency-ict", "latency.json", record)
    for row in made["rows"]:
        if row["cells"]["latency"]["reads"]:
            row["cells"]["latency"] |= {"value": asked if row["id"] == "ict" else "latency"}
    return made


def test_one_stage_of_a_system_is_its_own_and_not_its_parts(tmp_path: Path) -> None:
    for part, milliseconds in (("search", "2.5"), ("fusion", "0.25")):
        shown = table_of(with_stages(tmp_path, f"latency.{part}"))
        line = lines_of(tmp_path, shown)["ict", f"latency.{part} (ms a query)"]
        assert line["reproduced"] == milliseconds
        assert any("each stage by itself" in note for note in notes_of(shown))
    with pytest.raises(EncoreError, match=r"has no stage 'encoder', only a: search, search, fusion"):
        table_of(with_stages(tmp_path, "latency.encoder"))


def test_only_stages_that_there_are_can_be_asked_for() -> None:
    column = {"id": "x", "label": "x", "dataset": "d", "split": "test"}
    for good in ("latency", "size", "latency.encoder", "latency.{part}"):
        assert ColumnEntry.model_validate(column | {"efficiency": good}).source == "efficiency"
    for wrong in ("latency.", "latency.speed", "size.search", "{kind}"):
        with pytest.raises(ValueError, match="latency"):
            ColumnEntry.model_validate(column | {"efficiency": wrong})
