"""What the site's builder must know of pages that are written for the repository; ``mkdocs.yml`` names this file."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
SHOWN = {".png", ".svg", ".html"}  # of what is recorded, the site has these


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to files that are no pages of the site to the repository.

    Raises:
        FileNotFoundError: there is no such file.
    """
    folder = (ROOT / "docs" / page.file.src_uri).parent

    def led(link: re.Match[str]) -> str:
        before, target, after = link.groups()
        path = (folder / target).resolve()
        if not path.exists():
            raise FileNotFoundError(f"docs/{page.file.src_uri} links to {target}, which is not there")
        place = path.relative_to(ROOT)
        is_page = place.parts[0] == "docs" and (place.parent == Path("docs") or path.suffix in SHOWN) and path.is_file()
        kind = "tree" if path.is_dir() else "blob"
        return link[0] if is_page else f"{before}{config.repo_url.rstrip('/')}/{kind}/main/{place}{after}"

    return LINK.sub(led, markdown)
