"""Run and score the trials of a grid, through the same artifacts as every reported number, but on validation queries.

A trial is a lineage with overrides. It starts from the papers' own values of what is tuned, whatever the run's
configuration holds now, so its name and its folders stay the same after the chosen values are written there. For a
grid of lineages nothing is written: request the chosen trial by its name.

Every value of a row is tried under the best recipe, and every recipe with each row's best value, until neither choice
changes. While a best value is at an edge, every row gets two more.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from encore.commands.tuning.grid import Settings, TuningGrid, steps_of, systems
from encore.config import lineage as naming
from encore.config.lineage import Lineage, StepName
from encore.config.run_file import run_content
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.evaluation import scores
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.plan.tuning import Trial, at_an_edge, choose, chosen_of, two_more, with_values
from encore.products.catalogue import load_plan
from encore.storage.files import write_text
from encore.storage.manifest import verify

RUNS = Path("results/tuning")
Values = dict[tuple[str, str], float]  # by step and field
Build = Callable[[Path, Sequence[str]], None]  # makes targets under a run's configuration


def tune(run: Path, grid: TuningGrid, build: Build) -> list[Trial]:
    """Try every value of every row and choose each row's best.

    Args:
        run: the run's configuration, whose scale the trials are made at.
        build: makes manifests, given the configuration to use; none again that exists.
    """
    plan = load_plan(run)
    lineages = systems(grid, plan)
    path = RUNS / "trials.yaml"
    _write_run(path, run_content(run), papers_values(plan, grid))
    under = load_plan(path)
    values = {row: grid.rows[row].settings() for row in lineages}
    done: list[Trial] = []
    while True:
        tried = {(trial.row, str(trial.settings), trial.recipe) for trial in done}
        wanted = [
            _trial(under, grid, lineages[row], row, *pair) for row, *pair in _wanted(grid, lineages, values, done)
        ]
        requested = [each for each in wanted if (each[0].row, str(each[0].settings), each[0].recipe) not in tried]
        if requested:
            rows = ", ".join(dict.fromkeys(trial.row for trial, _ in requested))
            print(f"{len(requested)} trials of {rows}", flush=True)
            build(path, [artifact.manifest for _, artifact in requested])
            done = choose([*done, *(replace(trial, score=_score(artifact, grid)) for trial, artifact in requested)])
        elif not _extended(grid, values, done):
            return done


def _wanted(
    grid: TuningGrid, lineages: dict[str, str], values: dict[str, list[Settings]], done: list[Trial]
) -> Iterator[tuple[str, Settings, Settings]]:
    """Every value of every row under the best recipe, and every recipe with each row's best value.

    Of each: the row, its own values, and the recipe's where it takes that. Before the first trial the recipe is the
    middle one.
    """
    best = chosen_of(done)
    recipes = values[grid.recipe] if grid.recipe else []
    for row, lineage in lineages.items():
        if grid.recipe in (None, row) or grid.rows[grid.recipe].step not in steps_of(lineage):
            yield from product([row], values[row], [{}])
        elif not best:
            yield from product([row], values[row], [recipes[len(recipes) // 2]])
        else:
            yield from product([row], values[row], [best[grid.recipe].settings])
            yield from product([row], [best[row].settings], recipes)


def _extended(grid: TuningGrid, values: dict[str, list[Settings]], done: list[Trial]) -> bool:
    """True if a best value at an edge gave every row two more; a recipe gets them at its own edge only."""
    best, edges = chosen_of(done), {trial.row for trial in at_an_edge(done)}
    if not edges or max(map(len, values.values())) + 2 > (grid.most or 0):
        return False
    for row, own in values.items():
        if row != grid.recipe or row in edges:
            values_of_row = [value for settings in own for value in settings.values()]
            own += [{grid.rows[row].field: value} for value in two_more(values_of_row, best[row].value)]
    return True


def papers_values(plan: Plan, grid: TuningGrid) -> Values:
    """The papers' own value of every tuned field."""
    papers: Values = {}
    for step, field in ((tuned.step, field) for tuned in grid.rows.values() for field in tuned.fields):
        known = plan.catalogue.steps[step]
        if field not in known:
            raise EncoreError(f"steps.yaml gives {step!r} no {field!r} to start from{nearest(field, known)}")
        papers[step, field] = known[field]
    return papers if grid.table else {}


def trial_lineage(plan: Plan, system: str, values: Values) -> Lineage:
    """A row's lineage with values as overrides of its steps, except for values that a step has anyway."""
    lineage = naming.parse(system)
    steps = []
    for step in lineage.steps:
        own = {field: value for (name, field), value in values.items() if name == step.name}
        other = {field: value for field, value in own.items() if getattr(plan.resolve.step(step), field) != value}
        overrides = dict(step.overrides) | {field: naming.spelled(value) for field, value in other.items()}
        steps.append(StepName(step.name, tuple(sorted(overrides.items()))))
    return Lineage(lineage.backbone, tuple(steps))


def validation_scores(plan: Plan, grid: TuningGrid, lineage: str) -> Artifact:
    """The scores that a trial is chosen by; the only ones that this package asks for."""
    splits = plan.resolve.dataset(grid.dataset).fields.splits
    if grid.split not in splits:
        raise EncoreError(f"dataset {grid.dataset!r} has no split {grid.split!r}{nearest(grid.split, splits)}")
    artifact = plan.scores(lineage, grid.seed, grid.dataset, grid.split)
    judged = artifact.spec["splits"]
    for split in sorted({grid.split, artifact.inputs["run"].spec["split"], *judged}):
        if splits[split].role != "valid":
            raise EncoreError(
                f"split {split!r} has role {splits[split].role!r}; hyper-parameters are chosen on role 'valid' only"
            )
    if grid.measure not in judged[grid.split]:
        near = nearest(grid.measure, judged[grid.split])
        raise EncoreError(f"{grid.measure!r} is not measured on split {grid.split!r}{near}")
    return artifact


def _trial(
    plan: Plan, grid: TuningGrid, system: str, row: str, own: Settings, shared: Settings
) -> tuple[Trial, Artifact]:
    """A trial that has no score yet, and the artifact that will hold it."""
    step = grid.rows[row].step
    values = {(step, field): value for field, value in own.items()}
    values |= {(grid.rows[grid.recipe].step, field): value for field, value in shared.items()} if grid.recipe else {}
    lineage = str(trial_lineage(plan, system, values))
    resolved = plan.resolve.lineage(lineage)
    model = plan.model(resolved, grid.seed).name.rsplit("-", 1)[-1]
    recipe = with_values(grid.rows[grid.recipe].step, own if row == grid.recipe else shared) if grid.recipe else ""
    trial = Trial(row, step, own, str(resolved), model, grid.split, grid.measure, 0.0, recipe=recipe)
    return trial, validation_scores(plan, grid, lineage)


def _score(artifact: Artifact, grid: TuningGrid) -> float:
    """The measure's mean over the queries of the split."""
    folder = Path(artifact.folder)
    verify(folder)
    return round(float(scores.read_scores(folder)[grid.split, grid.measure].values.mean()), 6)


def _write_run(path: Path, content: dict[str, Any], values: Values) -> None:
    """Write a run's configuration with other values of steps and nothing declared: no table, no lineage."""
    scale = dict(content.get("scale", {}))
    steps = {name: dict(fields) for name, fields in scale.get("steps", {}).items()}
    for (step, field), value in values.items():
        steps.setdefault(step, {})[field] = value
    trial = {**content, "tables": {}, "lineages": [], "scale": {**scale, "steps": steps}}
    write_text(path, yaml.safe_dump(trial, sort_keys=False))
