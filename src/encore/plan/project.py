"""Where the parts meet: the plan of a configuration, with the objectives, datasets and stages of this version."""

from pathlib import Path
from typing import Any

from encore import objectives
from encore.config import doc2query, index_types, systems
from encore.config.datasets import CollectionFields
from encore.config.finetuning import FinetuneStep
from encore.config.run import Step
from encore.config.validation import nearest
from encore.data import kinds
from encore.errors import EncoreError
from encore.objectives.parts.pairs import PairFields
from encore.plan.catalogue import Catalogue, read_catalogue, read_run
from encore.plan.plan import Plan
from encore.storage import code_digest

CATALOGUE = Path("config")
DEFAULT_RUN = CATALOGUE / "config.yaml"


def load_plan(run: Path = DEFAULT_RUN, given: dict[str, Any] | None = None) -> Plan:
    """Read a run's configuration and the catalogue, and plan what they make.

    Args:
        run: the run's file, relative to the repository's root.
        given: its content where it was read already.

    Raises:
        EncoreError: anything in the configuration is wrong; one line with file, place and mend.
    """
    config = read_run(run, given)
    return Plan(config, load_catalogue(), impl)


def load_catalogue(folder: Path = CATALOGUE) -> Catalogue:
    """Everything that can be named, checked by the kinds of steps, datasets, systems and so on of this version."""
    return read_catalogue(
        folder, read_step, read_dataset, systems.read_system, index_types.read_index_type, doc2query.read_expansion
    )


def read_step(step: dict[str, Any]) -> Step:
    """Check a step's fields by its kind and objective."""
    match step.get("kind"):
        case "pretrain":
            return objectives.fields(step)
        case "finetune":
            return FinetuneStep.model_validate(step)
        case kind:
            raise EncoreError(f"kind {kind!r} is neither 'pretrain' nor 'finetune'")


def read_dataset(fields: dict[str, Any]) -> CollectionFields:
    """Check a dataset's fields by its kind."""
    kind = fields.get("kind")
    if kind not in kinds.KINDS | kinds.RENAMED:
        raise EncoreError(f"unknown kind of dataset {kind!r}{nearest(str(kind), kinds.KINDS)}")
    return kinds.load_kind(kind).fields.model_validate(fields)


def stages() -> list[str]:
    """Every stage of this version, those of each objective among them."""
    found = [stage for stage in code_digest.HERE.stages if stage not in code_digest.OF_AN_OBJECTIVE]
    for name in objectives.names():
        objective = objectives.load(name)
        found += [f"pretrain.{name}"]
        found += [f"prepare.{name}"] if objective.Prepares else []
        found += [f"count_pairs.{name}"] if issubclass(objective.Fields, PairFields) else []
    return sorted(found)


def impl(stage: str) -> int:
    """The declared version of a stage; ``pretrain.<objective>`` is the objective's own."""
    kind, _, objective = stage.partition(".")
    if kind == "pretrain" and objective:
        return objectives.load(objective).impl
    return code_digest.impl(stage)
