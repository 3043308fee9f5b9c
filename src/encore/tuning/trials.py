"""What was tried and how good it was: ``config/tuning/trials.csv``, one line a trial, by row and value."""

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from encore.errors import EncoreError
from encore.lineage import StepName, spelled
from encore.plan import Plan
from encore.storage import write_text


@dataclass(frozen=True)
class Trial:
    """One value of one field, tried in one row."""

    row: str
    step: str
    field: str
    value: float
    lineage: str
    model: str  # the digest that ends the model's folder
    split: str
    measure: str
    score: float  # the mean over the split's queries, to six decimals
    chosen: bool = False


def choose(trials: Iterable[Trial]) -> list[Trial]:
    """Mark the best trial of every row; of equally good ones the first."""
    listed = list(trials)
    best: dict[str, Trial] = {}
    for trial in listed:
        if trial.row not in best or trial.score > best[trial.row].score:
            best[trial.row] = trial
    return [replace(trial, chosen=trial is best[trial.row]) for trial in listed]


def differences(plan: Plan, trials: Iterable[Trial]) -> list[str]:
    """Each value of a run's configuration that is not the chosen trial's, in words."""
    found = []
    for trial in trials:
        value = getattr(plan.step(StepName(trial.step)), trial.field)
        if trial.chosen and value != trial.value:
            said, best = spelled(value), spelled(trial.value)
            found.append(
                f"step {trial.step!r}: {trial.field} is {said}, the best trial of row {trial.row!r} has {best}"
            )
    return found


def write(path: Path, trials: Iterable[Trial]) -> None:
    """Write trials sorted by row and value."""
    text = io.StringIO()
    lines = csv.DictWriter(text, [field.name for field in fields(Trial)], lineterminator="\n")
    lines.writeheader()
    for trial in sorted(trials, key=lambda trial: (trial.row, trial.value)):
        chosen, score = "yes" if trial.chosen else "no", f"{trial.score:.6f}"
        lines.writerow({**asdict(trial), "value": spelled(trial.value), "score": score, "chosen": chosen})
    write_text(path, text.getvalue())


def read(path: Path) -> list[Trial]:
    """Read recorded trials.

    Raises:
        EncoreError: the file is missing, or a line is no trial.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [_trial(path, number, line) for number, line in enumerate(csv.DictReader(file), 2)]
    except FileNotFoundError as error:
        raise EncoreError(f"{path} is missing; run workflow/scripts/tune.py, which writes it") from error


def _trial(path: Path, number: int, line: dict[str, str]) -> Trial:
    try:
        numbers = {"value": float(line["value"]), "score": float(line["score"])}
        return Trial(**{**line, **numbers, "chosen": {"yes": True, "no": False}[line["chosen"]]})  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError) as error:
        raise EncoreError(f"{path}, line {number}: no trial ({error}); run workflow/scripts/tune.py again") from error
