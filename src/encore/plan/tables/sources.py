"""What the cells of a column read, by the source of the column's values; how each is read is in ``reporting/sources``.

A cell reads folders, each under a seed: under every seed of the run where its system has chance in it, otherwise under
none. Adding a source takes a function here, its reader there, and its field in ``config/tables.py``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.config import lineage as naming
from encore.config.lineage import Lineage
from encore.config.run import PretrainStep
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.artifacts.masked_loss import masked_loss
from encore.plan.artifacts.pairs import pairs
from encore.plan.plan import Plan


@dataclass(frozen=True)
class Asked:
    """A cell with its names filled: what of its source it shows, about which system, dataset and split, if any."""

    value: str
    system: str = ""
    dataset: str = ""
    split: str = ""


@dataclass(frozen=True)
class Reads:
    """The artifacts that a cell reads, by seed, or a file of the user's, the ``record``.

    ``absent`` says why nothing here has what is asked for.
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


def _measure(plan: Plan, asked: Asked) -> Reads:
    """The scores of the system's run over the queries of the split.

    Raises:
        EncoreError: the split is unknown, or has no such measure.
    """
    fields, topics = plan.resolve.dataset(asked.dataset), _topics(plan, asked)
    if asked.value not in (measures := fields.splits[asked.split].measures):
        near = nearest(asked.value, measures)
        raise EncoreError(f"{asked.value!r} is not measured on split {asked.split!r} of {asked.dataset!r}{near}")
    seeds: list[int | None] = list(plan.config.seeds) if plan.resolve.has_chance(asked.system) else [None]
    scores = ((seed, plan.scores(asked.system, seed, asked.dataset, topics)) for seed in seeds)
    return Reads(tuple(scores), plan.collection(asked.dataset).name)


def _efficiency(plan: Plan, asked: Asked) -> Reads:
    """What a query takes in the system: of the first seed's model, as all cost alike; nothing where none can tell."""
    seed = plan.config.seeds[0] if plan.resolve.has_chance(asked.system) else None
    measured = plan.latency(asked.system, seed, asked.dataset, _topics(plan, asked))
    return Reads(((seed, measured),) if measured else (), plan.collection(asked.dataset).name)


def _held_out(plan: Plan, asked: Asked) -> Reads:
    """The models that the system's last pre-training step ends with; nothing where it has none."""
    if asked.system in plan.catalogue.systems:
        return Reads()
    lineage = plan.resolve.lineage(naming.split_index(asked.system)[0])
    last = list(pretrained(plan, lineage))[-1:]
    return Reads(tuple((seed, plan.model(each, seed)) for each in last for seed in plan.config.seeds))


def _masked_loss(plan: Plan, asked: Asked) -> Reads:
    """What the system's last pre-trained model, or what it starts from, makes of masked passages of the dataset."""
    if asked.system in plan.catalogue.systems:
        return Reads()
    lineage = plan.resolve.lineage(naming.split_index(asked.system)[0])
    last = [Lineage(lineage.backbone), *pretrained(plan, lineage)][-1]
    found = ((seed, masked_loss(plan, last, seed, asked.dataset, asked.value)) for seed in plan.config.seeds)
    return Reads(tuple(found), plan.collection(asked.dataset).name)


def _pairs(plan: Plan, asked: Asked) -> Reads:
    """The pairs that the system's last pre-training step learns from; nothing where it has none."""
    if asked.system in plan.catalogue.systems:
        return Reads()
    last = list(pretrained(plan, plan.resolve.lineage(naming.split_index(asked.system)[0])))[-1:]
    return Reads(tuple((None, pairs(plan, lineage)) for lineage in last))


def _recorded(plan: Plan, asked: Asked) -> Reads:
    """A file that the run's configuration names; nothing of this run makes it.

    Raises:
        EncoreError: the run names no such record, or the file is missing.
    """
    name, records = asked.value.split("/")[0], plan.config.records
    if name not in records:
        raise EncoreError(f"the run's `records` have no {name!r}{nearest(name, records)}")
    if not Path(records[name]).is_file():
        raise EncoreError(f"records.{name}: {records[name]} is missing; name a file that benchmarks/ wrote")
    return Reads(record=records[name])


def _statistic(plan: Plan, asked: Asked) -> Reads:
    """The collection."""
    collection = plan.collection(asked.dataset)
    return Reads(((None, collection),), collection.name)


def _tokens(plan: Plan, asked: Asked) -> Reads:
    """The dataset's texts in the vocabulary of the lineage's backbone; nothing for a system that is no lineage."""
    if asked.system in plan.catalogue.systems:
        return Reads()
    backbone = plan.resolve.backbone(plan.resolve.lineage(naming.split_index(asked.system)[0]))
    return Reads(((None, plan.tokens(asked.dataset, backbone)),), plan.collection(asked.dataset).name)


def _nothing(plan: Plan, asked: Asked) -> Reads:
    """Nothing: its values are made of other cells' (a mean, a gain), or it has none of ours."""
    return Reads()


READERS: dict[str, Callable[[Plan, Asked], Reads]] = {
    "measure": _measure,
    "efficiency": _efficiency,
    "held_out": _held_out,
    "masked_loss": _masked_loss,
    "pairs": _pairs,
    "recorded": _recorded,
    "statistic": _statistic,
    "tokens": _tokens,
    "mean_of": _nothing,
    "gain": _nothing,
    "printed": _nothing,
}


def read(plan: Plan, source: str, asked: Asked) -> Reads:
    """What a cell of a column with such a source reads.

    Raises:
        EncoreError: what is asked for is unknown, or is not measured there.
    """
    absent = plan.resolve.absence(asked.dataset, asked.split) if asked.dataset else None
    if reason := absent or (plan.resolve.missing_start(asked.system) if asked.system else None):
        return Reads(absent=reason)
    return READERS[source](plan, asked)


def _topics(plan: Plan, asked: Asked) -> str:
    """The split whose queries a run answers for the split that is asked for.

    Raises:
        EncoreError: the dataset has no such split.
    """
    splits: dict[str, Any] = plan.resolve.dataset(asked.dataset).splits
    if asked.split not in splits:
        mend = f"; if it cannot have one, say why under its `absent:`{nearest(asked.split, splits)}"
        raise EncoreError(f"dataset {plan.resolve.dataset_name(asked.dataset)!r} has no split {asked.split!r}{mend}")
    return splits[asked.split].topics or asked.split
