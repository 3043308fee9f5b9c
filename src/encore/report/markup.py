"""Pieces of HTML that several parts of the page are made of. Everything that is given as text is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple


class Html(NamedTuple):
    """Text that is markup already."""

    markup: str


Content = Html | str
PROSE = "prose"  # the kind of a table of sentences, whose cells break lines


def markup(content: Content) -> str:
    """Content as markup; text is escaped."""
    return content.markup if isinstance(content, Html) else escape(content)


def link(target: str, text: str, **attributes: str) -> Html:
    """A link to a place of the page."""
    extra = "".join(f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"' for name, value in attributes.items())
    return Html(f'<a href="#{target}"{extra}>{escape(text)}</a>')


def code(text: str) -> Html:
    """Text in the font of code."""
    return Html(f"<code>{escape(text)}</code>")


def joined(parts: Iterable[Content], between: str = ", ") -> Html:
    """Contents in a row, with markup ``between`` them."""
    return Html(between.join(map(markup, parts)))


def badge(verdict: str) -> Html:
    """A verdict, whose colour the style sheet gives by its class; the word alone says it too."""
    return Html(f'<span class="badge {slug(verdict)}">{escape(verdict)}</span>')


def facts(of: Mapping[str, Content]) -> str:
    """Names with what they stand for; without what is empty."""
    pairs = ((name, markup(value)) for name, value in of.items())
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in pairs if value) + "</dl>"


def html_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[Content]], kind: str = "") -> str:
    """A table in a box of its own that scrolls; the first cell of a row names it. ``kind`` is a class of the style."""
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in header)
    lines = "".join(_line(row) for row in rows)
    kind = f' class="{kind}"' if kind else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody>"
    return scrolling(caption, f"<table{kind}><caption>{escape(caption)}</caption>{body}</table>")


def scrolling(name: str, inner: str) -> str:
    """A box that scrolls by itself, with the keyboard too."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}">{inner}</div>'


def slug(text: str) -> str:
    """A name of a place or of a class."""
    return "-".join("".join(sign if sign.isalnum() else " " for sign in text.lower()).split())


def count(value: object) -> str:
    """A whole number with commas; anything else as it is."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def significant(value: str, digits: int = 3) -> str:
    """A number of a CSV, short; nothing for nothing."""
    return f"{float(value):.{digits}g}" if value else ""


def _line(row: Sequence[Content]) -> str:
    first, *others = row
    values = "".join(f"<td>{markup(each)}</td>" for each in others)
    return f'<tr class="row"><th scope="row">{markup(first)}</th>{values}</tr>'
