"""Make and score the trials of a grid, through the same artifacts as every reported number, but on the validation role.

A trial is a lineage with overrides. It starts from the papers' own values of what is tuned, whatever the run's
configuration holds now, so its name and its folders stay the same after the chosen values are written there. Where a
grid is of lineages nothing is written: the chosen trial's name is what to ask for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from encore.commands.tuning.grid import Settings, Tuned, TuningGrid, rounds, systems
from encore.commands.tuning.trials import Trial, choose
from encore.config import lineage as naming
from encore.config.lineage import Lineage, StepName
from encore.config.run_file import run_content
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.evaluation import scores
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.plan.project import load_plan
from encore.storage.files import write_text
from encore.storage.manifest import verify

RUNS = Path("results/tuning")
Chosen = dict[tuple[str, str], float]  # by step and field
Build = Callable[[Path, Sequence[str]], None]  # makes targets under a run's configuration


def tune(run: Path, grid: TuningGrid, build: Build) -> list[Trial]:
    """Try every value of every row and choose each row's best.

    Args:
        run: the run's configuration, whose scale the trials are made at.
        build: makes manifests, given the configuration to use. What exists already need not be made again.

    Raises:
        EncoreError: the grid does not fit the run, asks for judgments of another role than `valid`, or a score is
            missing.
    """
    plan = load_plan(run)
    lineages = systems(grid, plan)
    chosen: Chosen = {}
    trials: list[Trial] = []
    order = rounds(grid, lineages)
    for number, rows in enumerate(order, 1):
        path = RUNS / f"round{number}.yaml"
        _write_run(path, run_content(run), tried_from(plan, grid, chosen))
        requested = _round(load_plan(path), grid, {row: lineages[row] for row in rows})
        print(f"round {number} of {len(order)}: {len(requested)} trials of {', '.join(rows)}", flush=True)
        build(path, [artifact.manifest for _, artifact in requested])
        done = choose(replace(trial, score=_score(artifact, grid)) for trial, artifact in requested)
        if grid.table:
            best = [trial for trial in done if trial.chosen]
            chosen |= {(trial.step, field): value for trial in best for field, value in trial.settings.items()}
        trials += done
    return trials


def tried_from(plan: Plan, grid: TuningGrid, chosen: Chosen) -> Chosen:
    """What every tuned field is without an override: the chosen value, and before the choice the papers' own.

    Raises:
        EncoreError: a step has no such field of its own.
    """
    papers: Chosen = {}
    for step, field in (key for tuned in grid.rows.values() for key in tuned.keys):
        known = plan.catalogue.steps[step]
        if field not in known:
            raise EncoreError(f"steps.yaml gives {step!r} no {field!r} to start from{nearest(field, known)}")
        papers[step, field] = known[field]
    return papers | chosen if grid.table else {}


def trial_lineage(plan: Plan, system: str, tuned: Tuned, settings: Settings) -> Lineage:
    """A row's lineage with the values as overrides of its step; without one where the step has the value anyway."""
    lineage = naming.parse(system)
    steps = []
    for step in lineage.steps:
        if step.name == tuned.step:
            other = {name: value for name, value in settings.items() if getattr(plan.resolve.step(step), name) != value}
            overrides = dict(step.overrides) | {name: naming.spelled(value) for name, value in other.items()}
            step = StepName(step.name, tuple(sorted(overrides.items())))
        steps.append(step)
    return Lineage(lineage.backbone, tuple(steps))


def validation_scores(plan: Plan, grid: TuningGrid, lineage: str) -> Artifact:
    """The scores that a trial is chosen by; the only ones that this package asks for.

    Raises:
        EncoreError: the split, or another that is scored or searched with it, is not of role `valid`, or has not the
            measure.
    """
    splits = plan.resolve.dataset(grid.dataset).splits
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


def _round(plan: Plan, grid: TuningGrid, lineages: dict[str, str]) -> list[tuple[Trial, Artifact]]:
    """The trials of some rows, still without scores, and the artifacts that hold these."""
    return [(trial, validation_scores(plan, grid, trial.lineage)) for trial in _trials(plan, grid, lineages)]


def _trials(plan: Plan, grid: TuningGrid, lineages: dict[str, str]) -> Iterator[Trial]:
    for row, system in lineages.items():
        tuned = grid.rows[row]
        for settings in tuned.settings():
            lineage = str(trial_lineage(plan, system, tuned, settings))
            model = plan.model(plan.resolve.lineage(lineage), grid.seed).name.rsplit("-", 1)[-1]
            tried = (row, tuned.step, settings, lineage, model)
            yield Trial(*tried, split=grid.split, measure=grid.measure, score=0.0)


def _score(artifact: Artifact, grid: TuningGrid) -> float:
    """The measure's mean over the queries of the split."""
    folder = Path(artifact.folder)
    verify(folder)
    return round(float(scores.read_scores(folder)[grid.split, grid.measure].values.mean()), 6)


def _write_run(path: Path, content: dict[str, Any], values: Chosen) -> None:
    """Write a run's configuration with other values of steps and nothing declared: no table, no lineage."""
    scale = dict(content.get("scale", {}))
    steps = {name: dict(fields) for name, fields in scale.get("steps", {}).items()}
    for (step, field), value in values.items():
        steps.setdefault(step, {})[field] = value
    trial = {**content, "tables": {}, "lineages": [], "scale": {**scale, "steps": steps}}
    write_text(path, yaml.safe_dump(trial, sort_keys=False))
