"""The site on a telephone of 390 x 844 pixels: no page is wider, and what a newcomer reads is at most ten screens."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import browser

ROOT = Path(__file__).parents[3]
MKDOCS = ROOT / ".tools/bin/mkdocs"
FRAME = '<body><iframe style="width:390px;height:844px;border:0"></iframe></body>'
# In a frame, since a window has a least width. Tables and code scroll sideways, each in its box.
MEASURING = """
  const frame = document.querySelector("iframe"), found = {};
  for (const page of %s) {
    await new Promise((done) => { frame.onload = done; frame.src = `site/${page}/index.html`; });
    await wait();
    const root = frame.contentDocument.documentElement, view = frame.contentWindow;
    const wide = [...root.querySelectorAll(".md-content *")].filter((node) => node.checkVisibility()
      && !node.closest("pre, .md-typeset__scrollwrap") && node.getBoundingClientRect().right > view.innerWidth + 1);
    found[page] = {
      height: root.scrollHeight, width: root.scrollWidth, wide: wide.map((node) => node.outerHTML.slice(0, 99)),
      letters: parseFloat(view.getComputedStyle(root.querySelector(".md-content p")).fontSize),
    };
  }
  return found;
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.CHROMIUM is None, reason="no browser to look with: apt-get install chromium"),
    pytest.mark.skipif(not MKDOCS.exists(), reason="nothing to build the site with; `make docs` brings it"),
]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of each page by its name, that of the front is ".": height and width, and size of letters, in pixels."""
    folder = tmp_path_factory.mktemp("telephone")
    command = [str(MKDOCS), "build", "--strict", "--site-dir", str(folder / "site")]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, check=True)
    pages = ["." if path.stem == "README" else path.stem for path in ROOT.glob("docs/*.md")]
    options = ("--allow-file-access-from-files", "--virtual-time-budget=60000")
    found: dict[str, Any]
    found, _ = browser.ask(FRAME, folder, MEASURING % json.dumps(pages), *options)
    return found


def test_no_page_scrolls_sideways_and_letters_are_large_enough(measured: dict[str, Any]) -> None:
    assert len(measured) > 40
    assert {page: each for page, each in measured.items() if each["width"] > 390 or each["wide"]} == {}
    assert {page: each["letters"] for page, each in measured.items() if each["letters"] < 15} == {}


def test_what_a_newcomer_reads_is_at_most_ten_screens(measured: dict[str, Any]) -> None:
    """The front page, the guide and the design; of what is looked up, and results, some pages are longer."""
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    sections = re.split(r"^  - (?=\w+:)", menu, flags=re.MULTILINE)
    read = "".join(each for each in sections if each.startswith(("Start:", "Guide:", "Design:")))
    pages = ["." if name == "README" else name for name in re.findall(r"([\w-]+)\.md", read)]
    assert {".", "own-collection", "trust", "design"} <= set(pages)
    assert {page: measured[page]["height"] for page in pages if measured[page]["height"] > 10 * 844} == {}
