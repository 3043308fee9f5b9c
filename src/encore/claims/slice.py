"""The claims' slice of the plan: what is claimed, and the slices of the tables that the claims are about."""

from pathlib import Path
from typing import Any

from encore.claim_entries import AnyTest, Claim, Figure
from encore.claims import missing
from encore.claims.files import read_claims
from encore.errors import EncoreError
from encore.plan import Plan
from encore.planning.artifact import Artifact
from encore.tables.slices import PAPERS, table_plan, table_reads

CLAIMS = "claims"


def claims_plan(plan: Plan, papers: Path = PAPERS) -> dict[str, Any]:
    """Every claim with the tables that it is about, whether or not the configuration declares them.

    A table that this configuration cannot have is told with the reason; its claims are not testable here.

    Raises:
        EncoreError: a claim is wrong.
    """
    claims = read_claims(papers)
    about = dict.fromkeys(table for _, claim in claims.values() for table in tables_of(claim))
    tables, untold = {}, {}
    for name in about:
        try:
            tables[name] = table_plan(plan, name)
        except EncoreError as error:
            untold[name] = str(error)
    return {
        "name": CLAIMS,
        "claims": {
            name: {"paper": paper, "claim": claim.model_dump(exclude_defaults=True)}
            for name, (paper, claim) in claims.items()
        },
        "shapes": {name: _shape(plan, name) for name in about},
        "tables": tables,
        "untold": untold,
        "missing": [gap for name in tables for gap in missing.gaps(plan, name)],
        "stand_in": plan.config.stand_in,
    }


def claims_reads(plan: Plan) -> list[Artifact]:
    """Every artifact that the claims' tables read, once."""
    read = (artifact for name in claims_plan(plan)["tables"] for artifact in table_reads(plan, name))
    return list({artifact.folder: artifact for artifact in read}.values())


def named_by(*tests: AnyTest) -> list[str]:
    """The tables that tests are about, each once."""
    shown = [test for test in tests if not isinstance(test, Figure)]
    named = [name for test in shown for name in (test.table, getattr(test, "than_table", None))]
    return list(dict.fromkeys(name for name in named if name))


def tables_of(claim: Claim) -> list[str]:
    """The tables that a claim, its premise and its control are about, each once."""
    return named_by(*claim.premise, *claim.tests, *claim.control)


def _shape(plan: Plan, name: str) -> dict[str, Any]:
    """All rows and columns of a table: a claim is about all, whether or not the run builds them."""
    table = plan.catalogue.tables[name]
    return {
        "rows": [{"id": row.id, "setting": row.setting, "copied": row.copied} for row in table.rows],
        "columns": [{"id": column.id, "source": column.source, "hidden": column.hidden} for column in table.columns],
    }
