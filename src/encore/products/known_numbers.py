"""Which scores the known numbers of a run are compared with: the slice of the plan of ``results/checks.csv``."""

from typing import Any

from encore.config.run import KnownNumber
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan

CHECKS = "checks"


def checks_plan(plan: Plan) -> dict[str, Any]:
    """Each known number of the run, with the scores that it is compared with."""
    rows = [_row(plan, number, check) for number, check in enumerate(plan.config.checks)]
    return {"name": CHECKS, "title": plan.config.title, "proxy_data": plan.config.proxy_data, "rows": rows}


def _row(plan: Plan, number: int, check: KnownNumber) -> dict[str, Any]:
    place = plan.config.at(f"checks.{number}")
    splits = plan.resolve.dataset(check.dataset).fields.splits
    if check.split not in splits:
        raise EncoreError(f"{place}: {check.dataset!r} has no split {check.split!r}{nearest(check.split, splits)}")
    if check.measure not in (measures := splits[check.split].measures):
        raise EncoreError(
            f"{place}: {check.measure!r} is not measured on {check.split!r}{nearest(check.measure, measures)}"
        )
    seed = plan.config.seeds[0] if plan.resolve.has_chance(check.system) else None
    scores = plan.scores(check.system, seed, check.dataset, check.split)
    return {**check.model_dump(), "label": f"{check.system} on {check.dataset}", "reads": [scores.folder]}
