"""What a name means under a run's configuration: catalogue, then scale, then the lineage's own overrides."""

from typing import Any

from encore.config import published
from encore.config.entries import Backbone, Step, System
from encore.config.finetuning import FinetuneStep
from encore.config.run import RunConfig
from encore.config.systems import IndexType, read_index_type
from encore.config.validation import checked, explained, nearest
from encore.errors import EncoreError
from encore.plan import lineage as naming
from encore.plan.catalogue import Catalogue, read_step
from encore.plan.datasets import Dataset, Datasets
from encore.plan.lineage import Lineage, StepName
from encore.plan.scale import refuse_unknown_names, with_single_names

EPOCHS = "epochs", "steps_per_epoch"  # what a number of steps leaves without effect
RELEASED = "-released"  # how backbones are called whose training was others' work (config/backbones.yaml)
PARENT = "parent"  # among a step's teachers: the lineage without the step


class Resolver:
    """What names mean: a run's configuration over the catalogue."""

    def __init__(self, config: RunConfig, catalogue: Catalogue) -> None:
        """"""
        self.catalogue = catalogue
        self._steps: dict[StepName, Step] = {}
        self._backbones: dict[str, Backbone] = {}
        try:
            self.config = config = with_single_names(config, catalogue)
            self.datasets = Datasets(config, catalogue)
            refuse_unknown_names(self.config, catalogue, self.datasets)
            self._check_scale()
            for name in config.lineages:
                if name not in catalogue.systems:
                    lineage, index = naming.split_index(name)
                    self.lineage(lineage)
                    if index:
                        self.index_type(index)
        except EncoreError as error:
            raise EncoreError(config.at(str(error))) from error

    def dataset(self, name: str) -> Dataset:
        """The dataset that has a name at this scale."""
        return self.datasets.named(name)

    def own(self, name: str) -> Dataset:
        """A dataset by its own name, whether or not another one replaces it at this scale."""
        return self.datasets.own(name)

    def missing_start(self, system: str) -> str | None:
        """Reason why the backbone that a system starts from is unavailable at this scale, or None."""
        if system in self.catalogue.systems:
            return next((reason for part in self.system(system).parts if (reason := self.missing_start(part))), None)
        replaced = self.replaced_beginning(system)
        own = self.config.scale.replace_prefix[replaced] if replaced else naming.split_index(system)[0]
        return self.config.scale.absent.get(own.partition("+")[0])

    def replaced_beginning(self, system: str) -> str | None:
        """The longest beginning of a lineage, or of a template of one, that ``scale.replace_prefix`` replaces."""
        parts = naming.split_index(system)[0].split("+")
        beginnings = ("+".join(parts[:count]) for count in range(len(parts), 0, -1))
        return next((each for each in beginnings if each in self.config.scale.replace_prefix), None)

    def starts_released(self, system: str) -> bool:
        """True if a system, or a part of it, starts from weights that others have released; by the backbone's name."""
        return any(each.backbone.endswith(RELEASED) for each in self.lineages_of(system))

    def backbone_name(self, name: str) -> str:
        """The backbone that replaces ``name`` at this scale."""
        replacement = self.config.scale.backbones.get(name, name)
        if replacement not in self.catalogue.backbones:
            raise EncoreError(f"unknown backbone {replacement!r}{nearest(replacement, self.catalogue.backbones)}")
        return replacement

    def doc2query_name(self, name: str) -> str:
        """The entry of doc2query.yaml that replaces ``name`` at this scale."""
        replacement = self.config.scale.doc2query.get(name, name)
        if replacement not in self.catalogue.doc2query:
            known = self.catalogue.doc2query
            raise EncoreError(f"expansion {replacement!r} is not in doc2query.yaml{nearest(replacement, known)}")
        return replacement

    def doc2query(self, name: str) -> Any:
        """The fields of the entry of doc2query.yaml that replaces ``name``."""
        return self.catalogue.doc2query[self.doc2query_name(name)]

    def lineage(self, text: str) -> Lineage:
        """Read a lineage, with the backbone that replaces the named one, and check every name in it."""
        read = self._started(naming.parse(text))
        if reason := self.config.scale.absent.get(read.backbone):
            raise EncoreError(f"lineage {text!r} is not testable here: {reason} (`absent` of the run's `scale:`)")
        lineage = Lineage(self.config.scale.backbones.get(read.backbone, read.backbone), read.steps)
        if lineage.backbone not in self.catalogue.backbones:
            raise EncoreError(self._no_lineage(text, lineage))
        with explained(f"lineage {text!r}"):
            for step in lineage.steps:
                self.step(step)
        return lineage

    def _started(self, read: Lineage) -> Lineage:
        """The lineage with the beginning that replaces its own at this scale."""
        beginning = self.replaced_beginning(str(read))
        if beginning is None:
            return read
        start = naming.parse(self.config.scale.replace_prefix[beginning])
        return Lineage(start.backbone, (*start.steps, *read.steps[beginning.count("+") :]))

    def _no_lineage(self, text: str, read: Lineage) -> str:
        """What is wrong with a name that starts from no backbone."""
        backbones, systems = self.catalogue.backbones, self.catalogue.systems
        if read.backbone in systems:
            return f"{read.backbone!r} is a system, and only a lineage can be here: a model that is trained"
        if not read.steps:
            known = {*backbones, *systems}
            return f"lineage {text!r}: unknown backbone {text!r}, and no system either{nearest(text, known)}"
        return f"lineage {text!r}: unknown backbone {read.backbone!r}{nearest(read.backbone, backbones)}"

    def step(self, named: StepName) -> Step:
        """The fields of a step: catalogue, then scale, then the name's overrides."""
        if named not in self._steps:
            self._steps[named] = self._read_step(named)
        return self._steps[named]

    def _read_step(self, named: StepName) -> Step:
        scaled = _merged(self.step_layers(StepName(named.name)))
        known = read_step(scaled)
        own = self.config.scale.steps.get(named.name, {})
        if known.steps is not None and (idle := {key for key in EPOCHS if own.get(key) is not None}):
            raise EncoreError(
                f"scale.steps.{named.name}: {min(idle)} changes nothing, since it trains for {known.steps} steps; add "
                "`steps: null`"
            )
        for key, value in named.values().items():
            fields = type(known).model_fields
            if key not in fields:
                raise EncoreError(f"step {named.name!r} has no field {key!r}{nearest(key, fields)}")
            if isinstance(getattr(known, key), list | tuple | dict):
                raise EncoreError(f"step {named.name!r}: {key!r} is a list; give it a separate entry in steps.yaml")
            if getattr(known, key) == value:
                raise EncoreError(
                    f"step {named.name!r}: {key}={naming.spelled(value)} is its value already; leave it out"
                )
        step = read_step({**scaled, **named.values()})
        idle = named.values().keys() & {*EPOCHS}
        if step.steps is not None and idle:
            raise EncoreError(
                f"step {named.name!r}: {min(idle)} changes nothing, since it trains for {step.steps} steps; "
                "override `steps` instead"
            )
        nothing = named.values().keys() & (step.idle if isinstance(step, FinetuneStep) else set())
        if nothing:
            raise EncoreError(f"step {named.name!r}: {min(nothing)} changes nothing in such a step; leave it out")
        return step.model_copy(update={"collection": self.dataset(step.collection).name})

    def backbone(self, lineage: Lineage) -> Backbone:
        """The catalogue's entry that a lineage starts from, with what its checkpoint says of itself."""
        return self.named_backbone(lineage.backbone)

    def named_backbone(self, name: str) -> Backbone:
        """An entry of backbones.yaml at this scale, with what the user's folder behind it says (``published.py``).

        What starts from a lineage has the shape of the backbone that this starts from, where it leaves that open.
        """
        if name not in self._backbones:
            entry = self.catalogue.backbones[name]
            if entry.vocabulary and self.config.scale.vocabulary:
                entry = entry.model_copy(update={"vocabulary": self.config.scale.vocabulary})
            if entry.lineage:
                taken = entry.lineage.partition("+")[0]
                said = self.named_backbone(taken).model_fields_set - self.catalogue.backbones[taken].model_fields_set
                own = {field: getattr(self.named_backbone(taken), field) for field in said - entry.model_fields_set}
                self._backbones[name] = entry.model_copy(update=own)
            else:
                with explained(f"backbone {name!r}"):
                    self._backbones[name] = published.completed(entry)
        return self._backbones[name]

    def has_chance(self, system: str) -> bool:
        """True if a system's run depends on a seed: if anything in it was trained or drawn."""
        if system in self.catalogue.systems:
            return any(map(self.has_chance, self.system(system).parts))
        if self.missing_start(system):
            return True
        lineage = self.lineage(naming.split_index(system)[0])
        return bool(lineage.steps) or not self.backbone(lineage).is_given

    def lineages_of(self, system: str) -> list[Lineage]:
        """The lineages that a system consists of; a lineage is its own."""
        if system not in self.catalogue.systems:
            return [self.lineage(naming.split_index(system)[0])]
        return [each for part in self.system(system).parts for each in self.lineages_of(part)]

    def learned_from(self, lineage: Lineage) -> list[Lineage]:
        """A lineage, its steps' teachers, whose run they took negatives from, and what these have learned from."""
        found: dict[str, Lineage] = {}
        waiting = [lineage]
        while waiting:
            known = waiting.pop()
            if str(known) in found:
                continue
            found[str(known)] = known
            for count, named in enumerate(known.steps, 1):
                if isinstance(step := self.step(named), FinetuneStep):
                    own = Lineage(known.backbone, known.steps[:count])
                    taught = () if step.loss == "residual" else (*step.teachers, *step.batch_teachers)
                    waiting += [self.teacher_of(own, teacher) for teacher in taught]
                    with explained(f"step {named.name!r}, mined_by"):
                        waiting += self.lineages_of(step.mined_by) if step.mined_by else []
        return list(found.values())

    def teacher_of(self, lineage: Lineage, name: str) -> Lineage:
        """The lineage that a teacher of a lineage's last step is."""
        place = f"step {lineage.steps[-1].name!r}, teachers"
        with explained(place):
            teacher = lineage.parent if name == PARENT else self.lineage(name)
        if f"{teacher}+".startswith(f"{lineage}+"):
            raise EncoreError(f"{place}: {teacher} is made from {lineage}, which it would teach; name another lineage")
        return teacher

    def meaning(self, system: str) -> str:
        """A lineage with fields in place of its steps' names, and its index: the same for equal models."""
        name, index = naming.split_index(system)
        lineage = self.lineage(name)
        return f"{lineage.backbone} {[self.step(step).model_dump() for step in lineage.steps]} {index}"

    def canonical(self, system: str) -> str:
        """A system's name as this scale has it: a lineage with the backbone that replaces the named one."""
        if system in self.catalogue.systems or self.missing_start(system):
            return system
        lineage, index = naming.split_index(system)
        return str(self.lineage(lineage)) + (f"@{index}" if index else "")

    def lengths(self, lineage: Lineage) -> tuple[int, int]:
        """Tokens of a passage and of a query: those that the last step trained with, or all that the backbone reads."""
        if not lineage.steps:
            backbone = self.backbone(lineage)
            return backbone.length or backbone.max_length, backbone.query_length or backbone.max_length
        step = self.step(lineage.steps[-1])
        return step.length, step.query_length

    def passage_length(self, lineage: Lineage, dataset: str) -> int:
        """Tokens that a model reads of a dataset's texts: as many as it trained with, more where the dataset sets it.

        A model of passages that searches documents reads as much of them as its backbone can.
        """
        least = self.dataset(dataset).fields.length or 0
        longest = self.backbone(lineage).max_length
        return max(self.lengths(lineage)[0], min(least, longest))

    def scorer(self, lineage: Lineage) -> str:
        """How the model scores that a lineage ends with; only vectors can be searched."""
        last = self.step(lineage.steps[-1]) if lineage.steps else None
        return last.scorer if isinstance(last, FinetuneStep) else "vector"

    def system(self, name: str) -> System:
        """An entry of systems.yaml, as the scale has it."""
        if name not in self.catalogue.systems:
            raise EncoreError(f"system {name!r} is not in systems.yaml{nearest(name, self.catalogue.systems)}")
        return self._scaled("systems", name)

    def figure(self, name: str) -> Any:
        """An entry of a paper's figures.yaml, as the scale has it."""
        return self._scaled("figures", name)

    def _scaled(self, section: str, name: str) -> Any:
        entry, scaled = getattr(self.catalogue, section)[name], getattr(self.config.scale, section).get(name)
        if not scaled:
            return entry
        return checked(type(entry), {**entry.model_dump(by_alias=True), **scaled}, f"scale.{section}: {name}")

    def index_type(self, named: StepName) -> IndexType:
        """The fields of an index type: catalogue, then scale, then the name's overrides."""
        scaled = _merged(self.index_layers(StepName(named.name)))
        known_type: IndexType = read_index_type(scaled)
        for key, value in named.values().items():
            fields = type(known_type).model_fields
            if key not in fields:
                raise EncoreError(f"index {named.name!r} has no field {key!r}{nearest(key, fields)}")
            if getattr(known_type, key) == value:
                raise EncoreError(f"index {named.name!r}: {key}={naming.spelled(value)} is its value already; drop it")
        with explained(f"index {named}"):
            return read_index_type({**scaled, **named.values()})

    def index_layers(self, named: StepName) -> dict[str, dict[str, Any]]:
        """The fields of an index type by the place that sets them; a later place overrides an earlier one."""
        known, name = self.catalogue.indexes, named.name
        if name not in known:
            raise EncoreError(f"unknown index {name!r}, not in config/indexes.yaml{nearest(name, known)}")
        scaled = self.config.scale.indexes.get(name, {})
        at = self.config.at(f"scale.indexes.{name}")
        return {"config/indexes.yaml": known[name], at: scaled, "the lineage's name": named.values()}

    def step_layers(self, named: StepName) -> dict[str, dict[str, Any]]:
        """The fields of a step by the place that sets them; a later place overrides an earlier one."""
        name, scale = named.name, self.config.scale
        if name not in self.catalogue.steps:
            raise EncoreError(f"unknown step {name!r}{nearest(name, self.catalogue.steps)}")
        entry = self.catalogue.steps[name]
        return {
            "config/steps.yaml": entry,
            self.config.at(f"scale.{entry['kind']}"): getattr(scale, entry["kind"]),
            self.config.at(f"scale.steps.{name}"): scale.steps.get(name, {}),
            "the lineage's name": named.values(),
        }

    def _check_scale(self) -> None:
        scale = self.config.scale
        for section, replacements in (("datasets", scale.datasets), ("backbones", scale.backbones)):
            if both := sorted(scale.absent.keys() & replacements.keys()):
                raise EncoreError(
                    f"scale.absent: {both[0]!r} has a replacement under `{section}`; leave one of the two out"
                )
        for name, step in self.catalogue.steps.items():
            with explained(f"scale of {step['kind']} step {name!r}"):
                read_step(_merged(self.step_layers(StepName(name))))
        for name in scale.systems:
            self.system(name)
        for name in scale.figures:
            self.figure(name)
        for name, fields in scale.indexes.items():
            with explained(f"scale.indexes.{name}"):
                read_index_type({**self.catalogue.indexes[name], **fields})
        for name in self.catalogue.systems:
            self._refuse_circle(name, ())

    def _refuse_circle(self, name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise EncoreError(f"system {name!r} contains itself ({' of '.join([*above, name])}); correct systems.yaml")
        if name in self.catalogue.systems:
            for part in self.system(name).parts:
                self._refuse_circle(part, (*above, name))


def _merged(layers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {key: value for fields in layers.values() for key, value in fields.items()}
