"""The plan of runs: which artifacts a system's answer to the queries of a split is made of."""

from collections.abc import Callable
from typing import Any

from encore.config.lineage import split_index
from encore.config.validation import explained
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Topics
from encore.plan.artifacts import bm25, dense, fusion, indexed, latency, rerank
from encore.plan.artifacts.models import Models

# How the run of each kind of system is planned: (plan, name, fields, seed, dataset, topics).
KINDS: dict[str, Callable[..., Artifact]] = {"bm25": bm25.run, "fusion": fusion.run, "rerank": rerank.run}


class Runs(Models):
    """Artifacts of retrieval."""

    def run(self, system: str, seed: int | None, dataset: str, topics: Topics) -> Artifact:
        """A system's run over the queries of a split.

        Args:
            system: an entry of systems.yaml, or a lineage, perhaps with the index that it is searched in.
            seed: None where the system has no chance in it.

        Raises:
            EncoreError: a lineage without a seed, or one whose model gives texts no single vector.
        """
        if system in self.catalogue.systems:
            fields: Any = self.system(system)
            place = f"system {system!r}"
            return explained(lambda run: run(self, system, fields, seed, dataset, topics), KINDS[fields.kind], place)
        if seed is None:
            raise EncoreError(f"system {system!r} is trained, so its run needs a seed")
        name, index = split_index(system)
        lineage = self.lineage(name)
        if (scorer := self.scorer(lineage)) != "vector":
            raise EncoreError(
                f"lineage {system!r} ends with a {scorer} scorer, whose texts have no single vector to search; "
                "rank another system's results again with it: an entry of kind `rerank` in systems.yaml"
            )
        if index is not None:
            return indexed.run(self, lineage, index, seed, dataset, topics)
        return dense.run(self, lineage, seed, dataset, topics)

    def latency(self, system: str, seed: int | None, dataset: str, split: str) -> Artifact | None:
        """What one query takes in a system; see ``latency.py``."""
        return latency.latency(self, system, seed, dataset, split)

    def has_chance(self, system: str) -> bool:
        """Whether a system's run depends on a seed: whether anything in it was trained."""
        if system not in self.catalogue.systems:
            return True
        return any(map(self.has_chance, self.system(system).parts))

    def canonical(self, system: str) -> str:
        """A system's name as this scale has it: a lineage with the backbone that stands for the named one."""
        if system in self.catalogue.systems or self.missing_start(system):
            return system
        lineage, index = split_index(system)
        return str(self.lineage(lineage)) + (f"@{index}" if index else "")
