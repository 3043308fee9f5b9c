"""The plan that commands are about."""

import argparse
from pathlib import Path

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan


def plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan of ``--config`` with every declared table in it.

    Raises:
        EncoreError: this is not the root of the repository, or the configuration is wrong.
    """
    from encore.products.claims.plan import refuse_unknown_claims
    from encore.products.tables.plan import table_plan

    if not Path("Snakefile").is_file():
        raise EncoreError("there is no Snakefile here; run encore from the root of the repository")
    plan = load_plan(arguments.config)
    refuse_unknown_claims(plan)
    for name in plan.config.tables:
        table_plan(plan, name)
    return plan
