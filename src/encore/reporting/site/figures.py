"""The figures of the report, inside the page."""

import base64
from html import escape
from pathlib import Path

from encore.reporting.site.markup import code, slug
from encore.reporting.site.shown import paper
from encore.reporting.site.slice import RESULTS, Site

KINDS = {"svg": "image/svg+xml", "png": "image/png"}


def every(site: Site) -> str:
    """Each figure that was made, with the file of its data."""
    if not site.figures:
        return "<p>This configuration declares no figure.</p>"
    return "".join(_figure(name) for name in site.figures)


def _figure(name: str) -> str:
    stem = RESULTS / f"figures/{name}"
    said = f"Figure {escape(name)}"
    source = code(f"{stem}.csv").markup
    return (
        f'<figure class="item" id="f-{slug(name)}" data-paper="{paper(name)}" data-state="made">'
        f'<img src="{_inside(stem)}" alt="{said}, whose data are in {stem}.csv">'
        f"<figcaption>{said}; its data: {source}</figcaption></figure>"
    )


def _inside(stem: Path) -> str:
    """The smaller of a figure's two pictures as an address that holds it."""
    found = {kind: stem.with_name(f"{stem.name}.{kind}").read_bytes() for kind in KINDS}
    kind = min(KINDS, key=lambda kind: len(found[kind]))
    return f"data:{KINDS[kind]};base64,{base64.b64encode(found[kind]).decode()}"
