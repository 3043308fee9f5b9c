"""Articles: a module is an article, the bodies of its objects are the sections."""

from collections.abc import Iterable
from typing import Any

from encore.datasets.pydocs.links import DocstringLink
from encore.datasets.pydocs.objects import Object


def articles(objects: Iterable[Object], links: Iterable[DocstringLink]) -> list[dict[str, Any]]:
    """Rows of ``articles.jsonl.gz``; the module's own body, where it has one, is the first section.

    Section titles are the objects' names. Summaries are in no section.
    """
    rows: dict[str, dict[str, Any]] = {}
    place: dict[str, tuple[str, int]] = {}
    for each in objects:
        row = rows.setdefault(each.module, {"_id": each.module, "title": each.module, "sections": [], "links": []})
        place[each.id] = (each.module, len(row["sections"]))
        row["sections"].append({"title": each.name or each.module, "sentences": list(each.sentences)})
    for link in links:
        module, section = place[link.source]
        target, anchor = place[link.target]
        rows[module]["links"].append({"section": section, "to": target, "anchor": anchor, "origin": link.origin})
    return list(rows.values())
