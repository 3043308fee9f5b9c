"""Operations that rows spent, and where a comparison is not fair (docs/protocol.md, section 3).

Every objective gets one pre-training budget, and the control spends the dearest objective's on more fine-tuning.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from encore.errors import EncoreError
from encore.products.tables.layout import Layout
from encore.storage import manifest

TOLERANCE = 0.10


@dataclass(frozen=True)
class RowFlops:
    """Floating-point operations behind one row, under the first seed; they do not depend on it by more than padding."""

    row: str
    setting: str
    role: str
    pretraining: float
    finetuning: float


@dataclass(frozen=True)
class OffBudget:
    """A row that spends beyond plain fine-tuning more or less than the dearest objective of its setting, by far."""

    row: str
    setting: str
    spent: float
    dearest: float

    @property
    def share(self) -> float:
        """By which share of the dearest."""
        return self.spent / self.dearest - 1


def off_budget(rows: Sequence[RowFlops]) -> Iterator[OffBudget]:
    """Where a budget is off by more than a tenth: objectives among themselves, and the control against the dearest."""
    for setting in dict.fromkeys(row.setting for row in rows):
        own = [row for row in rows if row.setting == setting]
        spent = {row.row: row.pretraining for row in own if row.role == "objective"}
        dearest = max(spent.values(), default=0.0)
        plain = next((row.finetuning for row in own if row.role == "none"), None)
        if plain is not None:
            spent |= {row.row: row.finetuning - plain for row in own if row.role == "control"}
        for name, value in spent.items() if dearest else ():
            if abs(value - dearest) > TOLERANCE * dearest:
                yield OffBudget(name, setting, value, dearest)


def operations(folders: Sequence[str]) -> float:
    """What trainings took, by their manifests.

    Raises:
        EncoreError: one has none: the model was not made yet, or was removed to make room.
    """
    return sum(manifest.read_results(folder)["flops"] for folder in folders)


def budget_notes(layout: Layout) -> Iterator[str]:
    """Which rows had another budget than they are compared under, a note for each setting.

    Models are no inputs of the table, so that removing one to make room makes nothing again; a note says so then.
    """
    rows, labels = [], {(row.setting, row.id): row.label for row in layout.rows}
    for row in (row for row in layout.rows if row.models):
        try:
            spent = [operations(row.models[kind]) for kind in ("pretrain", "finetune")]
        except EncoreError:
            yield "Budgets were not compared: models of this table are not in results any more."
            return
        rows.append(RowFlops(row.id, row.setting, row.role, *spent))
    found: dict[str, list[OffBudget]] = {}
    for each in off_budget(rows):
        found.setdefault(each.setting, []).append(each)
    for setting, off in found.items():
        by = ", ".join(f"{labels[setting, each.row]} {each.share:+.0%}" for each in off).replace("-", "−")
        yield (
            f"Unequal budgets{f' under {setting}' if setting else ''}: {by} of the dearest objective’s operations; "
            "differences to these rows are not of the objective alone."
        )
