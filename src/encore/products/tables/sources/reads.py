"""What the cells of a column read, by the source of the column's values; how each is read is in ``reporting/sources``.

A cell reads folders, each under a seed: under every seed of the run where its system has chance in it, otherwise under
none. Adding a source takes a function here, its reader there, and its field in ``config/tables.py``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.config import lineage as naming
from encore.config.entries import PretrainStep
from encore.config.lineage import Lineage
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.artifacts import inspections
from encore.plan.artifacts.masked_loss import masked_loss, pairs
from encore.plan.plan import Plan


@dataclass(frozen=True)
class CellRequest:
    """A cell with its names filled: what of its source it shows, about which system, dataset and split, if any."""

    value: str
    system: str = ""
    dataset: str = ""
    split: str = ""


@dataclass(frozen=True)
class Reads:
    """The artifacts that a cell reads, by seed, or a file of the user's, the ``record``.

    ``absent`` is the reason where nothing here has what is requested.
    """

    by_seed: tuple[tuple[int | None, Artifact], ...] = ()
    collection: str = ""
    absent: str = ""
    record: str = ""


def pretrained(plan: Plan, lineage: Lineage) -> Iterator[Lineage]:
    """The beginnings of a lineage that end with a pre-training step."""
    for count, step in enumerate(lineage.steps, 1):
        if isinstance(plan.resolve.step(step), PretrainStep):
            yield Lineage(lineage.backbone, lineage.steps[:count])


def _measure(plan: Plan, request: CellRequest) -> Reads:
    """The scores of the system's run over the queries of the split.

    Raises:
        EncoreError: the split is unknown, or has no such measure.
    """
    fields, topics = plan.resolve.dataset(request.dataset).fields, _topics(plan, request)
    if request.value not in (measures := fields.splits[request.split].measures):
        near = nearest(request.value, measures)
        raise EncoreError(f"{request.value!r} is not measured on split {request.split!r} of {request.dataset!r}{near}")
    seeds: list[int | None] = list(plan.config.seeds) if plan.resolve.has_chance(request.system) else [None]
    scores = ((seed, plan.scores(request.system, seed, request.dataset, topics)) for seed in seeds)
    return Reads(tuple(scores), plan.collection(request.dataset).name)


def _efficiency(plan: Plan, request: CellRequest) -> Reads:
    """The latency of the system: of the first seed's model, as all cost alike; nothing where it cannot be measured."""
    seed = plan.config.seeds[0] if plan.resolve.has_chance(request.system) else None
    measured = plan.latency(request.system, seed, request.dataset, _topics(plan, request))
    return Reads(((seed, measured),) if measured else (), plan.collection(request.dataset).name)


def _held_out(plan: Plan, request: CellRequest) -> Reads:
    """The models that the system's last pre-training step ends with; nothing where it has none."""
    if request.system in plan.catalogue.systems:
        return Reads()
    lineage = plan.resolve.lineage(naming.split_index(request.system)[0])
    last = list(pretrained(plan, lineage))[-1:]
    return Reads(tuple((seed, plan.model(each, seed)) for each in last for seed in plan.config.seeds))


def _masked_loss(plan: Plan, request: CellRequest) -> Reads:
    """The loss of the system's last pre-trained model, or of its start, on masked passages of the dataset."""
    if request.system in plan.catalogue.systems:
        return Reads()
    lineage = plan.resolve.lineage(naming.split_index(request.system)[0])
    last = [Lineage(lineage.backbone), *pretrained(plan, lineage)][-1]
    found = ((seed, masked_loss(plan, last, seed, request.dataset, request.value)) for seed in plan.config.seeds)
    return Reads(tuple(found), plan.collection(request.dataset).name)


def _pairs(plan: Plan, request: CellRequest) -> Reads:
    """The pairs that the system's last pre-training step learns from; nothing where it has none."""
    if request.system in plan.catalogue.systems:
        return Reads()
    last = list(pretrained(plan, plan.resolve.lineage(naming.split_index(request.system)[0])))[-1:]
    return Reads(tuple((None, pairs(plan, lineage)) for lineage in last))


def _recorded(plan: Plan, request: CellRequest) -> Reads:
    """A file that the run's configuration names; nothing of this run makes it.

    Raises:
        EncoreError: the run names no such record, or the file is missing.
    """
    name, records = request.value.split("/")[0], plan.config.records
    if name not in records:
        raise EncoreError(f"the run's `records` have no {name!r}{nearest(name, records)}")
    if not Path(records[name]).is_file():
        raise EncoreError(f"records.{name}: {records[name]} is missing; name a file that benchmarks/ wrote")
    return Reads(record=records[name])


def _statistic(plan: Plan, request: CellRequest) -> Reads:
    """The collection, whose statistics the cell shows."""
    collection = plan.collection(request.dataset)
    return Reads(((None, collection),), collection.name)


def _tokens(plan: Plan, request: CellRequest) -> Reads:
    """The dataset's texts in the vocabulary of the lineage's backbone; nothing for a system that is no lineage."""
    if request.system in plan.catalogue.systems:
        return Reads()
    backbone = plan.resolve.backbone(plan.resolve.lineage(naming.split_index(request.system)[0]))
    return Reads(((None, plan.tokens(request.dataset, backbone)),), plan.collection(request.dataset).name)


def _vectors(plan: Plan, request: CellRequest) -> Reads:
    """The vectors of the system's last pre-trained model, or of its start, of passages of the dataset.

    Raises:
        EncoreError: the model is a bag of words, which has no states.
    """
    if request.system in plan.catalogue.systems:
        return Reads()
    lineage = plan.resolve.lineage(naming.split_index(request.system)[0])
    last = [Lineage(lineage.backbone), *pretrained(plan, lineage)][-1]
    found = ((seed, inspections.of_vectors(plan, last, seed, request.dataset)) for seed in plan.config.seeds)
    return Reads(tuple(found), plan.collection(request.dataset).name)


def _nothing(plan: Plan, request: CellRequest) -> Reads:
    """Nothing: its values are made of other cells' (a mean, a gain), or it has none of ours."""
    return Reads()


READERS: dict[str, Callable[[Plan, CellRequest], Reads]] = {
    "measure": _measure,
    "efficiency": _efficiency,
    "held_out": _held_out,
    "masked_loss": _masked_loss,
    "pairs": _pairs,
    "recorded": _recorded,
    "statistic": _statistic,
    "tokens": _tokens,
    "vectors": _vectors,
    "mean_of": _nothing,
    "gain": _nothing,
    "printed": _nothing,
}


def read(plan: Plan, source: str, request: CellRequest) -> Reads:
    """What a cell of a column with such a source reads.

    Raises:
        EncoreError: what is requested is unknown, or is not measured there.
    """
    absent = plan.resolve.datasets.absence(request.dataset, request.split) if request.dataset else None
    if reason := absent or (plan.resolve.missing_start(request.system) if request.system else None):
        return Reads(absent=reason)
    return READERS[source](plan, request)


def _topics(plan: Plan, request: CellRequest) -> str:
    """The split whose queries a run answers for the requested split.

    Raises:
        EncoreError: the dataset has no such split.
    """
    splits: dict[str, Any] = plan.resolve.dataset(request.dataset).fields.splits
    if request.split not in splits:
        fix = f"; if it cannot have one, say why under its `absent:`{nearest(request.split, splits)}"
        raise EncoreError(f"dataset {plan.resolve.dataset(request.dataset).name!r} has no split {request.split!r}{fix}")
    return splits[request.split].topics or request.split
