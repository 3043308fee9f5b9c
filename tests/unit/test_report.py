"""The report: what stands in it, that its links resolve, that it needs nothing beside itself, and that it repeats."""

import json
import re
import shutil
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import small_report
from small_report import page, products
from small_table import plan, row_of, table_of

from encore.errors import EncoreError
from encore.report import sheets
from encore.reporting.tables import formats
from encore.reporting.tables.sheet import make_sheet
from encore.storage.files import sha256, write_text
from encore.storage.manifest import MANIFEST

VOID = {"meta", "link", "img", "input", "br"}


class Read(HTMLParser):
    """A page as its tags tell it: ids, links, what it loads, headings and the text of each section by id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.headings: list[int] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = dict(attributes)
        if len(said) != len(attributes):
            self.wrong.append(f"an attribute twice in {tag}")
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [said["id"] or ""] if "id" in said else []
        self.links += [said["href"] or ""] if tag == "a" else []
        self.loads += [value or "" for name, value in attributes if name in ("src", "srcset", "data", "action")]
        self.loads += [said["href"] or ""] if tag == "link" else []
        self.headings += [int(tag[1])] if re.fullmatch(r"h[1-6]", tag) else []

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with small products, and the slice of a report of them; only to be copied."""
    root = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        return root, products(root)


@pytest.fixture
def made(original: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The slice of a small report whose products lie below the working directory."""
    shutil.copytree(original[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return original[1]


def section(text: str, start: str) -> str:
    """From a mark to the end of its section."""
    return text[text.index(start) :].split("</section>", 1)[0]


def test_the_page_is_well_formed_and_all_its_links_resolve(made: dict[str, Any]) -> None:
    read = Read(page(made))
    assert not read.wrong
    assert not read.open
    assert len(read.ids) == len(set(read.ids))
    assert {link for link in read.links if not link.startswith("#")} == set()
    assert {link[1:] for link in read.links} <= set(read.ids)
    assert all(later - earlier <= 1 for earlier, later in pairwise(read.headings))


def test_the_page_loads_nothing(made: dict[str, Any]) -> None:
    text = page(made)
    assert all(load.startswith("data:") for load in Read(text).loads)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", text)
    assert str(Path.cwd()) not in text
    assert "/home/me" not in text


def test_the_page_repeats(made: dict[str, Any]) -> None:
    first = page(made)
    assert page(made, "again") == first
    record = json.loads(Path("results/report/manifest.json").read_text())
    assert record["outputs"]["index.html"]["sha256"] == sha256(Path("results/report/index.html"))
    assert len(record["inputs"]) == 3


def test_every_number_leads_to_its_artifacts(made: dict[str, Any]) -> None:
    """From the cell to its scores, from these to the model, and so down to the texts."""
    text = page(made)
    row = [row["id"] for row in made_table()["rows"]].index("ict")
    why = section(text, f'id="w-table1-{row}-0"')
    assert "2 seeds" in why
    assert "encore explain results/tables/table1.csv --row" in why
    folders = ["scores/ict-s0", "scores/ict-s1", "models/tiny+ict-s0-44444444", "tokens/small-22222222"]
    folders.append("collections/small-11111111")
    places = {folder: re.search(rf'id="(a\d+)"[^>]*><h3>results/{re.escape(folder)}<', text) for folder in folders}
    keys = {folder: found[1] for folder, found in places.items() if found}
    assert keys.keys() == places.keys()
    assert f'href="#{keys["scores/ict-s0"]}"' in why
    assert f'href="#{keys["scores/ict-s1"]}"' in why
    chain = [folders[0], *folders[2:]]
    for child, parent in pairwise(chain):
        assert f'href="#{keys[parent]}"' in section(text, f'id="{keys[child]}"'), (child, parent)
    digest = sha256(Path("results/collections/small-11111111") / MANIFEST)
    assert digest in section(text, f'id="{keys[chain[-1]]}"')


def test_every_point_of_a_figure_leads_to_its_artifacts(made: dict[str, Any]) -> None:
    text = page(made)
    row = [row["id"] for row in made_table()["rows"]].index("ict")
    data = text[text.index('id="d-table1"') :].split("</details>")[0]
    assert f'<a href="#v-table1-{row}" class="n">0.01235</a>' in data
    why = section(text, f'id="v-table1-{row}"')
    assert "Figure table1: ICT [BM25 negatives]" in why
    read = {re.search(rf'id="{key}"[^>]*><h3>([^<]*)<', text)[1] for key in re.findall(r'href="#(a\d+)"', why)}  # type: ignore[index]
    assert {"results/scores/ict-s0", "results/scores/ict-s1"} <= read


def test_a_claim_leads_to_the_numbers_that_it_rests_on(made: dict[str, Any]) -> None:
    text = page(made)
    claim = text.split('id="k-c01"')[1].split("</article>")[0]
    assert '<a class="n" href="#x-c01"><span class="badge holds">' in claim
    why = section(text, 'id="x-c01"')
    row = [row["id"] for row in made_table()["rows"]].index("ict")
    assert f'table1: ICT [BM25 negatives] RR@10 <a href="#w-table1-{row}-0">' in why
    assert 'costa/table1: COSTA [BM25 negatives] MRR@10 <a href="#w-costa-table1-1-0">0.342</a>' in why
    assert "costa/figure4: RR@10, COSTA, 100" in why, "a figure that is not in the page is named and no link"
    assert "encore explain results/claims.csv --row C01" in why
    assert "No number of a table" in section(text, 'id="x-c02"')


def test_no_number_of_ours_stands_without_a_way_to_the_bytes(made: dict[str, Any]) -> None:
    """Of tables, figures and claims: each leads to a section, and that to artifacts or to numbers that do."""
    text = page(made)
    targets = re.findall(r'class="n"[^>]*href="#([^"]+)"|href="#([^"]+)" class="n"', text)
    found = {first or second for first, second in targets}
    assert {key[0] for key in found} == {"w", "v", "x"}
    for key in found:
        why = section(text, f'id="{key}"')
        ours = "<dt>Ours</dt><dd>0." in why or key[0] == "v"
        assert not ours or re.search(r'href="#a\d+"', why), key
    shown = re.findall(r"<td>(.*?)</td>", section(text, 'id="t-table1"'))
    assert all(cell.startswith('<a class="n"') for cell in shown if re.search(r"\d\.\d", cell))


def made_table() -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(Path("results/tables/table1.manifest.json").read_text())["spec"]
    return spec


def test_what_was_not_run_shows_what_is_printed_and_the_command(made: dict[str, Any]) -> None:
    table = section(page(made), 'id="t-costa-table1"')
    assert re.findall(r'<i class="p">(.*?)</i>', table) == ["0.310", "0.342"]
    assert "snakemake results/tables/costa/table1.csv --profile local --configfile config/mine.yaml" in table
    assert "Printed with three digits." in table
    assert "reported_only" not in table
    assert "SEED’s authors" in section(page(made), 'id="w-costa-table1-0-0"')


def test_a_table_shows_what_its_own_page_shows(tmp_path: Path) -> None:
    """Read back, the page of a table is the sheet that it was written from."""
    for changes in ({}, {"unit": "percent"}, {"significance": None}):
        shown = table_of(plan(tmp_path, seeds=1) | changes)
        write_text(tmp_path / "table1.html", formats.render(shown, "html"))
        assert sheets.read_sheet(tmp_path / "table1.html") == make_sheet(shown)
    write_text(tmp_path / "table1.html", "<p>nothing</p>")
    with pytest.raises(EncoreError, match="has no table"):
        sheets.read_sheet(tmp_path / "table1.html")


def test_claims_are_counted_by_paper_and_say_what_failed(made: dict[str, Any]) -> None:
    text = page(made)
    counts = section(text, 'id="summary"')
    assert '<th scope="row">COSTA</th><td>1</td><td>1</td>' in counts
    assert "COSTA is above &lt;all&gt; others." in text
    claim = text[text.index('id="k-c02"') :].split("</article>")[0]
    assert "0 of 3 inequalities hold" in claim
    assert 'href="#k-c01"' in claim
    assert "claims.csv was not made" in claim


def test_verdicts_on_runs_stand_beside_those_on_printed_numbers(made: dict[str, Any]) -> None:
    line = {"id": "C01", "paper": "costa", "place": "", "claim": "", "verdict": "too few seeds", "why": ""}
    line |= {"inequalities": "3", "needed": "3", "held": "2", "weakest": "x, y", "estimate": "0.0123", "p": "0.4"}
    line |= {"interval_low": "-0.01", "interval_high": "0.03", "detectable": "0.05", "seeds": "1", "proxy_data": "yes"}
    small_report.write_claims("claims", [line])
    claim = page(made | {"claims": True}).split('id="k-c01"')[1].split("</article>")[0]
    assert "too few seeds" in claim
    assert "0.0123 [-0.01, 0.03]" in claim
    assert 'data-verdict="holds too-few-seeds"' in claim.split(">")[0]


def test_the_confound_ledger_names_what_rows_differ_in(made: dict[str, Any]) -> None:
    ledger = section(page(made), 'id="confounds"')
    assert "Operations of pre-training" in ledger
    assert "1.0e+09: NONE; 2.0e+09: CONTROL; 3.0e+09: MLM; 4.0e+09: ICT" in ledger
    assert "none: NONE, CONTROL, ICT; 3 of learning_rate: MLM" in ledger
    assert "Texts of pre-training" not in ledger
    assert "Seeds" not in ledger


def test_a_row_with_fewer_seeds_is_in_the_ledger(made: dict[str, Any]) -> None:
    table = made_table()
    for cell in row_of(table, "ict")["cells"].values():
        cell["reads"] = cell["reads"][:1]
    small_report.write_table(table)
    assert "2: NONE, CONTROL, MLM; 1: ICT" in section(page(made), 'id="confounds"')


def test_data_and_budget_are_told(made: dict[str, Any]) -> None:
    run = section(page(made), 'id="run"')
    assert "<td>1,234</td><td>40</td><td>test: 40, 50</td>" in run
    trained = run[run.index("tiny+ict<") :].split("</tr>")[0]
    assert "<td>4e+09</td>" in trained
    assert trained.count('href="#a') == 2
    assert "3.02 min" in trained


def test_latencies_are_told_with_their_machine(made: dict[str, Any]) -> None:
    line = section(page(made), 'id="efficiency"').split("bm25-55555555")[1].split("</tr>")[0]
    cells = ["3", "1,234", "encode 1.5; search 20", "3 MiB", "12.5", "A Processor, 1 thread, load 0.5"]
    assert re.findall("<td>(.*?)</td>", line) == cells


def test_a_folder_that_is_gone_is_named_and_no_more(made: dict[str, Any]) -> None:
    (Path("results/collections/small-11111111") / MANIFEST).unlink()
    text = page(made)
    assert "its folder is not here" in text
    assert not Read(text).wrong


def test_a_product_that_was_altered_is_refused(made: dict[str, Any]) -> None:
    with Path("results/tables/table1.csv").open("a") as file:
        file.write("x\n")
    with pytest.raises(EncoreError, match=r"table1\.csv is not what its manifest says"):
        page(made)


def test_text_has_contrast_in_the_light_and_in_the_dark(made: dict[str, Any]) -> None:
    """At least 4.5 to 1 between every colour of text and what it stands on (WCAG AA)."""
    light, dark = re.findall(r":root \{([^}]*--ink[^}]*)\}", page(made))[:2]
    for said in (light, dark):
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]+)", said))
        for name in colours.keys() - {"line", "band", "page"}:
            for ground in ("page", "band"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


def contrast(one: str, other: str) -> float:
    """The ratio of two colours' luminances, as WCAG 2 defines it."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
