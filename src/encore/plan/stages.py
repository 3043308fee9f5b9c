"""The stages of this version: those of ``stages.yaml``, of each objective, and of each kind of collection."""

from encore import objectives
from encore.datasets import kinds
from encore.objectives.parts.pairs import PairFields
from encore.storage import code_digest


def impl(stage: str) -> int:
    """The declared version of a stage; an objective and a kind of collection have their own."""
    match stage.partition("."):
        case "pretrain", _, objective if objective:
            return objectives.load(objective).impl
        case "collection", _, kind if kind:
            return kinds.load_kind(kind).impl
    return code_digest.impl(stage)


def all_stages() -> list[str]:
    """Every stage of this version, those of each objective and of each kind of collection among them."""
    declared = code_digest.HERE.stages
    found = [stage for stage in declared if stage.partition(".")[0] not in code_digest.VARIANTS]
    found += [f"collection.{kind}" for kind in kinds.names()]
    for name in objectives.names():
        objective = objectives.load(name)
        found += [f"pretrain.{name}"]
        found += [f"prepare.{name}"] if objective.Prepares else []
        found += [f"count_pairs.{name}"] if issubclass(objective.Fields, PairFields) else []
    return sorted(found)
