"""What a figure or a table of a plan is made from."""

from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.products.figures.plan import figure_plan
from encore.products.kinds import BY_RULE
from encore.products.tables.plan import table_plan


def figure_reads(plan: Plan, name: str) -> list[Artifact]:
    """Every artifact that a figure reads, once."""
    return list(map(plan.find, BY_RULE["draw"].folders(figure_plan(plan, name))))


def table_reads(plan: Plan, name: str) -> list[Artifact]:
    """Every artifact that a table reads, once, in the order of its rows and columns."""
    return list(map(plan.find, BY_RULE["table"].folders(table_plan(plan, name))))


def table_scores(plan: Plan, name: str) -> list[Artifact]:
    """Every folder of scores among them."""
    return [artifact for artifact in table_reads(plan, name) if artifact.stage == "evaluate"]
