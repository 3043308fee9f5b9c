"""Slices of the plan: what a table's cells show, and which models the figure of the pre-training steps shows.

Each is written to ``results/plan/<name>.json``.
"""

from encore.plan.tables.declared import declared, folders, plan_file, slice_digest, wanted_tables, write_plan
from encore.plan.tables.references import reference_folders, refuse_damaged
from encore.plan.tables.slices import CURVES, table_plan, table_reads, table_scores
from encore.plan.tables.steps import curves_models, curves_plan

__all__ = [
    "CURVES",
    "curves_models",
    "curves_plan",
    "declared",
    "folders",
    "plan_file",
    "reference_folders",
    "refuse_damaged",
    "slice_digest",
    "table_plan",
    "table_reads",
    "table_scores",
    "wanted_tables",
    "write_plan",
]
