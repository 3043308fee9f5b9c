"""Records follow from themselves: docs/judge_again.py finds nothing in those of the pages, and every planted error."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from encore.products.claims.plan import ClaimsSlice
from encore.products.claims.run_claims import write_run_claims
from encore.products.tables.compute import compute_table
from encore.products.tables.layout import Layout
from encore.products.tables.tidy import write_tidy
from tests.support import small_table
from tests.support.results_pages import JUDGE, PROGRAM, RECORDING
from tests.support.small_claims import claim

RECORDS = PROGRAM.records()
BEFORE = {"bf16", "league", "real-zero-shot", "ten-seeds"}  # records that lack values of queries of a table
BY_SEED = RECORDS.keys() - {"bf16", "fp32"}  # those with means by seed
SETTING = "BM25 negatives"
ABOUT = {"table": "small/table1"}
ABOVE = {"kind": "above", **ABOUT, "rows": ["ict"], "than": ["mlm"]}
CLOSE = {"kind": "close", **ABOUT, "rows": ["control"], "to": ["mlm"], "within": 0.05}
CLAIMS = {
    "C1": claim(ABOVE, premise=[{**ABOVE, "than": ["bm25"]}], control=[{**ABOVE, "than": ["control"]}]),
    "C2": claim({**ABOVE, "rows": ["control"], "than": ["ict"]}),
    "C3": claim(CLOSE),
    "C4": claim({"kind": "order", **ABOUT, "rows": ["ict", "mlm", "none"]}),
    "C5": claim({"kind": "gains", **ABOUT, "row": "ict", "than": "none", "columns": ["rr"], "other_columns": ["both"]}),
    "C6": claim({"kind": "no-winner", **ABOUT, "row": "ict", "than": "none"}),
    "C7": claim({**ABOVE, "than": None, "than_columns": ["ndcg"], "columns": ["rr"]}, {**ABOVE, "than": 0.4}),
    "C8": claim(ABOVE, premise=[{**ABOVE, "rows": ["none"], "than": ["ict"]}]),
    "C9": claim({**ABOVE, "than": ["none", "control", "mlm"], "columns": ["rr", "both"], "at_least": 3}),
    "C10": claim({"kind": "alike", **ABOUT, "rows": ["ict", "none", "bm25"], "settings": [SETTING, SETTING]}),
    "C11": claim({**ABOVE, "rows": ["seed"], "than": ["seed"]}),
    "C12": claim({**CLOSE, "within": 0.0001}),
}


def small_run(folder: Path) -> Path:
    """A record of a small table, on data of its papers, with claims of every kind."""
    content = small_table.plan(folder / "results", proxy_data=False)
    content["columns"].append({"id": "both", "label": "Mean", "source": "mean_of", "mean_of": ["rr", "ndcg"]})
    content["significance"]["margin"] = 0.05
    for row in content["rows"]:
        row["cells"]["both"] = {}
    layout = Layout.model_validate(content)
    axes = [{"id": row.id, "setting": row.setting} for row in layout.rows]
    shape = {"rows": axes, "columns": [{"id": column.id, "source": column.source} for column in layout.columns]}
    claims = ClaimsSlice.model_validate(
        {
            "name": "claims",
            "claims": {name: {"paper": "p", "claim": each} for name, each in CLAIMS.items()},
            "shapes": {"small/table1": shape},
            "tables": {"small/table1": layout},
            "proxy_data": False,
        }
    )
    record = folder / "docs/recorded/small"
    (record / "tables/small").mkdir(parents=True)
    write_tidy(record / "tables/small/table1.csv", compute_table(layout))
    write_run_claims(record, claims, record)
    tables = RECORDING.write_values(record, {"small/table1": layout}, claims)
    (record / "run.json").write_text(json.dumps({"form": RECORDING.FORM, "tables": tables}))
    bound(record)
    return record


def bound(record: Path) -> None:
    """Digests as a forger writes them again."""
    run = json.loads((record / "run.json").read_text())
    paths = [path for path in record.rglob("*") if path.is_file() and path.name != "run.json"]
    run["files"] = {path.relative_to(record).as_posix(): RECORDING.digest(path) for path in paths}
    (record / "run.json").write_text(json.dumps(run))
    RECORDING.bind(record.parent)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("made"))


@pytest.fixture
def small(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made.parent, tmp_path / "recorded")
    return tmp_path / "recorded/small"


def test_every_recorded_file_is_bound_and_none_was_altered():
    assert JUDGE.unbound() == []
    for record in RECORDS.values():
        assert JUDGE.altered(record.folder) == []
        assert record.run["commits"]


@pytest.mark.parametrize("name", RECORDS)
def test_every_record_follows_from_itself(name):
    judged = JUDGE.judge(RECORDS[name].folder)
    assert judged.differs == []
    assert (judged.numbers > 0) == (name in BY_SEED)
    assert any("its tests and verdicts" in each for each in judged.cannot) == (name in BEFORE)


def test_a_small_record_follows_from_itself_in_every_number_and_word(made):
    judged = JUDGE.judge(made)
    assert judged.differs == []
    assert judged.cannot == []
    verdicts = pd.read_csv(made / "claims.csv").set_index("id").verdict.to_dict()
    assert len(set(verdicts.values())) == 6
    assert (verdicts["C3"], verdicts["C12"]) == ("reproduced", "not distinguishable"), "equivalences"
    words = pd.read_csv(made / "tables/small/table1.csv").set_index("row").verdict.dropna()
    assert words.to_dict() == {"mlm": "equivalent within 0.05", "ict": "reproduced", "seed": "not testable here"}


PLANTED = {  # by row, column and field of the table: another value, as if it had come out so
    ("ict", "rr", "verdict"): "not distinguishable",
    ("mlm", "rr", "markers"): "",
    ("ict", "rr", "p_none"): "0.04",
    ("ict", "rr", "p_holm_control"): "0.04",
    ("mlm", "rr", "p_equivalent_none"): "0.04",
    ("ict", "rr", "p_randomisation_mlm"): "0.04",
    ("ict", "rr", "p_ttest_one_seed_mlm"): "0.04",
    ("none", "rr", "delta_control"): "0.1",
    ("mlm", "rr", "interval_low"): "-0.001",
    ("bm25", "rr", "mean_high"): "0.9",
    ("bm25", "rr", "queries_judged"): "41",
    ("none", "ndcg", "reproduced"): "0.5",
    ("control", "ndcg", "sd"): "0.1",
    ("mlm", "both", "reproduced"): "0.5",
    ("ict", "both", "seeds"): "4",
}
CLAIMED = {
    ("C1", "verdict"): "reproduced",
    ("C1", "survives_control"): "contradicted",
    ("C2", "p"): "0.04",
    ("C3", "estimate"): "0.1",
    ("C4", "interval_low"): "0.1",
    ("C5", "weakest"): "another",
    ("C6", "verdict"): "reproduced",
    ("C7", "control_p"): "0.04",
    ("C8", "verdict"): "reproduced",
    ("C9", "held"): "2",
    ("C10", "needed"): "7",
    ("C11", "verdict"): "reproduced",
}


def test_planted_numbers_and_words_are_found_though_the_digests_were_written_again(small):
    path, claims = small / "tables/small/table1.csv", small / "claims.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    for (row, column, field), value in PLANTED.items():
        at = (table.row == row) & (table.column == column)
        assert (table.loc[at, field] != value).all()
        table.loc[at, field] = value
    table.to_csv(path, index=False)
    lines = pd.read_csv(claims, dtype=str, keep_default_na=False).set_index("id")
    for (name, field), value in CLAIMED.items():
        assert lines.loc[name, field] != value
        lines.loc[name, field] = value
    lines.to_csv(claims)
    bound(small)
    found = {each.partition(" is ")[0] for each in JUDGE.judge(small).differs}
    planted = {f"small/table1: {SETTING} / {row} / {column}: {field}" for row, column, field in PLANTED}
    planted |= {f"{name}: {field}" for name, field in CLAIMED}
    assert {each for each in found if ": the middle of " not in each} == planted


def edited(name: str, edit: Callable[[Any], Any]) -> Callable[[Path], None]:
    """A change of a JSON file of a record."""

    def change(record: Path) -> None:
        content = json.loads((record / name).read_text())
        edit(content)
        (record / name).write_text(json.dumps(content))

    return change


def lines_changed(name: str, change: Callable[[list[str]], None]) -> Callable[[Path], None]:
    """A change of the lines of a text file of a record, compressed or not."""

    def changed(record: Path) -> None:
        path = record / name
        packed = name.endswith(".gz")
        lines = (gzip.decompress(path.read_bytes()) if packed else path.read_bytes()).decode().splitlines(True)
        change(lines)
        text = "".join(lines).encode()
        path.write_bytes(gzip.compress(text) if packed else text)

    return changed


QUERIES, TESTS = "tables/small/table1.queries.csv.gz", "claims.tests.json"
ROLES = edited("run.json", lambda run: run["tables"]["small/table1"]["roles"][SETTING].update(mlm="baseline"))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lines_changed(QUERIES, lambda lines: lines.pop(12)), "rr: queries_judged is 40, comes out as 39"),
        (lines_changed(QUERIES, lambda lines: lines.insert(12, lines[12])), "queries_judged is 40, comes out as 41"),
        (lines_changed("per_seed.csv", lambda lines: lines.pop(1)), "bm25 / rr: reproduced is .*, comes out as None"),
        (lines_changed("tables/small/table1.csv", lambda lines: lines.pop()), "Copied / seed / both has no line"),
        (lines_changed("tables/small/table1.csv", lambda lines: lines.pop(1)), "bm25 / rr has no line"),
        (ROLES, "mlm / rr: verdict is .*, comes out as 'empty'"),
        (edited("run.json", lambda run: run["tables"].clear()), "run.json does not say what its rows are"),
        (edited(TESTS, lambda tests: tests["C4"]["tests"][0]["contrasts"].pop()), "C4 cannot be judged"),
        (edited(TESTS, lambda tests: tests["C12"]["tests"][0]["contrasts"][0].update(least=0.1)), "C12: "),
        (edited(TESTS, lambda tests: tests.pop("C4")), "C4: verdict is .*, comes out as 'not testable here'"),
        (lambda record: (record / TESTS).unlink(), "C1 cannot be judged: FileNotFoundError"),
    ],
)
def test_what_was_left_out_or_added_is_found(small, change, found):
    change(small)
    assert JUDGE.unbound(small.parent)
    bound(small)
    differs = JUDGE.judge(small).differs
    assert any(re.search(found, each) for each in differs), differs
