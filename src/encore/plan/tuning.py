"""What was tried on the validation role: the records ``config/tuning/*.csv``, one line a trial, by row and value.

``tools/tune.py`` writes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from encore.plan import lineage as naming
from encore.storage.csv_rows import read_rows
from encore.storage.program_files import CATALOGUE

TUNING = CATALOGUE / "tuning"  # the grids, and the records of their trials
COLUMNS = {
    "row": "The row of a table that it was tried for.",
    "step": "The step whose field was tried.",
    "field": "The field, or several joined by `+`.",
    "value": "Its value, or several joined by `+`.",
    "recipe": "The fine-tuning that it was tried with, with its rate, where rows choose that too, together or each.",
    "lineage": "The lineage that was trained.",
    "model": "The digest that ends the model's folder.",
    "split": "The split of role `valid` that was measured.",
    "measure": "The measure.",
    "score": "Its mean over the split's queries.",
    "chosen": "Whether it is the best trial of its row.",
    "kept_step": "The step whose weights were kept; the last one without validations. Not in older records.",
    "equal": "How many validations had the kept step's value; empty without validations. Not in older records.",
}
LATER = ("kept_step", "equal")  # columns that records from before them lack


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
    recipe: str = ""  # the fine-tuning that is chosen too, with its value: marco-bm25~learning_rate=0.001
    kept_step: str = ""  # whose weights the model has; with ``equal`` as the record has it
    equal: str = ""

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


def read_trials(path: Path) -> list[Trial]:
    """The trials of a record."""
    found = []
    for line in read_rows(path, *(name for name in COLUMNS if name not in LATER)):
        values = map(float, line.pop("value").split("+"))
        settings = dict(zip(line.pop("field").split("+"), values, strict=True))
        score, chosen = float(line.pop("score")), line.pop("chosen") == "yes"
        found.append(Trial(**line, settings=settings, score=score, chosen=chosen))
    return found


def recorded() -> list[list[Trial]]:
    """The trials of each grid; those of ``NAME-edges.csv`` are further ones of ``NAME.csv``."""
    found: dict[str, list[Trial]] = {}
    for path in sorted(TUNING.glob("*.csv")):
        found.setdefault(path.stem.removesuffix("-edges"), []).extend(read_trials(path))
    return list(found.values())


def is_shared(trials: Sequence[Trial]) -> bool:
    """True if rows chose one recipe together, which the row without pre-training tried by itself."""
    return any(trial.recipe.startswith(f"{trial.step}~") for trial in trials)


def at_an_edge(trials: Sequence[Trial]) -> list[Trial]:
    """The chosen trials of rows whose value, or that of a recipe of their own, is the least or largest that they tried.

    Rows that tried several fields together are left out: their grid is their paper's.
    """
    tried = list(trials) if is_shared(trials) else [*trials, *map(_of_recipe, (each for each in trials if each.recipe))]
    found = []
    for best in tried:
        if best.chosen and len(best.settings) == 1:
            values = [trial.value for trial in tried if (trial.row, trial.step) == (best.row, best.step)]
            found += [best] if best.value in (min(values), max(values)) and len(set(values)) > 1 else []
    return found


def _of_recipe(trial: Trial) -> Trial:
    """A trial as one of the values of its recipe: of the one field that this overrides."""
    (step,) = naming.parse(f"any+{trial.recipe}").steps
    (field,) = step.values()
    return replace(trial, step=step.name, settings={field: float(step.values()[field])}, recipe="")
