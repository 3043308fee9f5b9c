"""The site: README is its front page, its menu has all pages by title, and links lead to pages or the repository."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[3]
LED = "https://host/encore"


def written(markdown: str, page: str = "scales.md") -> str:
    site = runpy.run_path(str(ROOT / "docs/site.py"))
    place = SimpleNamespace(file=SimpleNamespace(src_uri=page))
    text: str = site["on_page_markdown"](markdown, place, SimpleNamespace(repo_url=f"{LED}/"), None)
    return text


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("trust.md", "trust.md"),
        ("collections.md#books", "collections.md#books"),
        ("recorded/demo/figures/table1.png", "recorded/demo/figures/table1.png"),
        ("../README.md#on-a-cluster", "README.md#on-a-cluster"),
        ("../config/README.md", f"{LED}/blob/main/config/README.md"),
        ("recorded/demo/tables/table1.md", f"{LED}/blob/main/docs/recorded/demo/tables/table1.md"),
        ("recorded", f"{LED}/tree/main/docs/recorded"),
        ("https://example.org/a", "https://example.org/a"),
        ("#terms", "#terms"),
    ],
)
def test_a_link_leads_to_a_page_or_to_the_repository(link: str, expected: str) -> None:
    assert written(f"see [it]({link}), and more") == f"see [it]({expected}), and more"


def test_a_link_to_nothing_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match=r"docs/scales\.md links to nowhere\.md"):
        written("[it](nowhere.md)")


def test_the_front_page_is_the_readme_with_all_pages_by_their_titles() -> None:
    index = (ROOT / "docs/README.md").read_text()
    front = written(index, "README.md")
    assert front.startswith((ROOT / "README.md").read_text().partition("](")[0])
    assert "](own-collection.md)" in front
    assert f"]({LED}/blob/main/CONTRIBUTING.md)" in front
    for heading in ("# Encore", "## Try it", "## Guide", "## Reference", "## Design"):
        assert re.search(f"^{heading}", front, re.M), heading
    assert not re.search(r"^# Documentation", front, re.M)
    assert re.findall(r"\[[^]]*\.md[^]]*\]", front) == [], "a name of a file in place of a title"


def test_the_menu_has_every_page_once_and_a_title_for_each() -> None:
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    entries = [line for line in menu.splitlines() if ".md" in line]
    assert [line for line in entries if not re.fullmatch(r" +- [A-Z][^:.]+: [\w-]+\.md", line)] == []
    assert sorted(re.findall(r"[\w-]+\.md", menu)) == sorted(path.name for path in ROOT.glob("docs/*.md"))


def test_the_site_is_built_with_warnings_since_strict_counts_those_that_are_logged() -> None:
    recipe = re.search(r"mkdocs .*", (ROOT / "Makefile").read_text())
    assert recipe is not None
    assert "--strict" in recipe[0]
    assert not re.search(r"--quiet|-q\b", recipe[0])
