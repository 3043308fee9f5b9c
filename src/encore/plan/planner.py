"""Planning: artifacts are named by the digest of their spec, remembered, and may plan each other."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from encore import stages
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec, Topics, names
from encore.plan.lineage import Lineage
from encore.plan.resolver import Resolver
from encore.storage.files import digest

LONGEST_NAME = 120  # of a folder with its digest; `@` and an index may follow, and a path takes 255

PlanModel = Callable[["Planner", Lineage, int], Artifact]
PlanRun = Callable[["Planner", str, int | None, str, Topics], Artifact]


class Planner:
    """What the kinds of artifacts (``artifacts/``) use to plan themselves and what they are made from.

    A kind calls the functions of another one. Two are methods here, since they need each other in a circle: a model
    learns from negatives, which come from a system's run, which another model gives.
    """

    def __init__(self, resolve: Resolver, model: PlanModel, run: PlanRun) -> None:
        """
        Args:
            resolve: what names mean under the run's configuration.
            model: plans the model that a lineage ends with, under one seed.
            run: plans a system's run over the queries of a split.
        """
        self.resolve, self.config, self.catalogue = resolve, resolve.config, resolve.catalogue
        self.made: dict[str, Artifact] = {}  # by folder; what an artifact is made from comes before it
        self._plan_model, self._plan_run = model, run
        self.collections: dict[str, Artifact] = {}  # by the dataset's own name; nearly everything is made from one
        self._models: dict[tuple[str, int], Artifact] = {}
        self._runs: dict[tuple[str, int | None, str, Topics], Artifact] = {}
        self._begun: set[tuple[str, int]] = set()

    def model(self, lineage: Lineage, seed: int) -> Artifact:
        """The model that a lineage ends with, under one seed."""
        key = (str(lineage), seed)
        if key in self._begun:
            raise EncoreError(f"{lineage} waits for a model that is made from it; name another lineage in its steps")
        if key not in self._models:
            self._begun.add(key)
            try:
                self._models[key] = self._plan_model(self, lineage, seed)
            finally:
                self._begun.remove(key)
        return self._models[key]

    def run(self, system: str, seed: int | None, dataset: str, topics: Topics) -> Artifact:
        """A system's run over the queries of a split; see ``artifacts/systems.py``."""
        key = (system, seed, dataset, topics)
        if key not in self._runs:
            self._runs[key] = self._plan_run(self, system, seed, dataset, topics)
        return self._runs[key]

    def make(
        self,
        stage: str,
        stem: str,
        fields: Mapping[str, Any],
        inputs: dict[str, Artifact],
        source: str | None = None,
        details: Mapping[str, Any] = MappingProxyType({}),
    ) -> Artifact:
        """The artifact that a stage makes, in a folder named by a stem and the digest of all that decides it.

        Args:
            fields: of the stage's ``Spec``.
            source: the user's file or folder that is read.
            details: what else the job is told, which decides nothing.
        """
        name, spec = stages.load(stage).planned(fields, names(inputs))
        return self.keep(Artifact(name, f"results/{stem}-{digest(spec)}", spec, inputs, source, details))

    def keep(self, artifact: Artifact) -> Artifact:
        """Remember an artifact; of equal ones the first."""
        if len(artifact.name) > LONGEST_NAME:
            raise EncoreError(
                f"the folder name {artifact.name!r} has {len(artifact.name)} characters, {LONGEST_NAME} are allowed; "
                "give the step an entry of its own in steps.yaml instead of overrides"
            )
        return self.made.setdefault(artifact.folder, artifact)

    def numerics(self) -> dict[str, Any]:
        """The numerical settings of this run, as specs have them, but for those of vectors and of trainings alone."""
        numerics = self.config.numerics
        left_out = {"vectors", "compiled"} | ({*()} if numerics.deterministic else {"deterministic"})
        return numerics.model_dump(exclude=left_out)

    def chance(self, seed: int) -> Spec:
        """What a training's result depends on, apart from its step and its inputs."""
        return {"seed": seed, "numerics": self.numerics()}
