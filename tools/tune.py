"""Choose hyper-parameters on the validation role: make every trial of a grid, and record next to it what was best.

A row of a grid is one or several lineages with the values that are tried in braces,
``bert-base+ict~learning_rate={0.001,0.003,0.01}+marco-bm25``. Trials are ordinary targets of Snakemake, so a repeated
command goes on where it stopped and makes only what was added to the grid. Options for Snakemake come after ``--``.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from encore.storage.program import run

from pydantic import Field

from encore.config.finetuning import FinetuneStep
from encore.config.validation import Strict, checked, read_yaml
from encore.errors import EncoreError
from encore.evaluation import scores
from encore.plan import lineage as naming
from encore.plan.artifact import Artifact
from encore.plan.groups import alternatives
from encore.plan.lineage import Lineage, StepName, spelled
from encore.plan.plan import Plan
from encore.plan.tuning import COLUMNS, LATER, Trial, at_an_edge, is_shared
from encore.products.catalogue import DEFAULT_RUN, load_plan
from encore.storage.csv_rows import write_rows
from encore.storage.manifest import read_manifest, verify

Build = Callable[[Sequence[str]], None]  # makes targets


class Grid(Strict):
    """The trials of every row, and what they are compared by: a file of ``config/tuning/``."""

    dataset: str
    split: str = Field(description="of role `valid`; any other is refused")
    measure: str
    seed: int = Field(0, ge=0)
    shared: str | None = Field(
        None, description="the step whose values the rows with it choose together: those best in the mean over them"
    )
    crossed: str | None = Field(
        None,
        description="the fine-tuning whose values each row tries with each value of its pre-training, choosing both",
    )
    rows: dict[str, list[str]] = Field(min_length=1, description="lineages, with the values that are tried in braces")


def trials(grid: Grid) -> Iterator[Trial]:
    """Every trial of every row, without a model or a score: lineages as the grid has them."""
    counts, finetuning = {}, grid.shared or grid.crossed
    for row, written in grid.rows.items():
        lineages = [naming.parse(name) for each in written for name in alternatives(each)]
        named = {(step.name, field) for lineage in lineages for step in lineage.steps for field, _ in step.overrides}
        values = {key: [_value(lineage, *key) for lineage in lineages] for key in sorted(named)}
        varied = {key: found for key, found in values.items() if len(set(found)) > 1}
        steps = {step for step, _ in varied if step != finetuning} or {step for step, _ in varied}
        if len(steps) != 1 or any(None in found for found in varied.values()):
            raise EncoreError(f"row {row!r} must try values of one step, in braces; it has {sorted(steps) or 'none'}")
        (name,) = steps
        own = {field: found for (step, field), found in varied.items() if step == name}
        if name != grid.shared:
            counts[row] = len(set(zip(*(varied if grid.crossed else own).values(), strict=True)))
        joined = grid.shared or (grid.crossed if name != grid.crossed else None)
        for place, lineage in enumerate(lineages):
            settings = {field: found[place] for field, found in own.items()}
            recipe = "".join(str(step) for step in lineage.steps if step.name == joined)
            yield Trial(row, name, settings, str(lineage), "", grid.split, grid.measure, 0.0, recipe=recipe)
    if len(set(counts.values())) > 1:
        raise EncoreError(f"rows must try equally many values, and these do not: {counts}")


def _value(lineage: Lineage, name: str, field: str) -> Any:
    return next((step.values().get(field) for step in lineage.steps if step.name == name), None)


def requested(plan: Plan, name: str) -> str:
    """A lineage without values that its steps have anyway, which names leave out."""
    lineage, steps = naming.parse(name), []
    for step in lineage.steps:
        now, values = plan.resolve.step(StepName(step.name)), step.values()
        other = [(field, text) for field, text in step.overrides if getattr(now, field, None) != values[field]]
        steps.append(StepName(step.name, tuple(other)))
    return str(plan.resolve.lineage(str(Lineage(lineage.backbone, tuple(steps)))))


def validation_scores(plan: Plan, grid: Grid, lineage: str) -> Artifact:
    """The scores that a trial is chosen by; the only ones that this program asks for."""
    dataset = plan.resolve.dataset(grid.dataset)
    for step in map(plan.resolve.step, plan.resolve.lineage(lineage).steps):
        if not isinstance(step, FinetuneStep) or plan.resolve.dataset(step.collection).name != dataset.name:
            continue
        if not dataset.fields.serves(grid.split, step.train_split):
            raise EncoreError(
                f"split {grid.split!r} may hold questions that {lineage} trains on ({step.train_split}) or is tested "
                "with; choose on the validation of the same share, or on one that serves all (`validation: common`)"
            )
    splits = dataset.fields.splits
    artifact = plan.scores(lineage, grid.seed, grid.dataset, grid.split)
    for split in sorted({grid.split, artifact.inputs["run"].spec["split"], *artifact.spec["splits"]}):
        if splits[split].role != "valid":
            raise EncoreError(
                f"split {split!r} has role {splits[split].role!r}; hyper-parameters are chosen on role 'valid' only"
            )
    return artifact


def tune(plan: Plan, grid: Grid, build: Build) -> list[Trial]:
    """Every trial of a grid with its score, and the best of every row marked.

    Args:
        build: makes manifests; none again that exists.
    """
    wanted = [replace(trial, lineage=requested(plan, trial.lineage)) for trial in trials(grid)]
    made = [validation_scores(plan, grid, trial.lineage) for trial in wanted]
    build(list(dict.fromkeys(artifact.manifest for artifact in made)))
    done = []
    for trial, artifact in zip(wanted, made, strict=True):
        verify(Path(artifact.folder))
        found = scores.read_scores(Path(artifact.folder))[grid.split, grid.measure].values.mean()
        model = plan.model(plan.resolve.lineage(trial.lineage), grid.seed)
        about: dict[str, Any] = {"model": model.name.rsplit("-", 1)[-1], "score": round(float(found), 6)}
        done.append(replace(trial, **about, **kept(Path(model.folder))))
    return choose(done)


def kept(model: Path) -> dict[str, Any]:
    """The step whose weights a trial's model has, and how many validations were as good; nothing where it is gone."""
    try:
        results = read_manifest(model)["results"]
    except EncoreError:
        return {}
    equal = results.get("equal_validations")
    return {"kept_step": str(results.get("best_step", results["steps"])), "equal": str(equal or "")}


def choose(listed: Sequence[Trial]) -> list[Trial]:
    """Mark the best trial of every row; of equally good ones the first.

    Rows that share a recipe have one: of those that all these rows tried the one under which the mean of their best
    scores is highest. Where it is crossed with a row's own values each row has its own.
    """
    recipes: dict[str, dict[str, float]] = {}
    shared = is_shared(listed)
    for trial in (trial for trial in listed if trial.recipe and shared):
        rows = recipes.setdefault(trial.recipe, {})
        rows[trial.row] = max(trial.score, rows.get(trial.row, trial.score))
    most = max(map(len, recipes.values()), default=0)
    means = {recipe: fmean(rows.values()) for recipe, rows in recipes.items() if len(rows) == most}
    recipe = max(means, key=means.__getitem__, default="")
    best: dict[str, Trial] = {}
    for trial in listed:
        if (not shared or trial.recipe in ("", recipe)) and (
            trial.row not in best or trial.score > best[trial.row].score
        ):
            best[trial.row] = trial
    return [replace(trial, chosen=trial is best[trial.row]) for trial in listed]


def write_trials(path: Path, done: Iterable[Trial]) -> None:
    """Write trials sorted by row and values; several fields and their values are joined by ``+``."""
    lines, done = [], list(done)
    columns = [name for name in COLUMNS if name not in LATER or any(getattr(trial, name) for trial in done)]
    for trial in sorted(done, key=lambda trial: (trial.row, *trial.settings.values())):
        tried = {"field": "+".join(trial.settings), "value": "+".join(map(spelled, trial.settings.values()))}
        outcome = {"score": f"{trial.score:.6f}", "chosen": "yes" if trial.chosen else "no"}
        lines.append([(vars(trial) | tried | outcome)[name] for name in columns])
    write_rows(path, columns, lines)


def differences(plan: Plan, done: Iterable[Trial]) -> Iterator[str]:
    """Each value of a run's configuration that is not the chosen trial's, in words."""
    for trial in (trial for trial in done if trial.chosen):
        for field, best in trial.settings.items():
            value = getattr(plan.resolve.step(StepName(trial.step)), field)
            if value != best:
                yield f"step {trial.step!r}: {field} is {spelled(value)}, row {trial.row!r} is best at {spelled(best)}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.tune", description=__doc__)
    parser.add_argument("--grid", type=Path, required=True, help="what to try: a file of config/tuning/")
    parser.add_argument("--config", type=Path, default=DEFAULT_RUN, help="the run to choose for")
    parser.add_argument("options", nargs="*", default=["--cores", "all"], help="for Snakemake (default: --cores all)")
    args = parser.parse_args()

    def build(targets: Sequence[str]) -> None:
        command = [sys.executable, "-m", "snakemake", *targets, "--configfile", str(args.config), *args.options]
        if subprocess.run(command, check=False).returncode:
            raise EncoreError("Snakemake did not make every trial (see above); the same command continues from here")

    plan, record = load_plan(args.config), args.grid.with_suffix(".csv")
    done = tune(plan, checked(Grid, read_yaml(args.grid), str(args.grid)), build)
    write_trials(record, done)
    for trial in done:
        print(f"{trial.row:<12} {trial.score:.4f} {trial.lineage} {'<- chosen' if trial.chosen else ''}".rstrip())
    print(f"{len(done)} trials of {len({trial.row for trial in done})} rows: {record}")
    for row in (trial.row for trial in at_an_edge(done)):
        print(f"row {row!r} is best at an edge; its table says so, unless every row tries two more values")
    for difference in differences(plan, done):
        print(f"{args.config}, {difference}")


if __name__ == "__main__":
    run(main)
