"""Pages in Chromium: what a script finds in one, and what is said on the console."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
OPTIONS += ("--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--v=0", "--hide-scrollbars")
ASKING = """<script>addEventListener("load", async () => {
const wait = () => new Promise((done) => setTimeout(done, 100));
const found = await (async () => { %s })();
const answer = document.createElement("pre");
answer.id = "answer"; answer.textContent = JSON.stringify(found); document.body.append(answer);
})</script></body>"""


def browse(folder: Path, text: str, *options: str, place: str = "") -> subprocess.CompletedProcess[str]:
    """Open a page."""
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    window = (f"--user-data-dir={folder / 'profile'}", "--window-size=1280,800", "--virtual-time-budget=5000")
    command = [str(CHROMIUM), *OPTIONS, *window, *options, f"file://{path}{place}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)


def ask(text: str, folder: Path, script: str, *options: str, place: str = "") -> tuple[Any, list[str]]:
    """What a script returns that runs in the page, and all that was said on the console."""
    done = browse(folder, text.replace("</body>", ASKING % script), *options, "--dump-dom", place=place)
    answer = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return json.loads(html.unescape(answer[1])) if answer else None, said
