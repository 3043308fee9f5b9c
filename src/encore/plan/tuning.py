"""What was tried on the validation role: the records ``config/tuning/*.csv``, one line a trial, by row and value.

``tools/tune.py`` writes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from encore.storage.csv_rows import read_rows
from encore.storage.program_files import CATALOGUE

TUNING = CATALOGUE / "tuning"  # the grids, and the records of their trials
COLUMNS = {
    "row": "The row of a table that it was tried for.",
    "step": "The step whose field was tried.",
    "field": "The field, or several joined by `+`.",
    "value": "Its value, or several joined by `+`.",
    "recipe": "The fine-tuning that it was tried with, with its rate, where rows choose that together.",
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


def read_trials(path: Path) -> list[Trial]:
    """The trials of a record."""
    found = []
    for line in read_rows(path, *COLUMNS):
        values = map(float, line.pop("value").split("+"))
        settings = dict(zip(line.pop("field").split("+"), values, strict=True))
        score, chosen = float(line.pop("score")), line.pop("chosen") == "yes"
        found.append(Trial(**line, settings=settings, score=score, chosen=chosen))
    return found


def at_an_edge(trials: Sequence[Trial]) -> list[Trial]:
    """The chosen trials of rows whose value is the least or the largest that they tried.

    Rows that tried several fields together are left out: their grid is their paper's.
    """
    found = []
    for best in trials:
        if best.chosen and len(best.settings) == 1:
            values = [trial.value for trial in trials if trial.row == best.row]
            found += [best] if best.value in (min(values), max(values)) else []
    return found
