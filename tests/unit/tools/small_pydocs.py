"""A finished pydocs collection of a few objects, for what is made of one: queries in all roles, a module's own body."""

from pathlib import Path
from typing import Any

from encore.data.collection import Collection, Judgment, write_collection

# module -> (role of its queries, {object: (summary, sentences)}); the empty name is the module's own.
Objects = dict[str, tuple[str, dict[str, tuple[str | None, list[str]]]]]
OBJECTS: Objects = {
    "lib.tools": (
        "train",
        {
            "": (None, ["Everything for trees.", "Nothing for shrubs."]),
            "grow": (
                "Make a seedling taller every spring",
                ["height (int): How tall it was.", "Growing takes months."],
            ),
        },
    ),
    "lib.paint": (
        "test",
        {
            "paint": (
                "Colour a fence in one afternoon",
                ["colour (str): The name of the paint.", "coats (int, optional): How often it is applied."],
            ),
            "sort_values": ("Sort fences by their values", ["by (str or list): What to compare.", "It is stable."]),
        },
    ),
    "other.music": ("valid", {"play": ("Sound one note after another", ["tempo: Beats in a minute.", "Play loud."])}),
}


def build(folder: Path, objects: Objects = OBJECTS, **others: Any) -> Collection:
    """Write the collection as ``pydocs`` would, with the whole body as passage."""
    named = [
        (f"{module}.{name}" if name else module, module, name, role, summary, sentences)
        for module, (role, members) in objects.items()
        for name, (summary, sentences) in members.items()
    ]
    qrels: dict[str, list[Judgment]] = {"train": [], "valid": [], "test": []}
    articles: dict[str, dict[str, Any]] = {}
    for own, module, name, role, summary, sentences in named:
        if summary:
            qrels[role].append(Judgment(f"q:{own}", own, 3))
        article = articles.setdefault(module, {"_id": module, "title": module, "sections": [], "links": []})
        article["sections"].append({"title": name or module, "sentences": sentences})
    write_collection(
        folder,
        [{"_id": own, "title": "", "text": sentences[0]} for own, *_, sentences in named],
        [
            {"_id": f"q:{own}", "text": summary, "metadata": {"cluster": module}}
            for own, module, _, _, summary, _ in named
            if summary
        ],
        qrels,
        articles.values(),
        **others,
    )
    return Collection(folder)
