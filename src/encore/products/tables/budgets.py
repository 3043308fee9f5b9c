"""Operations that rows spent, and where a comparison is not fair (docs/protocol.md, section 3).

Every objective gets one pre-training budget; the control spends that of the most expensive one on more fine-tuning.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from encore.config.checkpoints import RANDOM_HEAD
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.products.tables.grid import PlannedRow
from encore.products.tables.layout import Layout
from encore.storage import manifest

TOLERANCE = 0.10
HARDLY = 0.99  # the cosine of vectors before and after a training, above which it changed little
TRIED = "validation_at_"  # how a manifest's facts about learning rates begin


@dataclass(frozen=True)
class RowFlops:
    """Floating-point operations behind one row, under the first seed; they do not depend on it by more than padding.

    A row may have a system for each ``column``, as with few labels and with many.
    """

    row: str
    setting: str
    role: str
    pretraining: float
    finetuning: float
    column: str = ""


@dataclass(frozen=True)
class OffBudget:
    """A row that spends far more or less beyond plain fine-tuning than the most expensive objective of its setting."""

    row: str
    setting: str
    spent: float
    largest: float

    @property
    def share(self) -> float:
        """The difference, as a share of the largest budget."""
        return self.spent / self.largest - 1


def off_budget(rows: Sequence[RowFlops]) -> list[OffBudget]:
    """Budgets that differ from the largest of their column by more than a tenth: of objectives, and of the control."""
    found: dict[OffBudget, None] = {}
    for setting, column in dict.fromkeys((row.setting, row.column) for row in rows):
        own = [row for row in rows if (row.setting, row.column) == (setting, column)]
        spent = {row.row: row.pretraining for row in own if row.role == "objective"}
        largest = max(spent.values(), default=0.0)
        plain = next((row.finetuning for row in own if row.role == "none"), None)
        if plain is not None:
            spent |= {row.row: row.finetuning - plain for row in own if row.role == "control"}
        for name, value in spent.items() if largest else ():
            if abs(value - largest) > TOLERANCE * largest:
                found.setdefault(OffBudget(name, setting, value, largest))
    return list(found)


def spent_on(models: Mapping[str, Sequence[str]]) -> tuple[float, float]:
    """Floating-point operations of pre-training and of fine-tuning, from the manifests of each kind's models."""
    kinds = models["pretrain"], models["finetune"]
    first, second = (math.fsum(manifest.read_results(folder)["flops"] for folder in folders) for folders in kinds)
    return first, second


def budget_notes(layout: Layout) -> Iterator[str]:
    """A note for each setting on the rows with an unequal budget.

    Models are not inputs of the table, so that removing one to free space rebuilds nothing; a note says so then.
    """
    rows, found = list[RowFlops](), dict[str, list[OffBudget]]()
    for row in (row for row in layout.rows if row.models):
        try:
            spent = {system: spent_on(models) for system, models in row.models.items()}
        except EncoreError:
            yield "Budgets were not compared: models of this table are not in results any more."
            return
        names: dict[str, str] = {}  # of each system: the row's, with its first column where there are several
        for column in layout.columns:
            if column.id in row.cells and (system := row.cells[column.id].system) in spent:
                names.setdefault(system, row.label if len(spent) == 1 else f"{row.label} in {column.label}")
                rows.append(RowFlops(names[system], row.setting, row.role, *spent[system], column.id))
    for each in off_budget(rows):
        found.setdefault(each.setting, []).append(each)
    for setting, off in found.items():
        by = ", ".join(f"{each.row} " + f"{each.share:+.0%}".replace("-", "−") for each in off)
        yield (
            f"Unequal budgets{f' under {setting}' if setting else ''}: {by} of the operations of the most expensive "
            "objective; differences to these rows are not of the objective alone."
        )


def head_notes(layout: Layout) -> Iterator[str]:
    """A note on the rows whose vocabulary head began at random, since the checkpoint that they start from has none."""
    labels: dict[str, None] = {}
    for row in (row for row in layout.rows if row.models):
        with suppress(EncoreError):  # the note on budgets says what is not in results any more
            folders = {folder for models in row.models.values() for folder in models["pretrain"]}
            if any(RANDOM_HEAD in manifest.read_results(folder) for folder in folders):
                labels[row.label] = None
    if labels:
        yield (
            f"{', '.join(labels)}: the vocabulary head began at random, since the checkpoint has none; a part of this "
            "pre-training went into the head, which objectives without one did not need (`head_warmup` of a step)."
        )


def chosen_rate_notes(layout: Layout) -> Iterator[str]:
    """Which learning rates validation chose, and which trainings hardly moved the vectors that they began with."""
    chosen, tried, unmoved = dict[str, str](), list[str](), dict[str, str]()
    for row in (row for row in layout.rows if row.models):
        for folder in (folder for models in row.models.values() for folder in models["finetune"][:1]):
            with suppress(EncoreError):
                found = manifest.read_results(folder)
                if "cosine_to_start" not in found:
                    continue
                tried = sorted((name.removeprefix(TRIED) for name in found if name.startswith(TRIED)), key=float)
                best, before = (found[f"{TRIED}{found['learning_rate']:g}"], found["validation_before"])
                chosen[row.label] = f"{found['learning_rate']:g} ({best:.3f}; before, {before:.3f})"
                if found["cosine_to_start"] > HARDLY:
                    unmoved[row.label] = f"{found['cosine_to_start']:.3f}"
    if chosen:
        yield (
            f"Learning rates, the best of {', '.join(tried)} on validation queries: "
            f"{', '.join(f'{label} {rate}' for label, rate in chosen.items())}."
        )
    if unmoved:
        yield (
            "Fine-tuning hardly moved the vectors of passages (mean cosine to those before: "
            f"{', '.join(f'{label} {cosine}' for label, cosine in unmoved.items())}): that such a row gains nothing "
            "does not say that fine-tuning cannot help; try higher `learning_rates`, or more `epochs`."
        )


def models_behind(scores: Artifact) -> dict[str, list[str]]:
    """The folders of the models behind scores, each once, by the kind of training: ``pretrain``, ``finetune``.

    They are found through the weights that each training started from.
    """
    chain = list(_last_models(scores.inputs["run"]))
    for model in chain:
        if "weights" in model.inputs and model.inputs["weights"] not in chain:
            chain.append(model.inputs["weights"])
    kinds = [(model.stage.partition(".")[0], model.folder) for model in chain]
    return {kind: [folder for each, folder in kinds if each == kind] for kind in ("pretrain", "finetune")}


def with_models(rows: list[PlannedRow], made: Mapping[str, Artifact]) -> list[PlannedRow]:
    """The rows of a table's slice; where it compares objectives, with the models behind each under the first seed."""
    if all(row.role not in ("objective", "control") for row in rows):
        return rows
    found = [{system: models_behind(own) for system, own in trained_scores(row, made).items()} for row in rows]
    return [
        row.model_copy(update={"models": models}) if models else row for row, models in zip(rows, found, strict=True)
    ]


def trained_scores(row: PlannedRow, made: Mapping[str, Artifact]) -> dict[str, Artifact]:
    """The first scores of each system of a row that has learned something, under the first seed."""
    found: dict[str, Artifact] = {}
    for cell in row.cells.values():
        for read in cell.reads[:1]:
            artifact = made[read.folder]
            if artifact.stage == "evaluate" and read.seed is not None:
                found.setdefault(cell.system, artifact)
    return found


def _last_models(run: Artifact) -> Iterator[Artifact]:
    """The models that a run was made with: its own, or those of the runs that it combines."""
    if "model" in run.inputs:
        yield run.inputs["model"]
    for part in run.inputs.values():
        if part.folder.startswith("results/runs/"):
            yield from _last_models(part)
