"""Runs that others made as rows of a table: planned, refused, taken, judged, tested against, and audited by digest."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from encore.commands.audit import audit
from encore.config.run import RunConfig
from encore.data.runs import read_run
from encore.errors import EncoreError
from encore.evaluation.scores import exact_mean
from encore.plan.catalogue import Catalogue, with_entries_of
from encore.plan.plan import Plan
from encore.products.declared import write_plan
from encore.products.kinds import BY_RULE
from encore.products.record import make_product
from encore.products.tables.plan import table_plan
from encore.products.tables.table import Table, read_table
from encore.stages.base import Job
from encore.stages.run import run_stage
from tests.support import own_folder
from tests.support.shipped import run_file

DATASETS = ("msmarco-passage", "msmarco-passage-titles")
LINES = "q0 Q0 d1 1 2.5 theirs\nq0 Q0 d0 2 1.5 theirs\n"
Make = Callable[..., Plan]
pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def make(catalogue: Catalogue) -> Make:
    """A plan of nano with a run of others, called ``theirs``, and some rows of its table 1."""
    Path("theirs.trec").write_text(LINES)

    def plan(rows: list[str], changes: dict[str, Any] | None = None, **fields: Any) -> Plan:
        where = {} if fields.keys() & {"path", "url"} else {"path": "theirs.trec"}
        own = {"systems": {"theirs": {"kind": "run", **where, **fields}}, "tables": {"table1": rows}}
        config = RunConfig.model_validate(run_file("nano") | own | (changes or {}))
        return Plan(config, with_entries_of(config, catalogue))

    return plan


def folders(plan: Plan) -> list[str]:
    table_plan(plan, "table1")
    return [each.folder for each in plan.made.values() if each.stage == "take_run"]


def test_a_run_of_others_is_a_row_that_is_compared_with(make: Make) -> None:
    plan = make(["bm25", "BM25 negatives: none", "theirs"], label="Theirs (2020)", source="a paper")
    layout = table_plan(plan, "table1")
    assert [(row.setting, row.id, row.label, row.origin) for row in layout.rows if row.id == "theirs"] == [
        (setting, "theirs", "Theirs (2020)", "run of others") for setting in ("First stage", "BM25 negatives")
    ]
    assert layout.comparators() == ["none", "theirs"]
    assert any(
        note.startswith("Theirs (2020): a run that others made (a paper, theirs.trec, sha256 ") for note in layout.notes
    )
    (taken,) = folders(plan)
    assert table_plan(make(["BM25 negatives: none", "BM25 negatives: theirs"]), "table1").settings() == [
        "BM25 negatives"
    ]
    Path("elsewhere.trec").write_text(LINES)
    assert folders(make(["theirs"], path="elsewhere.trec")) == [taken], "where it is decides nothing"
    Path("theirs.trec").write_text(LINES.replace("2.5", "3.5"))
    assert folders(make(["theirs"])) != [taken]


def test_a_row_has_no_cell_for_queries_that_its_run_does_not_answer(make: Make) -> None:
    only = make(["bm25", "theirs"], answers=["pydocs-stdlib.valid"])
    (row,) = (row for row in table_plan(only, "table1").rows if row.id == "theirs")
    assert {cell.not_applicable for cell in row.cells.values()} >= {"the run has no answers to those queries"}
    assert not any(cell.reads for cell in row.cells.values())
    assert folders(make(["theirs"], answers=["pydocs-stdlib.test"])) == folders(make(["theirs"]))


def test_a_run_with_an_address_is_fetched_like_a_source(make: Make) -> None:
    plan = make(["theirs"], url="https://example.org/a/run.trec.gz", sha256="0" * 64)
    table_plan(plan, "table1")
    (taken,) = (each for each in plan.made.values() if each.stage == "take_run")
    source = taken.inputs["fetched"]
    assert (source.stage, taken.source) == ("fetch_source", None)
    assert source.spec["files"][0]["digest"] == f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("rows", "changes", "fields", "words"),
    [
        (["theirs"], {}, {"sha256": "0" * 64}, f"not {'0' * 64}; name the file that was meant"),
        (["bm25", "Mined: theirs"], {}, {}, "'Mined: theirs' names a setting that no row is built of"),
        (["bm52", "theirs"], {}, {}, "tables.table1: no row 'bm52'; did you mean bm25"),
        (["theirs"], {}, {"pat": "x"}, "systems: theirs.pat: unknown key; did you mean path"),
        (
            ["theirs"],
            {},
            {"path": "a", "url": "https://b/c"},
            "systems: theirs: give either the `path` of the run's file",
        ),
        (
            ["bm25"],
            {"systems": {"bm25": {"kind": "run", "path": "a"}}},
            {},
            "systems.bm25: the catalogue has one of that",
        ),
        (
            ["costa"],
            {"systems": {"costa": {"kind": "run", "path": "a"}}},
            {},
            "has a row 'costa'; give the system another",
        ),
    ],
)
def test_what_cannot_be_a_row_is_refused(
    make: Make, rows: list[str], changes: dict[str, Any], fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(EncoreError) as refused:
        table_plan(make(rows, changes, **fields), "table1")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def made(plan: Plan, product: str = "table1") -> Table:
    """The table, after all jobs that it needs."""
    layout = BY_RULE["table"].slice(plan, product)
    for artifact in plan.made.values():
        if not Path(artifact.manifest).exists():
            inputs = {role: each.folder for role, each in artifact.inputs.items()}
            planned = {"stage": artifact.stage, "spec": json.loads(json.dumps(artifact.spec)), "inputs": inputs}
            source = None if artifact.source is None else Path(artifact.source)
            run_stage(planned, Job(Path(artifact.folder), Path("state"), source=source), dict)
    outputs = [
        Path(f"results/tables/{product}.{ending}") for ending in ("csv", "json", "md", "tex", "html", "manifest.json")
    ]
    outputs[0].parent.mkdir(parents=True, exist_ok=True)
    make_product("table", write_plan(product, layout.dumped()), None, outputs)
    return read_table(outputs[1])


def ranked(quality: int, queries: range) -> str:
    """A run of another program: ranks that say nothing, gaps, a query that is not asked, a tag of its own."""
    lines = []
    for number in queries:
        right = f"d{number % 40}" if number % quality == 0 else "d39"
        for place, document in enumerate(dict.fromkeys([right, "d7", "gone" if number == 300 else "d3"])):
            lines.append(f"q{number}\tQ0\t{document}\t0\t{10 - place}\tmy-tag")
    return "\n".join([*lines, "q999 Q0 d1 1 1 my-tag", ""])


@pytest.fixture
def planned(catalogue: Catalogue) -> Callable[[], Plan]:
    """A plan with two made-up runs of another program over a collection of the user's."""
    own_folder.folder({"train": own_folder.judged(0, 200), "test": own_folder.judged(300, 400)})
    Path("good.gz").write_bytes(gzip.compress(ranked(2, range(300, 400)).encode()))
    Path("poor.trec").write_text(ranked(10, range(300, 390)))
    reported = {"role": "test", "measures": {name: name for name in ("RR@10", "R@100", "R@1000")}}
    graded = {"role": "graded", "topics": "test", "file": "qrels/test.tsv", "measures": {"nDCG@10": "nDCG@10"}}
    valid = {"role": "valid", "measures": {"RR@10": "RR@10"}}
    splits = {"train": {"role": "train"}, "valid": valid, "test": reported, "graded": graded}
    systems = {
        "good": {"kind": "run", "path": "good.gz", "source": "a paper"},
        "poor": {"kind": "run", "path": "poor.trec"},
    }
    config = RunConfig.model_validate(
        run_file("nano")
        | {"datasets": {"own": {"kind": "beir", "path": "data/own", "valid_queries": 20, "splits": splits}}}
        | {"tables": {"table1": [f"BM25 negatives: {name}" for name in systems]}, "figures": [], "systems": systems}
        | {"scale": run_file("nano")["scale"] | {"datasets": dict.fromkeys(DATASETS, "own")}}
    )
    return lambda: Plan(config, with_entries_of(config, catalogue))


def test_the_row_is_judged_tested_against_and_shown_with_its_source(planned: Callable[[], Plan]) -> None:
    """The numbers follow from ``ranked``."""
    plan = planned()
    table = made(plan)
    rows = {row.id: row.cells["rr10"] for row in table.rows}
    assert (rows["good"].ours.answered, rows["poor"].ours.answered, rows["poor"].ours.judged) == (100, 90, 100)
    found = {
        name: {query: _rr(query, quality) for query in range(300, 400)} for name, quality in (("good", 2), ("poor", 10))
    }
    found["poor"] |= dict.fromkeys(range(390, 400), 0.0)
    for name, values in found.items():
        assert rows[name].ours.value == pytest.approx(exact_mean(list(values.values())))
    difference = exact_mean([found["good"][query] - found["poor"][query] for query in range(300, 400)])
    compared = rows["good"].comparisons["poor"]
    assert compared.difference == pytest.approx(difference)
    assert compared.low > 0
    assert compared.p < 0.001
    page = Path("results/tables/table1.md").read_text()
    assert "good: a run that others made (a paper, good.gz, sha256 " in page
    (taken,) = (each for each in plan.made.values() if each.owner.startswith("good") and each.stage == "take_run")
    facts = json.loads(Path(taken.manifest).read_text())["results"]
    assert facts == {"queries": 100, "answered": 100, "unknown_documents": 1}
    assert read_run(Path(taken.folder))["q301"].documents == ["d39", "d7", "d3"]


@pytest.mark.parametrize("change", ["another file", "gone", "what was taken"])
def test_an_audit_says_whose_file_is_another_than_the_tables(planned: Callable[[], Plan], change: str) -> None:
    plan = planned()
    made(plan)
    assert audit.audit(plan, only=["table1"]).findings == []
    (taken,) = (
        each.folder for each in plan.made.values() if each.owner.startswith("poor") and each.stage == "take_run"
    )
    if change == "what was taken":
        Path(taken, "run.trec.gz").write_bytes(gzip.compress(ranked(9, range(300, 390)).encode()))
    elif change == "gone":
        Path("poor.trec").unlink()
    else:
        Path("poor.trec").write_text(ranked(9, range(300, 390)))
    found = audit.audit(planned(), only=["table1"]).findings
    says = "run.trec.gz has" if change == "what was taken" else "has another plan than the configuration"
    assert any(says in str(each) for each in found)
    assert {cell for each in found for cell in each.cells} >= {"table1: poor [BM25 negatives]"}
    assert not any("good" in cell for each in found for cell in each.cells)


def _rr(query: int, quality: int) -> float:
    """1 over the rank of the one relevant document in what ``ranked`` gives."""
    right = f"d{query % 40}"
    listed = list(dict.fromkeys([right if query % quality == 0 else "d39", "d7", "d3"]))
    return 1 / (listed.index(right) + 1) if right in listed else 0.0


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("x1 Q0 d1 1 2 t\n", r"answers no query of split 'test' \(x1, for q300, q301\); name what it answers under"),
        ("", r"answers no query of split 'test' \(no line, for q300"),
        ("q300 Q0 a 1 2 t\nq300 Q0 b 1 1 t\n", "2 of the 2 documents that it ranks are not in"),
        ("q300 Q0 d1 1 t\n", "line 1: 5 columns instead of TREC's six"),
    ],
)
def test_a_file_that_is_no_run_over_these_texts_is_refused(tmp_path: Path, lines: str, words: str) -> None:
    own_folder.folder({"train": own_folder.judged(0, 200), "test": own_folder.judged(300, 400)})
    from encore.stages import take_run
    from tests.support.small_beir import build

    build(Path("data/own"), Path("collection"))
    Path("theirs.trec").write_text(lines)
    spec = take_run.Spec(split="test", depth=10, queries=None, sample=0, system="t", content=_content())
    with pytest.raises(EncoreError, match=words):
        take_run.TakeRun(spec, take_run.Inputs(collection=Path("collection"))).make(
            Job(tmp_path / "run", tmp_path, source=Path("theirs.trec"))
        )


def _content() -> dict[str, str]:
    from encore.datasets.source_files import content_of

    return content_of(Path("theirs.trec"), "sha256")


def test_the_example_of_the_page_is_planned(catalogue: Catalogue) -> None:
    page = (Path(__file__).parents[4] / "docs/systems.md").read_text()
    example = yaml.safe_load(re.search(r"```yaml\n(tables:.*?)```", page, re.DOTALL)[1])
    Path("data").mkdir()
    Path("data/theirs.trec.gz").write_bytes(gzip.compress(LINES.encode()))
    config = RunConfig.model_validate(run_file("nano") | example)
    rows = table_plan(Plan(config, with_entries_of(config, catalogue)), "table1").rows
    assert [row.label for row in rows if row.origin == "run of others"] == ["Theirs"] * 3
