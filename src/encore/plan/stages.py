"""The stages of this version: those of ``stages.yaml``, and those of each objective."""

from encore import objectives
from encore.objectives.parts.pairs import PairFields
from encore.storage import code_digest


def impl(stage: str) -> int:
    """The declared version of a stage; ``pretrain.<objective>`` is the objective's own."""
    kind, _, objective = stage.partition(".")
    if kind == "pretrain" and objective:
        return objectives.load(objective).impl
    return code_digest.impl(stage)


def all_stages() -> list[str]:
    """Every stage of this version, those of each objective among them."""
    found = [stage for stage in code_digest.HERE.stages if stage not in code_digest.OF_AN_OBJECTIVE]
    for name in objectives.names():
        objective = objectives.load(name)
        found += [f"pretrain.{name}"]
        found += [f"prepare.{name}"] if objective.Prepares else []
        found += [f"count_pairs.{name}"] if issubclass(objective.Fields, PairFields) else []
    return sorted(found)
