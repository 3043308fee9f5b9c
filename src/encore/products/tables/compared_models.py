"""The models behind a row, whose manifests say how many operations each training took."""

from collections.abc import Callable, Iterator
from typing import Any

from encore.plan.artifact import Artifact


def models_behind(scores: Artifact) -> dict[str, list[str]]:
    """The folders of the models behind scores, each once, by the kind of training: ``pretrain``, ``finetune``.

    They are found through the weights that each training went on from.
    """
    chain = list(_last_models(scores.inputs["run"]))
    for model in chain:
        if "weights" in model.inputs and model.inputs["weights"] not in chain:
            chain.append(model.inputs["weights"])
    kinds = [(model.stage.partition(".")[0], model.folder) for model in chain]
    return {kind: [folder for each, folder in kinds if each == kind] for kind in ("pretrain", "finetune")}


def compared_models(rows: list[dict[str, Any]], find: Callable[[str], Artifact]) -> list[dict[str, Any]]:
    """The rows of a table's slice; where a control is among them, with the models behind each under the first seed."""
    if all(row["role"] != "control" for row in rows):
        return rows
    return [row | {"models": models_behind(first)} if (first := _first_scores(row, find)) else row for row in rows]


def _first_scores(row: dict[str, Any], find: Callable[[str], Artifact]) -> Artifact | None:
    """The first scores of a row that has learned something, under the first seed."""
    reads = (read for cell in row["cells"].values() for read in cell["reads"][:1] if read["seed"] is not None)
    found = (find(read["folder"]) for read in reads)
    return next((artifact for artifact in found if artifact.stage == "evaluate"), None)


def _last_models(run: Artifact) -> Iterator[Artifact]:
    """The models that a run was made with: its own, or those of the runs that it is made of."""
    if "model" in run.inputs:
        yield run.inputs["model"]
    for part in run.inputs.values():
        if part.folder.startswith("results/runs/"):
            yield from _last_models(part)
