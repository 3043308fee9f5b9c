"""A figure's slice of the plan: what it draws, of which folders, with everything of its entry that drawing needs."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from encore.config.validation import explained, nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.products.figures import growth as corpus_size_panels
from encore.products.figures import inspected as inspections
from encore.products.figures import labels
from encore.products.figures.content import FigureContent
from encore.products.substitutes import substitutes

OWN = "encore"  # the folder of our own figures, whose targets drop it
PLANNERS: dict[str, Callable[..., FigureContent]] = {
    "growth": corpus_size_panels.planned,
    "labels": labels.planned,
    "coverage": inspections.coverage,
    "words": inspections.words,
    "heat": inspections.heat,
    "map": inspections.candidates,
}

# What was found for each plan: every wildcard of the workflow requests a slice again.
_known: WeakKeyDictionary[Plan, dict[str, dict[str, Any]]] = WeakKeyDictionary()


def figure_plan(plan: Plan, name: str) -> dict[str, Any]:
    """The slice of a figure: ``rows``, each with its label and the folders that it reads, and its appearance.

    Raises:
        EncoreError: no such figure, or its entry, as the run scales it, names something unknown.
    """
    known = _known.setdefault(plan, {})
    if name not in known:
        known[name] = _slice(plan, name)
    return known[name]


def figure_reads(plan: Plan, name: str) -> list[Artifact]:
    """Every artifact that a figure reads, once."""
    found = (folder for row in figure_plan(plan, name)["rows"] for folder in row["reads"])
    return [plan.find(folder) for folder in dict.fromkeys(found)]


def refuse_name(plan: Plan, name: str, where: str) -> None:
    """Refuse a figure that the catalogue does not have.

    Raises:
        EncoreError: it does not; the message names the nearest one.
    """
    known = plan.catalogue.figures
    if name not in known:
        raise EncoreError(f"{where}: no figure {name!r} in config/papers{nearest(name, known)}")


def _slice(plan: Plan, name: str) -> dict[str, Any]:
    refuse_name(plan, name, "figures")
    entry = plan.resolve.figure(name)
    content = explained(lambda given: PLANNERS[given.kind](plan, given), entry, f"figure {name!r}")
    read = [plan.find(folder) for row in content.rows for folder in row["reads"]]
    notes = [*entry.notes, *content.notes, *substitutes(plan, read)]
    about = {
        "title": entry.title,
        "kind": entry.model_dump()["kind"],
        "paper": name.split("/")[0] if "/" in name else OWN,
    }
    fields = {"rows": content.rows, "notes": list(dict.fromkeys(notes)), "proxy_data": plan.config.proxy_data}
    return {"name": name.rsplit("/", 1)[-1], **about, **fields, **content.fields}
