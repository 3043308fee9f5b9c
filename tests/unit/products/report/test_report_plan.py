"""What a report shows: what is declared, what else lies there as the configuration makes it, the rest as printed."""

import csv
import shutil
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products import report
from encore.products.catalogue import load_plan
from encore.products.claims.plan import claims_plan
from encore.products.report.plan import report_plan
from encore.products.report.slice import ReportSlice
from encore.products.report.tables import PrintedCount, count_printed, read_tables
from encore.products.tables.plan import table_plan
from encore.products.targets import check_target
from encore.storage.files import canonical, write_json, write_text

ROOT = Path(__file__).parents[4]
NANO = Path("config/nano.yaml")
OTHER = "two_tower/table2"  # of statistics of collections alone


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Nano, where nothing was made."""
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    return load_plan(NANO)


def test_what_is_declared_is_read_and_all_other_tables_are_shown_as_printed(plan: Plan) -> None:
    content = report_plan(plan).dumped()
    assert content["tables"] == ["table1"]
    papers = {name for name, table in plan.catalogue.tables.items() if table.reported}
    assert content["printed"].keys() == papers
    assert len(papers) == 28
    products = {f"results/{name}.manifest.json" for name in ("tables/table1", "figures/table1")}
    site = ReportSlice.model_validate(content)
    assert set(map(str, site.others(Path()))) == products | {"results/figures/pretraining.manifest.json"}
    assert site.command("x") == "snakemake x --profile local --configfile config/nano.yaml"


def test_printed_numbers_are_counted_by_cells(plan: Plan) -> None:
    """A number is what reads as one: 11 cells have a word or a sign, and in 66 a paper prints nothing."""
    site = ReportSlice.model_validate(report_plan(plan).dumped() | {"tables": []})
    counted = count_printed(read_tables(site))
    assert counted == PrintedCount(cells=1113, numbers=1036, words=11)
    files = [Path(str(layout.reported)) for layout in site.printed.values()]
    values = [line["value"] for path in files for line in csv.DictReader(path.open(encoding="utf-8", newline=""))]
    assert (len(values), values.count("")) == (counted.cells, counted.empty)
    assert sum(value in ("OOM", "O(n)", "O(n^2)", "-") for value in values) == counted.words


def test_an_edited_template_makes_the_page_again(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = report_plan(plan).dumped()["templates"]
    copied = shutil.copytree(report.plan.TEMPLATES, tmp_path / "templates")
    monkeypatch.setattr(report.plan, "TEMPLATES", copied)
    assert report_plan(plan).dumped()["templates"] == before
    with (copied / "page.css").open("a") as file:
        file.write("b { color: red; }")
    assert report_plan(plan).dumped()["templates"] != before


def test_the_default_needs_no_name_and_no_folder_of_a_machine_is_named(plan: Plan, tmp_path: Path) -> None:
    for file, run in {
        "config/config.yaml": "",
        tmp_path / "config/config.yaml": "",
        "/elsewhere/mine.yaml": "mine.yaml",
    }.items():
        plan.config._file = str(file)
        assert report_plan(plan).dumped()["run"] == run


def test_a_table_that_was_asked_for_is_shown_once_it_lies_there(plan: Plan) -> None:
    plan.asked = [f"results/tables/{OTHER}"]
    assert OTHER in report_plan(plan).dumped()["printed"]
    record = Path(f"results/tables/{OTHER}.manifest.json")
    made = table_plan(plan, OTHER).dumped()
    write_json(record, {"spec": made})
    content = report_plan(plan).dumped()
    assert content["tables"] == ["table1", OTHER]
    assert OTHER not in content["printed"]
    write_json(record, {"spec": made | {"title": "of another configuration"}})
    assert report_plan(plan).dumped()["tables"] == ["table1"]


@pytest.mark.slow
def test_claims_on_runs_are_shown_once_they_lie_there(plan: Plan) -> None:
    plan.asked = ["results/claims"]
    assert not report_plan(plan).dumped()["claims"]
    for damaged in ("{", "[" * 100_000, "[]"):
        write_text(Path("results/claims.manifest.json"), damaged)
        assert not report_plan(plan).dumped()["claims"]
    write_json(Path("results/claims.manifest.json"), {"spec": claims_plan(plan).dumped()})
    content = report_plan(plan).dumped()
    assert content["claims"]
    assert "results/claims.manifest.json" in map(str, ReportSlice.model_validate(content).others(Path()))


def test_a_claim_that_there_is_not_is_refused_though_no_claim_is_requested(plan: Plan) -> None:
    wrong = Plan(plan.config.model_copy(update={"claims": ["C01", "C999"]}), plan.catalogue)
    with pytest.raises(EncoreError, match=r"claims: there is no claim 'C999'; did you mean C99"):
        report_plan(wrong).dumped()


def test_the_slice_repeats_and_counts_no_trials_of_other_starts(plan: Plan) -> None:
    content = report_plan(plan).dumped()
    assert canonical(content) == canonical(report_plan(plan).dumped())
    assert content["trials"] == {}
    assert content["about"]["C01"] == ["cpdae/table1", "objectives"]


@pytest.mark.parametrize(
    ("rate", "tried"),
    [(3e-3, {"learning_rate": 5}), (3e-4, None), (0.123, None)],
    ids=["tried from both starts", "tried from the other start alone", "not tried"],
)
@pytest.mark.usefixtures("plan")
def test_trials_count_where_the_run_has_their_start_and_one_of_their_values(
    rate: float, tried: dict[str, int] | None
) -> None:
    """Rates of ICT were tried from two starts, with other data; some of them are equal."""
    default = load_plan()
    scale = default.config.scale.model_copy(
        update={"steps": default.config.scale.steps | {"ict": {"learning_rate": rate}}}
    )
    trials = report_plan(Plan(default.config.model_copy(update={"scale": scale}), default.catalogue)).dumped()["trials"]
    assert trials.get("ict") == tried


def test_a_record_of_trials_may_be_of_a_field_that_a_step_does_not_have(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("encore.products.report.plan.TUNING", tmp_path)
    (tmp_path / "a.csv").write_text("step,field,value,lineage\nict,gone,1,micro-bert+ict\n")
    assert report_plan(plan).dumped()["trials"] == {}
    (tmp_path / "a.csv").write_text("step,value,lineage\nict,1,micro-bert+ict\n")
    with pytest.raises(EncoreError, match=r"a.csv has no column field"):
        report_plan(plan).dumped()


def test_the_page_is_a_target_and_nothing_else_of_its_folder(plan: Plan) -> None:
    check_target(plan, "results/report/index.html")
    with pytest.raises(EncoreError, match=r"results/report"):
        check_target(plan, "results/report/index.pdf")
