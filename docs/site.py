"""What the site's builder must know of pages that are written for the repository; ``mkdocs.yml`` names this file."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
FRONT = "README.md"  # of docs/: the list of pages, which the site shows below the repository's README
SHOWN = {".png", ".svg", ".html"}  # of what is recorded, the site has these


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page as the site shows it: the front page begins with the repository's README, wide tables have its width."""
    place = Path("docs", page.file.src_uri)
    if place.name.startswith("results-"):
        page.meta["hide"] = ["toc"]
    if page.file.src_uri != FRONT:
        return led(markdown, place, config)
    _, _, pages = markdown.partition("\n## ")
    readme = led((ROOT / "README.md").read_text(), Path("README.md"), config)
    return f"{readme}\n## {led(pages, place, config)}"


def led(markdown: str, page: Path, config: Any) -> str:
    """Lead links of a file of the repository to pages of the site, and to the repository where it has none.

    Raises:
        FileNotFoundError: there is no such file.
    """
    folder = (ROOT / page).parent

    def one(link: re.Match[str]) -> str:
        before, target, after = link.groups()
        path = (folder / target).resolve()
        if not path.exists():
            raise FileNotFoundError(f"{page} links to {target}, which is not there")
        place = path.relative_to(ROOT)
        is_page = place.parts[0] == "docs" and (place.parent == Path("docs") or path.suffix in SHOWN) and path.is_file()
        if is_page or place == Path("README.md"):
            return f"{before}{place.relative_to('docs') if is_page else FRONT}{after}"
        kind = "tree" if path.is_dir() else "blob"
        return f"{before}{config.repo_url.rstrip('/')}/{kind}/main/{place}{after}"

    return LINK.sub(one, markdown)
