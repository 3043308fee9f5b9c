"""The report in Chromium: quiet, offline, sorted, filtered, opened, on a telephone, in the dark, on paper."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import browser
from tests.support.small_report import page, products

HELPERS = """
const shown = (selector) => [...document.querySelectorAll(selector)].filter((node) => node.checkVisibility()).length;
const form = (of) => document.querySelector(`form[data-of=${of}]`);
const choose = (of, name, value) => {
  const field = form(of).elements[name];
  field.value = value; field.dispatchEvent(new Event("input", { bubbles: true }));
};
const ids = () => [...document.querySelectorAll("#claims-table .item")].filter((node) => node.checkVisibility())
  .map((node) => node.id);
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.CHROMIUM is None, reason="no browser to look with: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of small products."""
    root = tmp_path_factory.mktemp("browser")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        return page(products(root))


def ask(text: str, folder: Path, script: str, *options: str, place: str = "") -> tuple[Any, list[str]]:
    """What a script returns that runs in the page with the helpers, and all that was said on the console."""
    return browser.ask(text, folder, HELPERS + script, *options, place=place)


def test_the_console_stays_silent_and_would_not_otherwise(text: str, tmp_path: Path) -> None:
    assert ask(text, tmp_path, "return 1;") == (1, [])
    _, said = ask(text, tmp_path, "console.error('a planted mistake'); return 1;")
    assert len(said) == 1
    assert "a planted mistake" in said[0]


def test_claims_are_filtered_by_paper_verdict_and_text(text: str, tmp_path: Path) -> None:
    script = """
      const found = [ids()];
      choose("claims-table", "text", "free costa");
      found.push(ids(), form("claims-table").querySelector("output").textContent);
      choose("claims-table", "text", "free nothing"); found.push(ids());
      choose("claims-table", "text", ""); choose("claims-table", "run", "holds here"); found.push(ids());
      choose("claims-table", "paper", "costa"); found.push(ids());
      form("claims-table").querySelector("button").click(); await wait(); found.push(ids());
      document.querySelector("a[data-choose='run=fails here']").click(); await wait(); found.push(ids());
      location.hash = "#k-c01"; await wait(); found.push(ids());
      return found;
    """
    (start, free, said, nothing, holds, costa, cleared, linked, shown), console = ask(text, tmp_path, script)
    assert start == cleared == ["k-c01", "k-c02"]
    assert (free, said, nothing) == (["k-c02"], "1 of 2 shown", [])
    assert holds == costa == ["k-c01"]
    assert linked == ["k-c02"], "a count on the first screen leaves the claims that it counts"
    assert shown == start, "what the address names is never left out"
    assert console == []


def test_claims_are_sorted_by_each_column_in_both_directions(text: str, tmp_path: Path) -> None:
    script = """
      const button = (name) => document.querySelector(`[data-sort=${name}] button`);
      const order = (name) => { button(name).click(); return [ids()[0], button(name).closest("th").ariaSort]; };
      return [order("id"), order("id"), order("claim"), order("run"), order("run"),
              document.querySelectorAll("#claims-table [aria-sort]").length];
    """
    (first, last, claim, good, bad, marked), console = ask(text, tmp_path, script)
    assert (first, last) == (["k-c01", "ascending"], ["k-c02", "descending"])
    assert claim == ["k-c01", "ascending"], "COSTA before It"
    assert (good, bad) == (["k-c01", "ascending"], ["k-c02", "descending"]), "holds before fails, not by letters"
    assert marked == 1
    assert console == []


def test_a_claim_opens_to_its_detail(text: str, tmp_path: Path) -> None:
    script = """
      const detail = document.querySelector("#k-c02 details"), found = [shown("#k-c02 dl")];
      detail.querySelector("summary").click(); found.push(shown("#k-c02 dl"));
      location.hash = "#k-c01"; await wait(); found.push(shown("#k-c01 dl"));
      return found;
    """
    assert ask(text, tmp_path, script) == ([0, 1, 1], [])


def test_tables_are_filtered(text: str, tmp_path: Path) -> None:
    script = """
      const found = [shown("#tables .table"), shown("#tables li.item")];
      choose("tables", "state", "made"); found.push(shown("#tables .table"), shown("#tables li.item"));
      return found;
    """
    assert ask(text, tmp_path, script)[0] == [1, 2, 0, 1], "the first table is on the first screen"


def test_without_a_program_all_of_it_is_there(text: str, tmp_path: Path) -> None:
    """The address alone opens a panel; what only the program can do is not shown."""
    dead = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    script = (
        """return [shown(".panel"), shown(".filter"), shown("th button"), ids().length, shown("#k-c01 summary")];"""
    )
    assert ask(dead, tmp_path, script, place="#w-table1-4-0")[0] == [1, 0, 0, 2, 1]


def test_a_number_opens_its_chain_down_to_the_texts_and_escape_closes_it(text: str, tmp_path: Path) -> None:
    script = """
      document.querySelector("#t-table1 a.n[href$='-4-0']").click(); await wait();
      const open = document.querySelector(".panel:target");
      const found = [shown(".panel"), document.activeElement === open, open.querySelector("h3").textContent];
      found.push([...open.querySelectorAll(".chain a")].map((link) => link.textContent));
      dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" })); await wait();
      return [...found, shown(".panel"), location.hash];
    """
    (count, focused, title, chain, closed, place), said = ask(text, tmp_path, script)
    assert (count, focused, closed) == (1, True, 0)
    assert title == "table1: ICT [BM25 negatives], RR@10"
    assert set(chain[:4]) >= {"scores/ict-s0", "collections/small-11111111"}
    assert "tokens/small-22222222" in chain
    assert place == "#c-table1-4-0"
    assert not said


def test_the_first_screen_has_the_answer(text: str, tmp_path: Path) -> None:
    script = """
      const bottom = (selector) => document.querySelector(selector).getBoundingClientRect().bottom;
      return [innerWidth, innerHeight, bottom(".cards"), bottom("#t-table1 table"), shown("#t-table1 .plot svg")];
    """
    (width, height, cards, table, drawn), _ = ask(text, tmp_path, script)
    assert (width, height) <= (1280, 800)
    assert cards < table <= height
    assert drawn == 6


def test_of_a_long_table_the_first_setting_is_on_the_first_screen(text: str, tmp_path: Path) -> None:
    """The embedded default's table 1 has 21 rows, of which BM25 and the first setting's are eleven."""
    script = """
      const rows = () => [...document.querySelectorAll("#t-table1 tbody tr")].filter((row) => row.querySelector("td"));
      const drawn = rows().find((row) => row.querySelector("svg"));
      while (rows().length < 21) drawn.after(drawn.cloneNode(true));
      const first = rows().slice(0, 11);
      const seen = first.filter((row) => row.getBoundingClientRect().bottom <= innerHeight);
      return [rows().length, seen.length, seen.filter((row) => row.querySelector("svg")).length];
    """
    assert ask(text, tmp_path, script)[0] == [21, 11, 11]


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_never_scrolls_sideways(text: str, tmp_path: Path, width: int) -> None:
    """In a frame, since a window has a least width; only tables and pictures scroll, each in its box."""
    inner = tmp_path / "inner.html"
    inner.write_text(text, encoding="utf-8")
    frame = (
        f'<body><iframe src="inner.html#w-table1-4-0" style="width:{width}px;height:800px;border:0"></iframe></body>'
    )
    script = """
      const page = document.querySelector("iframe").contentDocument, view = page.defaultView;
      page.querySelectorAll("details").forEach((each) => { each.open = true; });
      await wait();
      const wide = [...page.querySelectorAll("body *")].filter((node) => node.checkVisibility()
        && !node.closest(".scroll") && node.getBoundingClientRect().right > view.innerWidth + 1);
      return [view.innerWidth, page.documentElement.scrollWidth, wide.map((node) => node.outerHTML.slice(0, 99))];
    """
    (inside, scrolled, wide), _ = ask(frame, tmp_path, script, "--allow-file-access-from-files")
    assert inside == width
    assert scrolled <= inside
    assert wide == []


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_contrast_with_what_it_is_on(text: str, tmp_path: Path, dark: bool) -> None:
    """As computed by the browser: at least 4.5 to 1 (WCAG AA)."""
    script = """
      const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((each) => each / 255)
          .map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ground = (node) => {
        for (let each = node; each; each = each.parentElement) {
          const colour = getComputedStyle(each).backgroundColor;
          if (colour !== "rgba(0, 0, 0, 0)") return colour;
        }
        return "rgb(255, 255, 255)";
      };
      const texts = [...document.querySelectorAll("body *")].filter((node) => node.checkVisibility()
        && [...node.childNodes].some((each) => each.nodeType === 3 && each.data.trim()));
      const low = texts.filter((node) => {
        const [one, other] = [light(getComputedStyle(node).color), light(ground(node))].sort((a, b) => b - a);
        return (one + 0.05) / (other + 0.05) < 4.5;
      });
      return [light(getComputedStyle(document.body).backgroundColor), texts.length, low.map((node) => node.outerHTML)];
    """
    options = ("--blink-settings=preferredColorScheme=0",) if dark else ()
    (ground, texts, low), _ = ask(text, tmp_path, script, *options)
    assert ground < 0.1 if dark else ground > 0.9
    assert texts > 100
    assert low == []


def test_controls_and_parts_have_names(text: str, tmp_path: Path) -> None:
    """Landmarks are named, fields have labels, tables headers, pictures texts, and the keyboard reaches every box."""
    script = """
      const all = (selector) => [...document.querySelectorAll(selector)];
      const named = (node) => node.ariaLabel || node.getAttribute("aria-labelledby");
      return {
        landmarks: ["header", "nav", "main", "footer"].map((name) => all(name).length),
        sections: all("main section:not(.card), nav, form").filter((node) => !named(node)).length,
        fields: all("input, select").filter((node) => !node.labels.length).length,
        headers: all("table").filter((node) => !node.querySelector("th[scope=col]")).length,
        rows: all("tbody tr").filter((node) => !node.querySelector("th")).length,
        pictures: all("img").filter((node) => !node.alt).length,
        boxes: all(".scroll").filter((node) => node.tabIndex !== 0 || !node.ariaLabel).length,
      };
    """
    found, _ = ask(text, tmp_path, script)
    assert found.pop("landmarks") == [1, 1, 1, 1]
    assert set(found.values()) == {0}, found


def test_nothing_is_asked_of_the_network(text: str, tmp_path: Path) -> None:
    script = "return performance.getEntriesByType('resource').map((each) => each.name.slice(0, 5));"
    found, _ = ask(text, tmp_path, script)
    assert [each for each in found if each != "data:"] == []
    planted = text.replace("</main>", '<img src="http://127.0.0.1:9/x.png"></main>')
    assert "http:" in ask(planted, tmp_path, script)[0]


def test_it_prints(text: str, tmp_path: Path) -> None:
    """Onto few pages, the table on the first, without controls and panels."""
    paper = tmp_path / "page.pdf"
    browser.browse(tmp_path, text, f"--print-to-pdf={paper}", "--no-pdf-header-footer", place="#w-table1-4-0")
    assert paper.read_bytes().startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes())) <= 4
    script = (
        "return [shown('.panel'), shown('.filter'), shown('nav'), shown('#t-table1 td'), shown('#claims-table .item')];"
    )
    printed = text.replace("@media print", "@media all")
    panels, filters, links, cells, claims = ask(printed, tmp_path, script, place="#w-table1-4-0")[0]
    assert (panels, filters, links) == (0, 0, 0)
    assert cells > 20
    assert claims == 2
