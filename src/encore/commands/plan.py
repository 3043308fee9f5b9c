"""The plan that commands are about."""

import argparse

from encore.plan.plan import Plan
from encore.products.catalogue import load_plan


def plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan of ``--config`` with every declared table in it."""
    from encore.products.claims.plan import refuse_unknown_claims
    from encore.products.tables.plan import table_plan

    plan = load_plan(arguments.config)
    refuse_unknown_claims(plan)
    for name in plan.config.tables:
        table_plan(plan, name)
    return plan
