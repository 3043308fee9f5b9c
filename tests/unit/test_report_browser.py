"""The report in Debian's Chromium: it says nothing on the console, filters, explains, and fits a telephone."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from small_report import page, products

CHROMIUM = shutil.which("chromium")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
OPTIONS += ("--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--v=0", "--hide-scrollbars")
ASKING = """<script>addEventListener("load", async () => {
const wait = () => new Promise((done) => setTimeout(done, 100));
const shown = (selector) => [...document.querySelectorAll(selector)].filter((node) => node.checkVisibility()).length;
const q = document.getElementById("q");
const type = (text) => { q.value = text; q.dispatchEvent(new Event("input", { bubbles: true })); };
const choose = (id, value) => {
  const list = document.getElementById(id);
  list.value = value; list.dispatchEvent(new Event("input", { bubbles: true }));
};
const found = await (async () => { %s })();
const answer = document.createElement("pre");
answer.id = "answer"; answer.textContent = JSON.stringify(found); document.body.append(answer);
})</script></body>"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no browser to look with: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of small products."""
    root = tmp_path_factory.mktemp("browser")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        return page(products(root))


def ask(text: str, folder: Path, script: str, *, place: str = "", width: int = 1280) -> tuple[Any, list[str]]:
    """What a script returns that runs in the page, and all that was said on the console."""
    path = folder / "page.html"
    path.write_text(text.replace("</body>", ASKING % script), encoding="utf-8")
    window = (f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=5000")
    command = [str(CHROMIUM), *OPTIONS, *window, "--dump-dom", f"file://{path}{place}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    answer = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return json.loads(html.unescape(answer[1])) if answer else None, said


def test_the_console_stays_silent_and_would_not_otherwise(text: str, tmp_path: Path) -> None:
    assert ask(text, tmp_path, "return 1;") == (1, [])
    _, said = ask(text, tmp_path, "console.error('a planted mistake'); return 1;")
    assert len(said) == 1
    assert "a planted mistake" in said[0]


def test_search_and_filters_leave_what_fits(text: str, tmp_path: Path) -> None:
    script = """
      const counts = () => [shown(".table"), shown(".claim"), shown("figure"), shown("#t-costa-table1 tr.row")];
      const found = [counts()];
      type("seed authors nothing"); found.push(counts());
      type("SEED"); found.push(counts());
      type(""); choose("paper", "costa"); found.push(counts());
      choose("verdict", "fails"); found.push(counts());
      document.querySelector("#filter button").click(); await wait(); found.push(counts());
      choose("state", "printed"); found.push(counts(), document.getElementById("found").textContent);
      return found;
    """
    (start, nothing, seed, costa, fails, again, printed, said), _ = ask(text, tmp_path, script)
    assert start == again == [2, 2, 1, 2]
    assert nothing == [0, 0, 0, 0]
    assert seed == [2, 0, 0, 1]
    assert costa == [1, 2, 0, 2]
    assert fails == [0, 1, 0, 0]
    assert printed == [1, 0, 0, 2]
    assert said == "1 of 5 shown"


def test_a_number_opens_its_chain_down_to_the_texts_and_escape_closes_it(text: str, tmp_path: Path) -> None:
    script = """
      document.querySelector("#t-table1 a.n[href$='-4-0']").click(); await wait();
      const open = document.querySelector(".why:target");
      const found = [shown(".why"), document.activeElement === open, open.querySelector("h4").textContent];
      found.push([...open.querySelectorAll(".chain a")].map((link) => link.textContent));
      dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" })); await wait();
      return [...found, shown(".why"), location.hash];
    """
    (count, focused, title, chain, closed, place), said = ask(text, tmp_path, script)
    assert (count, focused, closed) == (1, True, 0)
    assert title == "table1: ICT [BM25 negatives], RR@10"
    assert chain[:3] == ["scores/ict-s0", "models/tiny+ict-s0-44444444", "tokens/small-22222222"]
    assert chain[3] == "collections/small-11111111"
    assert place == "#c-table1-4-0"
    assert not said


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_but_tables_in_their_boxes_is_wider_than_the_window(text: str, tmp_path: Path, width: int) -> None:
    script = """
      const wide = [...document.querySelectorAll("body *")].filter((node) => node.checkVisibility()
        && !node.closest(".scroll") && node.getBoundingClientRect().right > innerWidth + 1);
      return [innerWidth, document.documentElement.scrollWidth, wide.map((node) => node.outerHTML.slice(0, 99))];
    """
    (inner, scrolled, wide), _ = ask(text, tmp_path, script, width=width, place="#w-table1-4-0")
    assert scrolled <= inner
    assert wide == []
