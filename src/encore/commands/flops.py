"""Operations that each row of a table spent, and whether the comparison is fair (docs/protocol.md, section 3).

Every objective gets one pre-training budget, and the control spends the dearest objective's on more fine-tuning.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.plan.tables import table_plan
from encore.storage import manifest

TOLERANCE = 0.10


@dataclass(frozen=True)
class RowFlops:
    """Floating-point operations behind one row, under the first seed; they do not depend on it by more than padding."""

    row: str
    setting: str
    role: str
    pretraining: float
    finetuning: float


def flops_of_rows(plan: Plan, table: str) -> list[RowFlops]:
    """What each row with a model spent, read from the manifests of its models.

    Raises:
        EncoreError: a model was not trained yet.
    """
    found = []
    for row in table_plan(plan, table)["rows"]:
        runs = _first_runs(plan, row)
        for system, scores in runs.items():
            models, name = _models(scores), row["id"] if len(runs) == 1 else f"{row['id']} ({system})"
            found.append(
                RowFlops(name, row["setting"], row["role"], _sum(models, "pretrain"), _sum(models, "finetune"))
            )
    return found


def budget_complaints(rows: list[RowFlops]) -> list[str]:
    """Where a budget is off by more than a tenth: objectives among themselves, and the control against the dearest."""
    found = []
    for setting in dict.fromkeys(row.setting for row in rows):
        own = [row for row in rows if row.setting == setting]
        objectives = {row.row: row.pretraining for row in own if row.role == "objective"}
        if not objectives:
            continue
        dearest = max(objectives.values())
        found += [_off(setting, name, value, dearest) for name, value in objectives.items() if _apart(value, dearest)]
        plain = next((row.finetuning for row in own if row.role == "none"), None)
        controls = [row for row in own if row.role == "control"]
        if plain is not None:
            more = {row.row: row.finetuning - plain for row in controls}
            found += [_off(setting, name, value, dearest) for name, value in more.items() if _apart(value, dearest)]
    return found


def flops_text(rows: list[RowFlops]) -> str:
    """The budgets as text, in 10^12 operations."""
    lines = [f"{'row':<24} {'setting':<18} {'pre-training':>12} {'fine-tuning':>12}  (10^12 operations)"]
    lines += [f"{r.row:<24} {r.setting:<18} {r.pretraining / 1e12:>12.3f} {r.finetuning / 1e12:>12.3f}" for r in rows]
    return "\n".join(lines)


def _first_runs(plan: Plan, row: dict[str, Any]) -> dict[str, Artifact]:
    """The first scores of each trained system of a row, under the first seed."""
    found: dict[str, Artifact] = {}
    for cell in row["cells"].values():
        for read in cell["reads"][:1]:
            artifact = plan.find(read["folder"])
            if artifact.stage == "evaluate" and read["seed"] is not None:
                found.setdefault(cell["system"], artifact)
    return found


def _models(scores: Artifact) -> list[Artifact]:
    """The chains of models behind scores, through the weights that each went on from; each model once."""
    chain = list(_last_models(scores.inputs["run"]))
    for model in chain:
        if "weights" in model.inputs and model.inputs["weights"] not in chain:
            chain.append(model.inputs["weights"])
    return chain


def _last_models(run: Artifact) -> Iterator[Artifact]:
    """The models that a run was made with: its own, or those of the runs that it is made of."""
    if "model" in run.inputs:
        yield run.inputs["model"]
    for part in run.inputs.values():
        if part.folder.startswith("results/runs/"):
            yield from _last_models(part)


def _sum(models: list[Artifact], stage: str) -> float:
    return sum(manifest.read_results(model.folder)["flops"] for model in models if model.stage.split(".")[0] == stage)


def _apart(value: float, dearest: float) -> bool:
    return abs(value - dearest) > TOLERANCE * dearest


def _off(setting: str, name: str, value: float, dearest: float) -> str:
    return (
        f"{setting}: {name} spends {value / 1e12:.3f}e12 operations beyond plain fine-tuning, the dearest objective "
        f"{dearest / 1e12:.3f}e12; bring its steps within 10 %"
    )
