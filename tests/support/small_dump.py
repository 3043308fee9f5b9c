"""MediaWiki exports of a few pages, written by the tests themselves."""

import bz2
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo><sitename>Wikipedia</sitename><dbname>enwiki</dbname></siteinfo>
"""
END = "</mediawiki>\n"


class Wiki(NamedTuple):
    """A page to be written."""

    title: str
    text: str = ""
    id: int = 0  # its place among the pages, from 1, where it is 0
    namespace: int = 0
    redirect: str | None = None
    model: str = "wikitext"


def xml(page: Wiki, number: int) -> str:
    redirect = f"    <redirect title={quoteattr(page.redirect)} />\n" if page.redirect else ""
    return f"""  <page>
    <title>{escape(page.title)}</title>
    <ns>{page.namespace}</ns>
    <id>{page.id or number}</id>
{redirect}    <revision>
      <id>99</id>
      <contributor><username>Somebody</username><id>98</id></contributor>
      <model>{page.model}</model>
      <text bytes="1" xml:space="preserve">{escape(page.text)}</text>
    </revision>
  </page>
"""


def write(path: Path, pages: list[Wiki]) -> Path:
    """An export, packed where its name ends in ``.bz2``."""
    content = (HEAD + "".join(xml(page, number) for number, page in enumerate(pages, 1)) + END).encode()
    path.write_bytes(bz2.compress(content) if path.suffix == ".bz2" else content)
    return path


def write_multistream(folder: Path, pages: list[Wiki], together: int = 2) -> Path:
    """The same pages as Wikimedia's ``-multistream`` file."""
    path = folder / "enwiki-pages-articles-multistream.xml.bz2"
    packed = bz2.compress(HEAD.encode())
    for first in range(0, len(pages), together):
        part = list(enumerate(pages, 1))[first : first + together]
        packed += bz2.compress("".join(xml(page, number) for number, page in part).encode())
    path.write_bytes(packed + bz2.compress(END.encode()))
    return path
