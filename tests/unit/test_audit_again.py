"""The audit finds a number that was altered together with the digests that should betray it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import small_report

from encore.claims import printed_claims
from encore.claims.slice import PRINTED, printed_plan
from encore.commands import recompute
from encore.commands.audit import AuditReport
from encore.plan.project import load_catalogue
from encore.plan.tables import write_plan
from encore.report import build
from encore.storage import manifest
from encore.storage.files import write_json

ROOT = Path(__file__).parents[2]
PAGE, CSV = Path("results/report/index.html"), Path(f"results/{PRINTED}.csv")


def forge(path: Path, record: Path, old: str, new: str) -> None:
    """Replace a text, and make the manifest agree with the file."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    said = json.loads(record.read_text())
    said["outputs"][path.name] = manifest.describe(path)
    write_json(record, said)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A report over made-up products."""
    monkeypatch.chdir(tmp_path)
    write_json(Path("report.json"), small_report.products(tmp_path))
    build.make_report(Path("report.json"), None, PAGE.parent)
    return PAGE.read_text()


def reasons(do: Callable[[AuditReport], None]) -> list[str]:
    report = AuditReport()
    do(report)
    return [str(finding) for finding in report.findings]


def test_a_page_as_it_was_made_is_clean(page: str) -> None:
    assert reasons(recompute.recompute_pages) == []


def test_a_number_of_a_table_that_was_forged_is_found_where_it_stands(page: str) -> None:
    place = page.index('id="c-table1-4-0"')
    number = page[page.index("<b>", place) + 3 :].partition("</b>")[0]
    forge(PAGE, recompute.REPORT, page[place : place + 200], page[place : place + 200].replace(number, "0.999"))
    assert reasons(recompute.recompute_pages) == [f"{PAGE}#c-table1-4-0 does not show what lies in results/"]


def test_a_claim_that_was_forged_is_found(page: str) -> None:
    forge(PAGE, recompute.REPORT, "3 of 3 inequalities", "2 of 3 inequalities")
    assert reasons(recompute.recompute_pages) == [f"{PAGE}#k-c01 does not show what lies in results/"]


def test_a_digest_that_is_shown_is_that_of_the_file(page: str) -> None:
    """An artifact that was made anew since is another one, whatever its table says."""
    record = Path("results/collections/small-11111111/manifest.json")
    write_json(record, json.loads(record.read_text()) | {"results": {"passages": 4321}})
    found = reasons(recompute.recompute_pages)
    assert len(found) == 2
    key = page[: page.index("<h3>results/collections/small-11111111")].rpartition('id="')[2].partition('"')[0]
    assert f"{PAGE}#{key} does not show what lies in results/" in found


def test_another_time_of_a_job_is_no_finding(page: str) -> None:
    run = Path("results/collections/small-11111111/run.json")
    write_json(run, json.loads(run.read_text()) | {"seconds": 1.5, "cores": 64})
    assert reasons(recompute.recompute_pages) == []


def test_what_is_gone_is_one_line(page: str) -> None:
    Path("results/claims_printed.csv").unlink()
    (found,) = reasons(recompute.recompute_pages)
    assert "cannot be made again" in found
    assert "claims_printed.csv" in found


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The claims on the papers' printed numbers, made once."""
    root = tmp_path_factory.mktemp("judged")
    (root / "config").symlink_to(ROOT / "config")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        catalogue = load_catalogue()
        write_plan(PRINTED, printed_plan(catalogue))
        Path("results").mkdir(exist_ok=True)
        printed_claims.make_printed(Path(f"results/plan/{PRINTED}.json"), None, Path("results"), catalogue)
    return root


@pytest.fixture
def claims(judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[AuditReport], None]:
    """Judges a copy of them again."""
    shutil.copytree(judged, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    catalogue = load_catalogue()
    record = CSV.with_suffix(".manifest.json")

    def judge(folder: Path) -> None:
        printed_claims.write_printed(folder / CSV.name, Path("config/papers"), catalogue)

    return lambda report: recompute.recompute_claims(PRINTED, record, judge, report)


def test_claims_as_they_were_judged_are_clean(claims: Callable[[AuditReport], None]) -> None:
    assert reasons(claims) == []


def test_a_number_of_a_claim_that_was_forged_is_found_with_its_column(claims: Callable[[AuditReport], None]) -> None:
    line = next(line for line in CSV.read_text().splitlines() if line.startswith("C38,"))
    forge(CSV, CSV.with_suffix(".manifest.json"), line, line.replace(",holds,", ",fails,"))
    assert reasons(claims) == [f"{CSV}: C38: verdict is 'fails', judged again 'holds'"]


def test_a_claim_that_was_struck_out_is_found(claims: Callable[[AuditReport], None]) -> None:
    line = next(line for line in CSV.read_text().splitlines() if line.startswith("C38,"))
    forge(CSV, CSV.with_suffix(".manifest.json"), f"{line}\n", "")
    assert reasons(claims) == [f"{CSV} has other claims or columns than are judged"]
