"""The slice of the figure of the pre-training steps: the models that it shows, and their labels."""

from collections import Counter
from typing import Any

from encore.config import lineage as naming
from encore.config.lineage import Lineage
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.products.tables.plan import CURVES, table_plan
from encore.products.tables.sources.reads import pretrained


def curves_plan(plan: Plan) -> dict[str, Any]:
    """Every pre-training step of the declared tables, in their order, with its models; no rows where there is none.

    A step is known by the lineage that ends with it. It is called as the table calls it; where rows disagree, by the
    step's name; and by its lineage where two steps would be called alike.
    """
    labels = _labels_of_steps(plan)
    titles = {last: next(iter(given)) if len(given) == 1 else str(last.steps[-1]) for last, given in labels.items()}
    times = Counter(titles.values())
    rows = [
        {
            "label": title if times[title] == 1 else str(last),
            "step": str(last.steps[-1]),
            "lineage": str(last),
            "seeds": [{"seed": seed, "model": plan.model(last, seed).folder} for seed in plan.config.seeds],
        }
        for last, title in titles.items()
    ]
    return {"name": CURVES, "rows": rows, "proxy_data": plan.config.proxy_data}


def curves_models(plan: Plan) -> list[Artifact]:
    """Every model whose curves the figure of the pre-training steps shows."""
    return [plan.find(seed["model"]) for row in curves_plan(plan)["rows"] for seed in row["seeds"]]


def _labels_of_steps(plan: Plan) -> dict[Lineage, set[str]]:
    """The label of each pre-training step in tables: a row's label is about the last of its steps, if about any."""
    labels: dict[Lineage, set[str]] = {}
    for row in (row for name in plan.config.tables for row in table_plan(plan, name)["rows"]):
        for system in dict.fromkeys(cell["system"] for cell in row["cells"].values()):
            if not system or system in plan.catalogue.systems:
                continue
            last, (lineage, index) = None, naming.split_index(system)
            for last in pretrained(plan, naming.parse(lineage)):
                labels.setdefault(last, set())
            if last is not None and index is None:  # a row about an index is not called after the step
                labels[last].add(row["label"])
    return labels
