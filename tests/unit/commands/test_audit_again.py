"""The audit finds a number that was altered together with the digests that should betray it."""

import json
import re
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import matplotlib.image
import pytest

from encore.commands.audit import recompute
from encore.commands.audit.findings import REPORT, AuditReport, MadeProduct, check_product
from encore.products.declared import write_plan
from encore.products.kinds import kind_of_record
from encore.products.record import make_product
from encore.products.report.page import RUNS
from encore.storage import manifest
from encore.storage.files import write_json
from tests.support import inside, small_claims, small_report, small_table

ROOT = Path(__file__).parents[3]
PAGE, CSV = Path("results/report/index.html"), Path("results/claims.csv")
CLAIMS = CSV.with_suffix(".manifest.json")
TABLE, FIGURE = Path("results/tables/table1.manifest.json"), Path("results/figures/table1.manifest.json")


def forge(path: Path, record: Path, old: str, new: str) -> None:
    """Replace a text, and make the manifest agree with the file."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    said = json.loads(record.read_text())
    said["outputs"][path.name] = manifest.describe(path)
    write_json(record, said)


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report over made-up products, made once."""
    root = tmp_path_factory.mktemp("reported")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        write_json(Path("report.json"), small_report.products(root))
        make_product("report", Path("report.json"), None, inside.files("report", "report", PAGE.parent))
    return root


@pytest.fixture
def page(reported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page of a copy of that report, to be changed."""
    shutil.copytree(reported, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return PAGE.read_text()


def reasons(do: Callable[[AuditReport], None]) -> list[str]:
    report = AuditReport()
    do(report)
    return [str(finding) for finding in report.findings]


def test_a_page_as_it_was_made_is_clean(page: str) -> None:
    assert reasons(recompute.recompute_page) == []


def test_a_page_of_other_code_must_come_out_again_too(page: str) -> None:
    write_json(REPORT, json.loads(recompute.REPORT.read_text()) | {"code": "0"})
    assert reasons(recompute.recompute_page) == []
    PAGE.write_text(page.replace("</title>", "!</title>"))
    (found,) = reasons(recompute.recompute_page)
    assert found.endswith("(its manifest names other code than this version's)")


def test_a_page_and_its_records_are_the_files_of_the_report(page: str) -> None:
    assert json.loads(REPORT.read_text())["outputs"].keys() == {"index.html", "index.runs.json"}
    report = AuditReport()
    check_product(None, REPORT, report)
    assert report.findings == []
    assert report.verified == 1


def test_a_number_of_a_table_that_was_forged_is_found_where_it_stands(page: str) -> None:
    cell = page[page.index('id="c-table1-4-0"') :].partition("</td>")[0]
    number = re.search(r"0\.\d+", cell)
    assert number
    forge(PAGE, REPORT, cell, cell.replace(number[0], "0.999"))
    (found,) = reasons(recompute.recompute_page)
    assert found.startswith(f"{PAGE}#c-table1-4-0 does not show what is in results/ (line ")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"use strict";', "document.body.textContent = 0.999;"),
        (":root {", "td::after { content: '0.999'; } :root {"),
        ("<title>Encore: A small", "<title>Encore: A large"),
        ("<caption><span>Training", "<caption><span>Trained"),
        ("3.02 min", "3.02 h"),
        ("2 of 3 inequalities", "3 of 3 inequalities"),
        ("</html>", "</html><script>1</script>"),
    ],
)
def test_nothing_of_the_page_is_outside_of_the_comparison(page: str, old: str, new: str) -> None:
    forge(PAGE, REPORT, old, new)
    (found,) = reasons(recompute.recompute_page)
    assert "does not show what is in results/" in found


def test_a_digest_that_is_shown_is_that_of_the_file(page: str) -> None:
    """An artifact that was made anew since is another one, whatever its table says."""
    record = Path("results/collections/small-11111111/manifest.json")
    said = json.loads(record.read_text())
    write_json(record, said | {"spec": said["spec"] | {"more": 1}})
    key = page[: page.index("<h3>results/collections/small-11111111")].rpartition('id="')[2].partition('"')[0]
    (found,) = reasons(recompute.recompute_page)
    assert found.startswith(f"{PAGE}#{key} does not show what is in results/")


def test_another_time_of_a_job_is_no_finding(page: str) -> None:
    """The page shows the times that are recorded beside it."""
    run = Path("results/collections/small-11111111/run.json")
    write_json(run, json.loads(run.read_text()) | {"seconds": 1.5, "cores": 64})
    assert reasons(recompute.recompute_page) == []
    record = PAGE.with_name(RUNS)
    record.write_text(record.read_text().replace("90.5", "91.5"))
    assert len(reasons(recompute.recompute_page)) == 1


def test_what_is_gone_is_one_line(page: str) -> None:
    Path("results/claims.csv").unlink()
    (found,) = reasons(recompute.recompute_page)
    assert "cannot be made again" in found
    assert "claims.csv" in found


def remade(name: str, place: Path) -> list[str]:
    """What the audit says of a product whose slice of the plan is that of its manifest."""
    report = AuditReport()
    content = dict(reversed(json.loads(place.read_text())["spec"].items()))  # whatever the order of the plan's keys
    found = kind_of_record(place, content)
    assert found
    assert found[1] == name
    product = MadeProduct(*found, place, content)
    recompute.recompute_product(product, report)
    return [*map(str, report.findings), *report.notes]


@pytest.fixture(scope="module")
def tabulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small table and its forest plot, as their programs make them, made once; scores are named by full paths."""
    root, slice_ = tmp_path_factory.mktemp("tabulated"), Path("results/plan/table1.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        write_json(slice_, small_table.plan(root, seeds=2))
        for record in (TABLE, FIGURE):
            stage = record.parent.name.removesuffix("s")
            make_product(stage, slice_, None, inside.files(stage, "table1", record.parent))
    return root


@pytest.fixture
def products(tabulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that holds their scores; the working folder is a copy of it, to be changed."""
    shutil.copytree(tabulated, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tabulated


def test_tables_and_figures_as_they_were_made_are_clean(products: Path) -> None:
    assert remade("table1", TABLE) == remade("table1", FIGURE) == []


def test_a_number_of_a_table_that_was_forged_is_named(products: Path) -> None:
    csv_ = TABLE.with_name("table1.csv")
    line = next(line for line in csv_.read_text().splitlines() if ",ict,ICT," in line)
    number = line.split(",")[10]
    forge(csv_, TABLE, line, line.replace(number, "0.4321", 1))
    (found,) = remade("table1", TABLE)
    said = f"{csv_}: ICT, BM25 negatives, rr: reproduced is '0.4321', comes out again as {number!r}"
    assert found.startswith(said)


@pytest.mark.parametrize("ending", ["json", "md", "tex", "html"])
def test_every_format_of_a_table_is_compared(products: Path, ending: str) -> None:
    path = TABLE.with_name(f"table1.{ending}")
    forge(path, TABLE, "0.5", "0.6")
    assert remade("table1", TABLE) == [f"{path} is not what comes out again"]


def test_a_number_of_a_figure_that_was_forged_is_named(products: Path) -> None:
    csv_ = FIGURE.with_name("table1.csv")
    number = csv_.read_text().splitlines()[2].split(",")[2]
    forge(csv_, FIGURE, number, "0.4321")
    found = remade("table1", FIGURE)
    assert found == [f"{csv_}: ICT, BM25 negatives: difference is '0.4321', comes out again as {number!r}"]


def test_a_picture_that_was_forged_is_found(products: Path) -> None:
    svg, png = FIGURE.with_name("table1.svg"), FIGURE.with_name("table1.png")
    pixels, whole = matplotlib.image.imread(png), png.read_bytes()
    packed = [content for kind, content in chunks(whole) if kind == b"IDAT"]
    again = zlib.compress(zlib.decompress(b"".join(packed)), 1)  # other bytes of the same picture
    png.write_bytes(written([each for each in chunks(whole) if each[0] not in (b"IDAT", b"IEND")], again))
    assert png.read_bytes() != whole
    assert remade("table1", FIGURE) == []
    pixels[:5] = 0
    matplotlib.image.imsave(png, pixels)
    forge(svg, FIGURE, "<path", "<g/><path")
    expected = [f"{path} is not what comes out again" for path in (png, svg)]
    assert remade("table1", FIGURE) == expected


def chunks(picture: bytes) -> list[tuple[bytes, bytes]]:
    """Of a PNG file, by their kinds."""
    found, place = [], 8
    while place < len(picture):
        (length,) = struct.unpack_from(">I", picture, place)
        found.append((picture[place + 4 : place + 8], picture[place + 8 : place + 8 + length]))
        place += length + 12
    return found


def written(before: list[tuple[bytes, bytes]], pixels: bytes) -> bytes:
    """A PNG file of chunks, and pixels as they are packed."""
    parts = [*before, (b"IDAT", pixels), (b"IEND", b"")]
    body = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


@pytest.mark.parametrize("forgery", ["another frame", "another text", "bytes behind it"])
def test_a_picture_holds_nothing_but_what_is_drawn(products: Path, forgery: str) -> None:
    """Viewers animate a PNG file with more than one frame, and only the first was compared."""
    png = FIGURE.with_name("table1.png")
    whole = png.read_bytes()
    first, pixels = chunks(whole)[:1], b"".join(data for kind, data in chunks(whole) if kind == b"IDAT")
    rest = [each for each in chunks(whole)[1:] if each[0] not in (b"IDAT", b"IEND")]
    more = {"another frame": [(b"acTL", struct.pack(">2I", 2, 0))], "another text": [(b"tEXt", b"Title\0forged")]}
    png.write_bytes(written(first + more.get(forgery, []) + rest, pixels) + b"x" * (forgery == "bytes behind it"))
    assert remade("table1", FIGURE) == [f"{png} is not what comes out again"]


def test_a_picture_of_another_matplotlib_is_not_compared_and_its_data_are(products: Path) -> None:
    record = json.loads(FIGURE.read_text())
    write_json(FIGURE, record | {"results": {"matplotlib": "0.1"}})
    forge(FIGURE.with_name("table1.svg"), FIGURE, "<path", "<g/><path")
    report = AuditReport()
    found = kind_of_record(FIGURE, record["spec"])
    assert found
    recompute.recompute_product(MadeProduct(*found, FIGURE, record["spec"]), report)
    pictures = ", ".join(str(FIGURE.with_name(f"table1.{ending}")) for ending in ("png", "svg"))
    why = "drawn by another version of matplotlib, as its manifest says"
    assert report.not_audited == f"NOT audited: 2 files: {pictures} ({why})"
    assert report.is_partial
    assert report.findings == []
    csv_ = FIGURE.with_name("table1.csv")
    forge(csv_, FIGURE, csv_.read_text().splitlines()[2].split(",")[2], "0.4321")
    assert "difference is '0.4321'" in remade("table1", FIGURE)[0]


def test_what_other_code_made_must_come_out_again_too(products: Path) -> None:
    """Its digest is in the manifest, where it can be forged with the rest."""
    write_json(TABLE, json.loads(TABLE.read_text()) | {"code": "0"})
    assert remade("table1", TABLE) == []
    forge(TABLE.with_name("table1.csv"), TABLE, "ICT", "IBT")
    (found,) = remade("table1", TABLE)
    assert found.endswith("(its manifest names other code than this version's)")


def test_a_table_whose_scores_are_gone_is_a_finding_and_no_crash(products: Path) -> None:
    TABLE.write_text(TABLE.read_text().replace(str(products / "bm25"), str(products / "gone")))
    (found,) = remade("table1", TABLE)
    assert "cannot be made again" in found
    assert "scores.parquet is missing" in found


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two claims on made-up points of a figure."""
    monkeypatch.chdir(tmp_path)
    above = {"kind": "above", "figure": "q/f", "rows": ["a"], "than": ["b"]}
    claims = {
        name: {"paper": "q", "claim": {"says": "s", "place": "p", "tests": [above | {"columns": [place]}]}}
        for name, place in (("C06", "x"), ("C07", "y"))
    }
    shape = {
        "rows": [{"id": line, "setting": "p"} for line in "ab"],
        "columns": [{"id": place, "source": "measure"} for place in "xy"],
    }
    points = small_claims.measured(Path("results/scores"), {(line, place): 0.6 for line in "ab" for place in "xy"})
    for folder in Path("results/scores").iterdir():
        small_report.artifact(folder, "evaluate", {}, {}, [])
    content = {"name": "claims", "claims": claims, "shapes": {"q/f": shape}, "tables": {}, "figures": {"q/f": points}}
    write_plan("claims", content)
    make_product("claims", Path("results/plan/claims.json"), None, inside.files("claims", "claims", Path("results")))


@pytest.mark.usefixtures("judged")
def test_claims_as_they_were_judged_are_clean() -> None:
    assert remade("claims", CLAIMS) == []


@pytest.mark.usefixtures("judged")
def test_a_verdict_that_was_forged_is_found_with_its_column() -> None:
    line = next(line for line in CSV.read_text().splitlines() if line.startswith("C06,"))
    said = line.split(",")[4]
    forge(CSV, CLAIMS, line, line.replace(f",{said},", ",reproduced,"))
    assert remade("claims", CLAIMS) == [f"{CSV}: C06: verdict is 'reproduced', comes out again as {said!r}"]


@pytest.mark.usefixtures("judged")
def test_a_claim_that_was_struck_out_is_found() -> None:
    line = next(line for line in CSV.read_text().splitlines() if line.startswith("C06,"))
    forge(CSV, CLAIMS, f"{line}\n", "")
    assert remade("claims", CLAIMS) == [f"{CSV} has other lines or columns than come out again"]
