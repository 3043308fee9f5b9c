"""Whether rows that a table judges chose their learning rates alike: what its plan and the recorded trials say.

A gain of a row that fine-tunes at another rate than its comparator is one of the pre-training and of the rate. It is
one of the pre-training alone where each row had the same choice: as many trials, of several rates of fine-tuning with
the row's own rate of pre-training (docs/protocol.md, section 1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from encore.config.entries import PretrainStep
from encore.errors import EncoreError
from encore.plan import lineage as naming
from encore.plan import tuning
from encore.plan.lineage import Lineage, StepName, spelled
from encore.plan.plan import Plan
from encore.plan.tuning import Trial
from encore.products.tables.layout import Layout
from encore.products.tables.sources.base import lineage_of

JUDGED = ("none", "control", "objective")  # the roles of rows that verdicts are about, or rest on
RATE = "learning_rate"
NAMED = 3  # rows of one rate that a note names; more are counted
Judged = Mapping[str, Lineage]  # the rows of a setting under a column, by label


@dataclass(frozen=True)
class Rates:
    """The learning rates of a lineage's steps, in order."""

    pretraining: tuple[float, ...]
    finetuning: tuple[float, ...]

    def __str__(self) -> str:
        return _one_after_another(self.pretraining + self.finetuning)


def rate_notes(plan: Plan, layout: Layout) -> list[str]:
    """Sentences on rows that were trained at different rates without the same choice of them."""
    places: dict[str, dict[str, None]] = {}
    recorded = Recorded(plan)
    for setting, column, judged in _compared(plan, layout):
        for text in _notes(recorded, judged):
            places.setdefault(text, {})[", ".join(filter(None, (setting, column)))] = None
    return [f"{'; '.join(own)}: {text}" for text, own in places.items()]


def refuse_unlike_choices(plan: Plan, layout: Layout) -> None:
    """Refuse a table that promises crossed trials (``significance: crossed``) where none are recorded for its rows."""
    if not layout.significance or not layout.significance.crossed:
        return
    recorded = Recorded(plan)
    for _, column, judged in _compared(plan, layout):
        if reason := recorded.unlike(judged):
            raise EncoreError(
                f"table {layout.name!r}, {column}: `crossed` promises that each row chose its rates from as many "
                f"trials, and {reason}; make them (`python -m tools.tune`), or leave `crossed` out and have a note"
            )


class Recorded:
    """All trials that are recorded, by what was trained apart from its learning rates."""

    def __init__(self, plan: Plan) -> None:
        """All records of ``config/tuning``, read once."""
        self._plan = plan
        self._trials: dict[str, list[Trial]] = {}
        for trial in chain.from_iterable(tuning.recorded()):
            self._trials.setdefault(self._without_rates(naming.parse(trial.lineage)), []).append(trial)

    def rates(self, lineage: Lineage) -> Rates:
        """Those that a lineage's steps have in this run."""
        found: dict[bool, list[float]] = {True: [], False: []}
        for step in lineage.steps:
            now = self._plan.resolve.step(StepName(step.name))
            found[isinstance(now, PretrainStep)].append(step.values().get(RATE, now.learning_rate))
        return Rates(tuple(found[True]), tuple(found[False]))

    def of(self, lineage: Lineage) -> dict[Rates, bool]:
        """The rates that were tried for a lineage, and whether they were chosen."""
        found: dict[Rates, bool] = {}
        for trial in self._trials.get(self._without_rates(lineage), ()):
            own = self.rates(_as_tried(trial))
            found[own] = found.get(own, False) or trial.chosen
        return found

    def unlike(self, judged: Judged) -> str:
        """Why no trials show that some rows had the same choice; nothing where they do."""
        tried = {label: self.of(lineage) for label, lineage in judged.items()}
        for label, lineage in judged.items():
            now = self.rates(lineage)
            if not tried[label].get(now):
                return f"no trial of {label} was chosen at its rates ({now})"
            if len({each.finetuning for each in tried[label] if each.pretraining == now.pretraining}) < 2:
                return f"{label} tried no second rate of fine-tuning with its own of pre-training"
        if len({len(own) for own in tried.values()}) > 1:
            return f"they had unequally many: {grouped({label: str(len(own)) for label, own in tried.items()})}"
        return ""

    def _without_rates(self, lineage: Lineage) -> str:
        """The lineage without learning rates, and without other values that its steps have in this run anyway."""
        steps = []
        for step in lineage.steps:
            try:
                now = self._plan.resolve.step(StepName(step.name))
            except EncoreError:  # of another catalogue
                return ""
            values = step.values()
            kept = [
                (key, text) for key, text in step.overrides if key != RATE and getattr(now, key, None) != values[key]
            ]
            steps.append(StepName(step.name, tuple(kept)))
        return str(Lineage(lineage.backbone, tuple(steps)))


def _as_tried(trial: Trial) -> Lineage:
    """The lineage of a trial with its rates in its name, which leaves out those that the run had anyway."""
    rates = {trial.step: spelled(trial.settings[RATE])} if RATE in trial.settings else {}
    if trial.recipe:
        (recipe,) = naming.parse(f"any+{trial.recipe}").steps
        rates |= {recipe.name: dict(recipe.overrides)[RATE]} if RATE in dict(recipe.overrides) else {}
    lineage = naming.parse(trial.lineage)
    steps = (
        StepName(
            step.name,
            tuple(sorted({**({RATE: rates[step.name]} if step.name in rates else {}), **dict(step.overrides)}.items())),
        )
        for step in lineage.steps
    )
    return Lineage(lineage.backbone, tuple(steps))


def _compared(plan: Plan, layout: Layout) -> Iterator[tuple[str, str, Judged]]:
    """The rows that are compared, by setting and primary column, each with the lineage that was trained."""
    for setting in layout.settings() if layout.significance else ():
        own = [row for row in layout.rows if row.setting == setting and row.role in JUDGED]
        for column in (column for column in layout.columns if column.primary):
            cells = {row.label: row.cells[column.id] for row in own if row.cells[column.id].reads}
            found = {label: lineage_of(plan, cell) for label, cell in cells.items()}
            judged = {label: lineage for label, lineage in found.items() if lineage and lineage.steps}
            if any(row.role == "objective" and row.label in judged for row in own):
                yield setting, column.label, judged


def _notes(recorded: Recorded, judged: Judged) -> Iterator[str]:
    """What the rates of some rows differ in, unless each row had the same choice."""
    rates = {label: recorded.rates(lineage) for label, lineage in judged.items()}
    tried = {
        label: len({each.pretraining for each in recorded.of(judged[label])})
        for label in judged
        if rates[label].pretraining
    }
    tuned = {label: _one_after_another(own.finetuning) for label, own in rates.items() if own.finetuning}
    differ, searched = len({*tuned.values()}) > 1, len({*tried.values()}) > 1
    if not (differ or searched) or not (reason := recorded.unlike(judged)):
        return
    if differ:
        yield (
            f"fine-tuned at different learning rates, {grouped(tuned, 'at')}. No trials show that each row had "
            f"the same choice ({reason}), so differences are of the rates too."
        )
    if searched:
        counts = {label: str(count) for label, count in tried.items()}
        yield f"rates of pre-training that were tried: {grouped(counts)}; differences are of this search too."


def _one_after_another(rates: Sequence[float]) -> str:
    return " then ".join(map(spelled, rates))


def grouped(values: Mapping[str, str], word: str = "with") -> str:
    """Which rows have each value: by name, or counted where there are many."""
    rows: dict[str, list[str]] = {}
    for label, value in values.items():
        rows.setdefault(value, []).append(label)
    named = {value: " and ".join(own) if len(own) <= NAMED else f"{len(own)} rows" for value, own in rows.items()}
    return "; ".join(f"{labels} {word} {value}" for value, labels in named.items())
