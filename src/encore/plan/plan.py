"""The plan: every artifact that a configuration makes, with its spec, its folder and what it is made from.

A folder's name ends with the digest of its spec, and a spec names the folders it is made from: so a name stands for
everything upstream of it. What the names mean is in ``resolution.py``, how each kind of artifact is planned in
``artifacts/``; here are scores, and finding an artifact by its folder.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import product

from encore.config.finetuning import FinetuneStep
from encore.config.lineage import Lineage, StepName
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Topics, names
from encore.plan.artifacts import fetched, negatives, teachers
from encore.plan.artifacts.runs import Runs

_FOLDER = re.compile(r"(?P<system>[a-z0-9_.=~+-]+?)(?:-s(?P<seed>\d+))?-[0-9a-f]{8}(?P<index>@[a-z0-9_.=~-]+)?")


class Plan(Runs):
    """What one run configuration makes of the catalogue."""

    asked: Sequence[str] = ()  # folders that a person asked for: what they are made from may be known by nothing else

    def scores(self, system: str, seed: int | None, dataset: str, split: str) -> Artifact:
        """The measures of a system's run, for every split that shares the run's queries.

        ``seed`` is None for a system without chance in it.

        Raises:
            EncoreError: the system has learned from queries of that split, or may have.
        """
        if not self.tested_fairly(system, dataset, split):
            name = self.dataset_name(dataset)
            if self.dataset(dataset).zero_shot:
                raise EncoreError(f"{system} learned from queries of {name!r} or its like; it is for zero-shot search")
            raise EncoreError(
                f"{system} learned from another draw of {name!r}, whose training may hold queries of {split!r}"
            )
        splits = self.dataset(dataset).splits
        topics = splits[split].topics or split
        run = self.run(system, seed, dataset, Topics(topics, self.config.depth))
        measures = {
            name: kept.measures for name, kept in splits.items() if (kept.topics or name) == topics and kept.measures
        }
        inputs = {"run": run, "collection": self.collection(dataset)}
        spec = {"impl": self.impl("evaluate"), "splits": measures, **names(inputs)}
        by_answers = sorted(name for name in measures if splits[name].judged_by == "answers")
        spec |= {"judged_by_answers": by_answers} if by_answers else {}
        spec |= {"ignore_identical_ids": True} if self.dataset(dataset).ignore_identical_ids else {}
        folder = f"scores/{run.owner}/{self.dataset_name(dataset)}.{topics}"
        return self.make("evaluate", folder, spec, inputs)

    # Finding

    def models_after(self, kind: str) -> str:
        """A regular expression of the folders of models whose last step is of a kind."""
        last = _alternatives(name for name, step in self.catalogue.steps.items() if step["kind"] == kind)
        return rf"[a-z0-9_.=~+-]*\+{last}(?:~[a-z0-9_.=~-]*)?-s\d+-[0-9a-f]{{8}}"

    def lineages(self) -> str:
        """A regular expression of the folders of models and of what they answer: of no system's."""
        return rf"{_alternatives(self.catalogue.backbones)}(?:\+[a-z0-9_.=~+-]+)?-s\d+-[0-9a-f]{{8}}"

    def systems(self, kind: str) -> str:
        """A regular expression of the folders of systems that are no lineages, of a kind."""
        names = _alternatives(name for name, system in self.catalogue.systems.items() if system.kind == kind)
        return rf"{names}(?:-s\d+)?-[0-9a-f]{{8}}"

    def find(self, folder: str) -> Artifact:
        """The artifact in a folder, declared or named by a lineage.

        Raises:
            EncoreError: no configuration of this run makes it; says what is near.
        """
        if folder not in self.made:
            self._explore(folder)
        if folder not in self.made:
            self._explore_asked()
        if folder not in self.made:
            self._explore_systems()
        if folder not in self.made:
            raise EncoreError(f"{folder} is nothing that this configuration makes{nearest(folder, self.made)}")
        return self.made[folder]

    def _explore(self, folder: str) -> None:
        """Make the plan of a system that only the folder's name knows, and of all that follows from it."""
        owner = folder.split("/")[2] if folder.count("/") >= 2 else ""
        fetched.explore(self, folder)
        if folder.startswith(f"results/teachers/{teachers.PUBLISHED}/"):
            teachers.explore(self, None, self.config.seeds[0])
        named = _FOLDER.fullmatch(owner)
        if named is None:
            return
        system, seed = named["system"], int(named["seed"]) if named["seed"] else None
        if system not in self.catalogue.systems:
            if seed is None:
                return
            self._explore_lineage(self.lineage(system), seed, owner.partition("@")[0])
            if folder.startswith("results/teachers/"):
                teachers.explore(self, self.lineage(system), seed)
            if self.scorer(self.lineage(system)) != "vector":
                return
        system += named["index"] or ""
        for dataset in self.datasets_in_use():
            for split, fields in self._datasets[dataset].splits.items():
                if fields.measures and self.tested_fairly(system, dataset, split):
                    with self._what_can_be_had(system):
                        self.scores(system, seed, dataset, split)
                        self.latency(system, seed, dataset, fields.topics or split)

    def _what_can_be_had(self, system: str) -> AbstractContextManager[None]:
        """A fusion, say, cannot choose its weight on every dataset; where it cannot, nothing is planned."""
        return suppress(EncoreError) if system in self.catalogue.systems else nullcontext()

    def _explore_asked(self) -> None:
        """Make the plan of what people asked for: no name of BM25's run over fifty queries says which step takes it."""
        for folder in self.asked:
            with suppress(EncoreError):  # asked for under another configuration
                self._explore(folder)

    def _explore_systems(self) -> None:
        """Make the plan of every system: runs that choose a fusion's weight, say, are made on the way to one alone."""
        for name in self.catalogue.systems:
            for seed, dataset in product(self.config.seeds, self.datasets_in_use()):
                for split, fields in self._datasets[dataset].splits.items():
                    if fields.measures:
                        with suppress(EncoreError):  # this one cannot be had here, and is not what is looked for
                            self.scores(name, seed, dataset, split)

    def _explore_lineage(self, lineage: Lineage, seed: int, folder: str) -> None:
        """Make the plan of a lineage's model, and of the negatives that are mined with it."""
        model = self.model(lineage, seed)
        if model.name != folder:
            raise EncoreError(f"{folder} was made by another configuration; under this one the lineage is {model.name}")
        if self.scorer(lineage) != "vector":
            return
        for step in self._mining():
            if step.mined_by is None or self.lineage(step.mined_by) == lineage:
                negatives.drawn(self, str(lineage), step, seed)

    def _mining(self) -> Iterator[FinetuneStep]:
        """The steps that this run can take and that learn from mined negatives."""
        for name in self.catalogue.steps:
            if self.has_texts(name) and isinstance(step := self.step(StepName(name)), FinetuneStep) and step.mines:
                yield step


def _alternatives(names: Iterable[str]) -> str:
    return "(?:" + "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) + ")"
