"""What a figure of a plan is made from."""

from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.products.figures.plan import figure_plan
from encore.products.kinds import BY_RULE


def figure_reads(plan: Plan, name: str) -> list[Artifact]:
    """Every artifact that a figure reads, once."""
    return list(map(plan.find, BY_RULE["draw"].folders(figure_plan(plan, name))))
