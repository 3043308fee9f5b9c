"""What was tried on the validation role, as ``config/tuning/`` has it: one line a trial, by row and value.

If a best value is at the edge of those tried, every row tries two more.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from encore.config.lineage import StepName, spelled
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.storage.csv_rows import read_rows, write_rows
from encore.storage.program_files import CATALOGUE

TUNING = CATALOGUE / "tuning"  # the grids, and the records of their trials
COLUMNS = {
    "row": "The row of a table that it was tried for.",
    "step": "The step whose field was tried.",
    "field": "The field, or several joined by `+`.",
    "value": "Its value, or several joined by `+`.",
    "recipe": "The fine-tuning that it was tried with, with its rate; empty where the step is it.",
    "lineage": "The lineage that was trained.",
    "model": "The digest that ends the model's folder.",
    "split": "The split of role `valid` that was measured.",
    "measure": "The measure.",
    "score": "Its mean over the split's queries.",
    "chosen": "Whether it is the best trial of its row.",
}


@dataclass(frozen=True)
class Trial:
    """A value of a field, or of several fields one each, tried in one row."""

    row: str
    step: str
    settings: dict[str, float]  # by field
    lineage: str  # from the backbone that was trained
    model: str  # the digest that ends the model's folder
    split: str
    measure: str
    score: float  # the mean over the split's queries, to six decimals
    chosen: bool = False
    recipe: str = ""  # the step that rows share, with its value: marco-bm25~learning_rate=0.001

    @property
    def field(self) -> str:
        """The one field that is tried."""
        (field,) = self.settings
        return field

    @property
    def value(self) -> float:
        """The value of the one field that is tried."""
        (value,) = self.settings.values()
        return value


def choose(trials: Iterable[Trial]) -> list[Trial]:
    """Mark the best trial of every row; of equally good ones the first.

    Rows that share a recipe have one: that under which the mean of their best scores is highest.
    """
    listed = list(trials)
    recipe = _best_recipe(listed)
    best: dict[str, Trial] = {}
    for trial in listed:
        if trial.recipe in ("", recipe) and (trial.row not in best or trial.score > best[trial.row].score):
            best[trial.row] = trial
    return [replace(trial, chosen=trial is best[trial.row]) for trial in listed]


def with_values(step: str, settings: dict[str, float]) -> str:
    """A step's name with values as overrides; empty without any."""
    overrides = tuple((field, spelled(value)) for field, value in sorted(settings.items()))
    return str(StepName(step, overrides)) if settings else ""


def chosen_of(trials: Iterable[Trial]) -> dict[str, Trial]:
    """The chosen trial of every row."""
    return {trial.row: trial for trial in trials if trial.chosen}


def _best_recipe(trials: list[Trial]) -> str:
    """Of the recipes that all their rows tried the one with the best mean; the first among equals, empty for none."""
    best: dict[str, dict[str, float]] = {}
    for trial in trials:
        if trial.recipe:
            rows = best.setdefault(trial.recipe, {})
            rows[trial.row] = max(trial.score, rows.get(trial.row, trial.score))
    most = max(map(len, best.values()), default=0)
    return max(
        (recipe for recipe, rows in best.items() if len(rows) == most),
        key=lambda name: fmean(best[name].values()),
        default="",
    )


def differences(plan: Plan, trials: Iterable[Trial]) -> list[str]:
    """Each value of a run's configuration that is not the chosen trial's, in words."""
    found = []
    for trial in trials:
        for field, best in trial.settings.items() if trial.chosen else ():
            value = getattr(plan.resolve.step(StepName(trial.step)), field)
            if value != best:
                difference = f"{field} is {spelled(value)}, the best trial of row {trial.row!r} has {spelled(best)}"
                found.append(f"step {trial.step!r}: {difference}")
    return found


def write_trials(path: Path, trials: Iterable[Trial]) -> None:
    """Write trials sorted by row and values; several fields and their values are joined by ``+``."""
    lines = []
    for trial in sorted(trials, key=lambda trial: (trial.row, *trial.settings.values())):
        tried = {"field": "+".join(trial.settings), "value": "+".join(map(spelled, trial.settings.values()))}
        outcome = {"score": f"{trial.score:.6f}", "chosen": "yes" if trial.chosen else "no"}
        lines.append([(vars(trial) | tried | outcome)[name] for name in COLUMNS])
    write_rows(path, COLUMNS, lines)


def read_trials(path: Path) -> list[Trial]:
    """Read recorded trials."""
    try:
        return [_trial(path, number, line) for number, line in enumerate(read_rows(path), 2)]
    except FileNotFoundError as error:
        raise EncoreError(f"{path} is missing; run workflow/scripts/tune.py, which writes it") from error


def _trial(path: Path, number: int, line: dict[str, str]) -> Trial:
    try:
        values = map(float, line["value"].split("+"))
        settings = dict(zip(line["field"].split("+"), values, strict=True))
        record = {name: line[name] for name in COLUMNS if name not in ("field", "value", "score", "chosen")}
        chosen = {"yes": True, "no": False}[line["chosen"]]
        return Trial(**record, settings=settings, score=float(line["score"]), chosen=chosen)
    except (KeyError, TypeError, ValueError) as error:
        raise EncoreError(
            f"{path}, line {number}: not a trial ({error}); run workflow/scripts/tune.py again"
        ) from error


def at_an_edge(trials: Sequence[Trial]) -> list[Trial]:
    """The chosen trials of rows whose value is the least or the largest that they tried.

    Rows that tried several fields together are left out: their grid is their paper's.
    """
    found = []
    for row, best in chosen_of(trials).items():
        if len(best.settings) == 1:
            values = [trial.value for trial in trials if trial.row == row]
            found += [best] if best.value in (min(values), max(values)) else []
    return found


def two_more(values: Collection[float], best: float) -> list[float]:
    """Two more values of a row, to two digits: beyond the edge that the best is at, or on both sides of the best.

    Steps beyond an edge are those of the grid there; inside, the values halve the logarithmic distance.
    """
    ordered = sorted(values)
    place = ordered.index(best)
    if place in (0, len(ordered) - 1):
        factor = ordered[0] / ordered[1] if place == 0 else ordered[-1] / ordered[-2]
        return [_two_digits(best * factor), _two_digits(best * factor**2)]
    return [_two_digits(math.sqrt(best * ordered[other])) for other in (place - 1, place + 1)]


def _two_digits(value: float) -> float:
    return float(f"{value:.1e}")
