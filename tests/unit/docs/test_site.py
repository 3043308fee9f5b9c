"""The site's links: to its own pages as they are, to other files in the repository, and to nothing that is missing."""

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
        ("../README.md#on-a-cluster", f"{LED}/blob/main/README.md#on-a-cluster"),
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
