"""Operations that each row of a table spent, and whether the comparison is fair (docs/protocol.md, section 3)."""

import argparse

from encore.commands.plan import plan_of
from encore.plan.plan import Plan
from encore.products.tables.budgets import RowFlops, models_behind, off_budget, spent_on, trained_scores
from encore.products.tables.plan import table_plan


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("table", nargs="?", default="table1")


def answer(arguments: argparse.Namespace) -> int:
    """Floating-point operations by row; 1 when a comparison is not fair."""
    rows = flops_of_rows(plan_of(arguments), arguments.table)
    print(flops_text(rows))
    wrong = budget_complaints(rows)
    for complaint in wrong:
        print(f"unfair: {complaint}")
    return 1 if wrong else 0


def flops_of_rows(plan: Plan, table: str) -> list[RowFlops]:
    """What each row with a model spent, read from the manifests of its models."""
    found = []
    for row in table_plan(plan, table).rows:
        spent = {system: spent_on(models_behind(own)) for system, own in trained_scores(row, plan.made).items()}
        for column, cell in row.cells.items():
            if cell.system in spent:
                name = row.id if len(spent) == 1 else f"{row.id} ({cell.system})"
                found.append(RowFlops(name, row.setting, row.role, *spent[cell.system], column))
    return found


def budget_complaints(rows: list[RowFlops]) -> list[str]:
    """Budgets that differ by more than a tenth: between objectives, or from the control to the most expensive one."""
    return [
        f"{off.setting}: {off.row} spends {off.spent / 1e12:.3f}e12 operations beyond plain fine-tuning, the most "
        f"expensive objective {off.largest / 1e12:.3f}e12; bring its steps within 10 %"
        for off in off_budget(rows)
    ]


def flops_text(rows: list[RowFlops]) -> str:
    """The budgets as text, in 10^12 operations."""
    lines = [f"{'row':<24} {'setting':<18} {'pre-training':>12} {'fine-tuning':>12}  (10^12 operations)"]
    lines += [f"{r.row:<24} {r.setting:<18} {r.pretraining / 1e12:>12.3f} {r.finetuning / 1e12:>12.3f}" for r in rows]
    return "\n".join(dict.fromkeys(lines))  # a system has several columns
