"""Columns of costs: shown in every format, tested on nothing."""

from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.products.tables import formats
from encore.products.tables.layout import Layout
from encore.storage import manifest
from tests.support.small_table import NUMERIC, entries_of, lines_of, notes_of, table_of, with_costs


def test_costs_stand_in_their_columns_and_nothing_is_tested_on_them(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, table_of(with_costs(tmp_path)))
    ms, mib = "latency (ms a query)", "size (MiB)"
    assert [lines["bm25", name]["reproduced"] for name in (ms, mib)] == ["12.345", "3.0"]
    assert [lines["ict", name]["reproduced"] for name in (ms, mib)] == ["1234.25", "0.5"]
    others = NUMERIC[0:1] + NUMERIC[2:]
    for row, name in ((row, name) for row in ("bm25", "ict", "mlm", "seed") for name in (ms, mib)):
        assert {value for key, value in lines[row, name].items() if key.startswith(others)} == {""}
        assert lines[row, name]["markers"] == lines[row, name]["verdict"] == ""
    assert lines["mlm", ms]["reproduced"] == lines["seed", mib]["reproduced"] == ""


def test_costs_are_shown_in_all_formats_and_never_bold(tmp_path: Path) -> None:
    shown = table_of(with_costs(tmp_path))
    assert shown.header()[:5] == ["", "RR@10", "nDCG@10", "ms/query", "Index, MiB"]
    entries = {label: entries[3:5] for label, entries in entries_of(shown).items()}
    assert [entry.text for entry in entries["BM25"]] == ["12.3", "3.00"]
    assert [entry.text for entry in entries["ICT"]] == ["1,234", "0.50"]
    assert [entry.text for entry in entries["MLM"]] == ["", ""]
    assert not any(entry.best or entry.markers for line in entries.values() for entry in line)
    for text in (formats.render(shown, "md"), formats.render(shown, "tex"), formats.render(shown, "html")):
        assert "12.3" in text
        assert "A Processor, 1 thread" in text
    assert sum("ms/query" in note for note in notes_of(shown)) == 1


def test_a_damaged_measurement_is_one_clear_line_before_the_table_is_made(tmp_path: Path) -> None:
    table = Layout.model_validate(with_costs(tmp_path))
    (tmp_path / "latency-ict" / "latency.json").write_text('{"total": {}}')
    (files,) = [files for folder, files in table.reads().items() if folder == tmp_path / "latency-ict"]
    with pytest.raises(EncoreError, match=r"latency-ict/latency\.json has 13 bytes, its manifest says"):
        manifest.verify(tmp_path / "latency-ict", files)
