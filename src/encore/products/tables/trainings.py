"""What fine-tunings of a table's rows were, besides its operations: epochs, and what chose the weights that were kept.

From the manifests of models, which are no inputs of a table: of a model that is not in results any more nothing is said
(``budgets.py`` says so). docs/protocol.md, section 1.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.products.tables.budgets import models_behind
from encore.products.tables.layout import Layout, Validated
from encore.products.tables.rates import JUDGED, grouped
from encore.stages.finetune import Finetune
from encore.storage.manifest import read_results

GAIN = 0.01  # that verdicts of a table without a margin are asked for (docs/protocol.md)


def validated(layout: Layout, made: Mapping[str, Artifact]) -> list[Validated]:
    """Every fine-tuning of a judged row, of all seeds, whose weights a validation chose."""
    found: dict[str, Validated] = {}
    for row in (row for row in layout.rows if row.role in JUDGED):
        several = len({cell.system for cell in row.cells.values() if cell.reads}) > 1
        for column in layout.columns:
            label = f"{row.label} in {column.label}" if several else row.label
            for read in row.cells[column.id].reads:
                scores = made[read.folder]
                for folder in models_behind(scores)["finetune"] if scores.stage == "evaluate" else ():
                    if read.seed is not None and made[folder].typed(Finetune).training.validate_every:
                        own = Validated(setting=row.setting, label=label, seed=read.seed, folder=folder)
                        found.setdefault(folder, own)
    return list(found.values())


def training_notes(layout: Layout) -> Iterator[str]:
    """Notes on what makes rows differ besides what the table compares."""
    yield from dict.fromkeys(_short(layout))
    chosen = [(each, results) for each in layout.validated if (results := _results(each.folder))]
    yield from _coarse(chosen, layout.margin or GAIN)
    yield from _first_of_equals(
        [(each, results) for each, results in chosen if results.get("equal_validations", 1) > 1]
    )


def _short(layout: Layout) -> Iterator[str]:
    """Rows that were fine-tuned for less than an epoch, next to rows that were for more than one."""
    for setting in layout.settings():
        rows = [row for row in layout.rows if row.setting == setting and row.role in JUDGED]
        for column in (column for column in layout.columns if column.primary):
            models = {row.label: row.models.get(row.cells[column.id].system) for row in rows}
            epochs = {label: _epochs(own["finetune"]) for label, own in models.items() if own and own["finetune"]}
            known = {label: count for label, count in epochs.items() if count}
            if known and min(known.values()) < 1 < max(known.values()):
                numbers = grouped({label: f"{count:.2f}" for label, count in known.items()})
                place = ", ".join(filter(None, (setting, column.label)))
                yield (
                    f"{place}: some rows were fine-tuned for less than one epoch and others for more, {numbers}; "
                    "differences are of the labels that were read too."
                )


def _epochs(folders: Sequence[str]) -> float:
    """Passes over the training queries of some fine-tunings together; 0 where one is not known."""
    found = [_results(folder) for folder in folders]
    if any(not each.get("queries") for each in found):
        return 0.0
    return math.fsum(each["examples"] / each["queries"] for each in found)


def _coarse(chosen: Sequence[tuple[Validated, dict[str, Any]]], gain: float) -> Iterator[str]:
    """Validations on so few questions that one of them is more than the gain that is asked for."""
    few = {
        _place(each): f"{count:,}"
        for each, results in chosen
        if 1 / (count := results.get("validation_queries", math.inf)) > gain
    }
    if few:
        yield (
            f"Chosen by validations on few questions: {grouped(few)}; one question is more than the gain of {gain:g} "
            "that is asked for."
        )


def _first_of_equals(chosen: Sequence[tuple[Validated, dict[str, Any]]]) -> Iterator[str]:
    """Kept models that order chose, not quality."""
    seeds: dict[str, dict[str, list[str]]] = {}
    for each, results in chosen:
        number = f"{results['equal_validations']} of {results['validations']}"
        seeds.setdefault(_place(each), {}).setdefault(number, []).append(str(each.seed))
    for place, own in seeds.items():
        under = (f"seed{'s' * (len(which) > 1)} {' and '.join(which)} ({number})" for number, which in own.items())
        yield f"The kept model of {place} is the first of equal validations: {', '.join(under)}."


def _place(each: Validated) -> str:
    return f"{each.label} [{each.setting}]" if each.setting else each.label


def _results(folder: str) -> dict[str, Any]:
    """The facts of a model; none where it is not in results any more."""
    try:
        return read_results(folder)
    except EncoreError:
        return {}
