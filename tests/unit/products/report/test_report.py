"""The report: its contents, that its links resolve, that it needs nothing but itself, and that it repeats."""

import json
import re
import shlex
import shutil
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from encore.errors import EncoreError
from encore.evaluation.families import UNTESTED
from encore.products.claims import verdict
from encore.products.report.claims import VERDICTS
from encore.products.tables.comparisons import TOO_FEW
from encore.products.tables.table import read_table
from encore.storage.files import sha256
from encore.storage.manifest import MANIFEST
from tests.support import small_report
from tests.support.small_report import page, products
from tests.support.small_table import row_of

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


def test_on_your_own_data_the_page_names_no_paper_and_no_claim(made: dict[str, Any]) -> None:
    content = json.loads(Path("results/tables/table1.manifest.json").read_text())["spec"] | {"proxy_data": "own"}
    small_report.write_table(content)
    own = made | {"proxy_data": "own", "claims": False, "figures": []}
    text = page(own | {"stated": {}, "about": {}, "cells": {}, "printed": {}})
    read = words(re.sub(r"(?s)<(style|script).*?</\1>", "", text))
    assert "On your own data." in read
    assert made_table()["proxy_data"] == "own"
    assert re.findall(r"(?i)\b(?:papers?|claims?|proxy)\b", read) == []


def panel(text: str, key: str) -> str:
    """The panel of a name, without its tags."""
    return words(section(text, f'<section class="panel" id="{key}"'))


def words(markup: str) -> str:
    """What people read of markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def row_number(name: str) -> int:
    return [row["id"] for row in made_table()["rows"]].index(name)


def test_every_number_leads_to_its_artifacts(made: dict[str, Any]) -> None:
    """From the cell to its scores, from these to the model, and so down to the texts."""
    text = page(made)
    key = f"w-table1-{row_number('ict')}-0"
    why = section(text, f'id="{key}"')
    assert "over 2 seeds" in panel(text, key)
    assert "encore explain results/tables/table1.csv --row ict --setting 'BM25 negatives'" in panel(text, key)
    folders = ["scores/ict-s0", "scores/ict-s1", "models/tiny+ict-s0-44444444", "tokens/small-22222222"]
    folders.append("collections/small-11111111")
    places = {folder: re.search(rf'id="(a\d+)"[^>]*>\s*<h3>results/{re.escape(folder)}<', text) for folder in folders}
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
    key = f"v-table1-{row_number('ict')}"
    data = text[text.index('id="d-table1"') :].split("</details>")[0]
    assert f'<a class="n" href="#{key}">0.01235</a>' in data
    assert panel(text, key).startswith("Figure table1: ICT [BM25 negatives]")
    read = set(re.findall(r"results/\S+", panel(text, key)))
    assert read == {"results/figures/table1.csv"}
    names = [re.search(rf'id="{each}"[^>]*>\s*<h3>([^<]*)<', text) for each in artifact_links(text, key)]
    assert {found[1] for found in names if found} == {"results/scores/ict-s0", "results/scores/ict-s1"}


def test_ids_and_ranks_of_a_figure_are_not_rounded(made: dict[str, Any]) -> None:
    path = Path("results/figures/table1.csv")
    header, *lines = path.read_text().splitlines()
    added = [f"{header},query,rank", *(f"{line},{1048585 + place}.5,12345" for place, line in enumerate(lines))]
    path.write_text("".join(f"{line}\n" for line in added))
    small_report.record(Path("results/figures/table1"), {"rows": []}, ("png", "svg", "csv"))
    data = page(made).partition('id="d-table1"')[2].split("</details>")[0]
    assert {"1048585.5", "12345"} <= set(re.findall(r">([^<>\s]+)<", data))


def artifact_links(text: str, key: str) -> list[str]:
    return re.findall(r'href="#(a\d+)"', section(text, f'id="{key}"'))


def claim_row(text: str, key: str) -> str:
    return text[text.index(f'id="{key}"') :].split("</tr>", 1)[0]


def test_a_claim_leads_to_the_numbers_that_it_rests_on(made: dict[str, Any]) -> None:
    text = page(made)
    claim = claim_row(text, "k-c01")
    row = row_number("ict")
    ours = read_table(Path("results/tables/table1.json")).rows[row].cells["rr"].text
    assert f'RR@10 <a href="#w-table1-{row}-0">{ours}</a>' in claim
    assert "table1 : ICT [BM25 negatives] RR@10" in words(claim)
    assert 'MRR@10 <a href="#c-costa-table1-1-0">0.342</a>' in claim
    assert "costa/figure4: RR@10, COSTA, 100" in words(claim), "a figure that is not in the page is named and no link"
    assert "encore explain results/claims.csv --row C01" in words(claim)
    assert "no number of a table" in claim_row(text, "k-c02")


def test_no_number_of_ours_stands_without_a_way_to_the_bytes(made: dict[str, Any]) -> None:
    """Of tables and figures: each leads to a panel, and that to artifacts."""
    text = page(made)
    found = set(re.findall(r'class="n" href="#([^"]+)"', text))
    assert {key[0] for key in found} == {"w", "v"}
    assert [key for key in found if not artifact_links(text, key)] == []
    shown = re.findall(r"<td[^>]*>(.*?)</td>", section(text, 'id="t-table1"'))
    numbers = [cell for cell in shown if re.search(r"\d\.\d", cell) and "<svg" not in cell]
    assert len(numbers) > 10
    assert [cell for cell in numbers if not cell.startswith('<a class="n"')] == []


def made_table() -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(Path("results/tables/table1.manifest.json").read_text())["spec"]
    return spec


def test_what_was_not_run_shows_what_is_printed_and_the_command(made: dict[str, Any]) -> None:
    table = section(page(made), 'id="t-costa-table1"')
    assert re.findall(r'<i class="p">(.*?)</i>', table) == ["0.310", "0.342"]
    assert "snakemake results/tables/costa/table1.csv --profile local --configfile config/mine.yaml" in table
    assert "Printed with three digits." in table
    assert "reported_only" not in table
    assert "SEED from SEED’s authors" in words(table)
    assert "printed.csv" in table


def test_rows_of_a_papers_table_say_how_they_come_about(made: dict[str, Any]) -> None:
    """A table with printed numbers is a paper's; our own say nothing, since all rows are run."""
    assert "<small>run</small>" not in section(page(made), 'id="t-table1"')
    record, data = Path("results/tables/table1.manifest.json"), Path("results/tables/table1.json")
    table, manifest = (json.loads(path.read_text()) for path in (data, record))
    table["rows"][1]["origin"] = "run from released weights"
    table["rows"][2] |= {"origin": "printed only", "reported_only": "Lu et al. 2021"}
    data.write_text(json.dumps(table))
    manifest["spec"]["reported"], manifest["outputs"]["table1.json"]["sha256"] = "t.csv", sha256(data)
    record.write_text(json.dumps(manifest))
    shown = re.findall(r'<th scope="row">.*?<small>(.*?)</small></th>', section(page(made), 'id="t-table1"'))
    assert shown[:3] == ["run", "run from released weights", "printed only, by Lu et al. 2021"]
    assert set(shown[3:]) == {"run"}


def test_a_table_shows_what_its_data_say(made: dict[str, Any]) -> None:
    """Every part of every cell of ``table1.json``, in the order of rows and columns."""
    shown = section(page(made), 'id="t-table1"')
    data = read_table(Path("results/tables/table1.json"))
    cells = [row.cells[column.id] for row in data.rows for column in data.shown()]
    found = [re.sub(r"<sup>.*?</sup>|<[^>]*>", "", text) for text in re.findall(r'<td id="c-[^"]*">(.*?)</td>', shown)]
    assert found == [cell.text for cell in cells]
    assert sum(map(bool, found)) > 5
    markers = [cell.ours.markers for cell in cells if cell.ours and cell.ours.markers]
    assert re.findall(r"<sup>(.*?)</sup>", shown) == markers
    assert markers


def test_the_first_screen_says_on_what_data_and_how_many_claims_came_out_how(made: dict[str, Any]) -> None:
    text = page(made)
    first = words(text[text.index('id="summary"') : text.index('id="claims"')])
    assert "Not the papers’ data" in first
    assert "Searched small , 1,234 passages Queries 40 and 8 with judgments" in first
    assert "Models 2 layers of 8 Seeds 2 seeds: 0, 1" in first, "models of one size are told once"
    assert "2 claims on our runs 1 holds here 1 fails here" in first
    assert first.index("A <small> table") > first.index("2 claims")


def test_the_forest_plot_draws_the_differences_of_the_table(made: dict[str, Any]) -> None:
    """The longest interval reaches 47 % of the axis from its middle; the others are to scale."""
    shown = section(page(made), 'id="t-table1"')
    data = read_table(Path("results/tables/table1.json"))
    compared = [found for row in data.rows if (found := data.to_control(row, "rr"))]
    reach = max(max(abs(one.low), abs(one.high)) for one in compared)
    drawn = [
        [float(value) for value in each] for each in re.findall(r'<line x1="([\d.]+)%" x2="([\d.]+)%" y1="50%"', shown)
    ]
    assert len(drawn) == len(compared) > 2
    for (low, high), one in zip(drawn, compared, strict=True):
        assert low == pytest.approx(50 + 47 * one.low / reach, abs=0.01)
        assert high == pytest.approx(50 + 47 * one.high / reach, abs=0.01)


def test_nouns_agree_with_their_numbers(made: dict[str, Any]) -> None:
    text = words(page(made))
    assert "1 table was made under this configuration" in text
    assert re.findall(r"\b1 (?:tables|claims|seeds|files|lines|inequalities|numbers|passages|layers)\b", text) == []
    assert re.findall(r"\b(?:[02-9]|\d\d+) (?:table|claim|seed|file|line|number|passage|layer)\b", text) == []


def test_printed_numbers_are_counted_and_the_count_says_what_of(made: dict[str, Any]) -> None:
    said = "The papers’ tables on this page have 2 cells, in which the papers print 2 numbers."
    assert said in words(page(made))
    lines = [small_report.PRINTED.replace(".310", value) for value in ("OOM", "")]
    Path("printed.csv").write_text(lines[0])
    assert "have 2 cells, in which the papers print 1 number, 1 word or sign such as OOM." in words(page(made))
    Path("printed.csv").write_text(lines[1])
    assert "have 2 cells, in which the papers print 1 number, and nothing in 1." in words(page(made))


def test_claims_are_counted_by_paper_and_say_what_was_found(made: dict[str, Any]) -> None:
    text = page(made)
    counts = section(text, 'id="claims"')
    assert '<th scope="row">COSTA</th><td>1</td><td>1</td><td>2</td>' in counts
    assert "COSTA is above &lt;all&gt; others." in text
    claim = claim_row(text, "k-c01")
    assert "holds here ; 2 of 3 inequalities lie on its side; by chance 0.12" in words(claim)
    assert "over the control: fails here −0.02, p 0.01; 1 seed;" in words(claim)
    assert "0.0123 [−0.01, 0.03], p 0.4;" in words(claim)
    assert "; 1 seed; each comparison alone could have shown 0.05" in words(claim)
    assert 'data-run="holds here"' in claim.split(">")[0]


def test_claims_that_were_not_judged_say_how_to_judge_them(made: dict[str, Any]) -> None:
    text = page(made | {"claims": False})
    assert "2 claims on our runs Not judged yet. To judge them: snakemake results/claims.csv" in words(text)
    assert "claims.csv was not made" in claim_row(text, "k-c02")


def test_every_verdict_has_a_colour_and_a_meaning(made: dict[str, Any]) -> None:
    """Those of the two ledgers, which the page orders and explains."""
    on_runs = {verdict.REPRODUCED, verdict.CONTRADICTED, verdict.HOLDS_HERE, verdict.FAILS_HERE, verdict.PREMISE}
    on_runs |= {each.value for each in (verdict.Evidence.DIRECTION, verdict.Evidence.OPEN, verdict.Evidence.OPPOSITE)}
    on_runs |= {TOO_FEW, UNTESTED}
    assert {*VERDICTS} == on_runs


def test_the_confound_ledger_names_what_rows_differ_in(made: dict[str, Any]) -> None:
    ledger = words(section(page(made), 'id="confounds"'))
    assert "Operations of pre-training" in ledger
    assert "1.0e+09: NONE; 2.0e+09: CONTROL; 3.0e+09: MLM; 4.0e+09: ICT" in ledger
    assert "none: NONE, CONTROL, ICT; 3 of learning_rate: MLM" in ledger
    assert "article: CONTROL; overfull, 15% of them shorter: MLM" in ledger
    assert "15% of pieces: CONTROL; 30% of whole words: MLM" in ledger, "ICT without MLM masks nothing"
    assert "Texts of pre-training" not in ledger
    assert "Seeds" not in ledger


def test_a_row_with_fewer_seeds_is_in_the_ledger(made: dict[str, Any]) -> None:
    table = made_table()
    for cell in row_of(table, "ict")["cells"].values():
        cell["reads"] = cell["reads"][:1]
    small_report.write_table(table)
    assert "2: NONE, CONTROL, MLM; 1: ICT" in words(section(page(made), 'id="confounds"'))


def test_data_and_budget_are_told(made: dict[str, Any]) -> None:
    run = section(page(made), 'id="run"')
    assert "small-11111111 small 1,234 40 test: 40, 50" in words(run)
    trained = run[run.index("tiny+ict<") :].split("</tr>")[0]
    assert "<td>4e+09</td>" in trained
    assert re.findall(r'href="#a\d+">([^<]*)<', trained) == ["0", "1"], "the seeds"
    assert "3.02 min" in trained


def test_latencies_are_told_with_their_machine(made: dict[str, Any]) -> None:
    line = section(page(made), 'id="run"').split("bm25-55555555")[1].split("</tr>")[0]
    cells = ["3", "1,234", "encode 1.5; search 20", "3 MiB", "12.5", "A Processor, 1 thread, load 0.5"]
    assert re.findall("<td>(.*?)</td>", line) == cells


def test_commands_can_be_pasted_whatever_is_in_their_names(made: dict[str, Any]) -> None:
    """A label of a figure's line and a run's file go through a shell as they are."""
    odd = "it's $(touch pwned); `x`"
    record = Path("results/figures/table1.manifest.json")
    said = json.loads(record.read_text())
    next(row for row in said["spec"]["rows"] if row["id"] == "ict")["label"] = odd
    small_report.write_json(record, said)
    run = ["--config", f"config/{odd}.yaml"]
    text = page(made | {"run": run[-1]})
    commands = [unescape(each) for each in re.findall(r"<code>((?:encore|snakemake) .*?)</code>", text)]
    assert len(commands) > 20
    parts = [shlex.split(command) for command in commands]
    line = ["encore", "explain", "results/figures/table1.csv", "--row", odd, "--setting", "BM25 negatives", *run]
    assert line in parts
    assert ["encore", "audit", *run] in parts
    assert {tuple(each[-2:]) for each in parts if each[0] == "encore"} == {tuple(run)}, "each is about this run"
    assert {len(each) for each in parts if each[0] == "snakemake"} == {6}


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
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]+)", said))
        for name in (name for name in colours if name not in ("line", "band", "page") and "fill" not in name):
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
