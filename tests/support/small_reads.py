"""What a figure or a table of a plan is made from."""

from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.products.figures.plan import figure_plan
from encore.products.tables.plan import table_plan


def figure_reads(plan: Plan, name: str) -> list[Artifact]:
    """Every artifact that a figure reads, once."""
    return [plan.find(str(folder)) for folder in figure_plan(plan, name).reads()]


def table_reads(plan: Plan, name: str) -> list[Artifact]:
    """Every artifact that a table reads, once, in the order of its rows and columns."""
    return [plan.find(str(folder)) for folder in table_plan(plan, name).reads()]


def table_scores(plan: Plan, name: str) -> list[Artifact]:
    """Every folder of scores among them."""
    return [artifact for artifact in table_reads(plan, name) if artifact.stage == "evaluate"]
