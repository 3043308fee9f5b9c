"""The plan: every artifact that a configuration makes, with its spec, its folder and what it is made from.

A folder's name ends with the digest of its spec, and a spec names the folders it is made from: so a name identifies
everything upstream of it. What names mean is in ``resolver.py``, each kind of artifact in a file of ``artifacts/``.
"""

from encore.config.entries import Backbone
from encore.config.lineage import Lineage
from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan import folders, index
from encore.plan.artifact import Artifact, Spec
from encore.plan.artifacts import inspections, models, scores, systems
from encore.plan.artifacts.collections import collection, tokens
from encore.plan.catalogue import Catalogue
from encore.plan.planner import Planner
from encore.plan.resolver import Resolver
from encore.plan.stages import impl


class Plan(Planner):
    """The plan of one run: every artifact that its configuration makes from the catalogue."""

    def __init__(self, config: RunConfig, catalogue: Catalogue) -> None:
        super().__init__(Resolver(config, catalogue), impl, models.model, systems.run)

    def collection(self, dataset: str) -> Artifact:
        """The dataset that has a name at this scale, in the common form."""
        return collection(self, dataset)

    def tokens(self, dataset: str, backbone: Backbone) -> Artifact:
        """A dataset's texts as token ids of a backbone's vocabulary."""
        return tokens(self, dataset, backbone)

    def scores(self, system: str, seed: int | None, dataset: str, split: str) -> Artifact:
        """The measures of a system's run; see ``artifacts/scores.py``."""
        return scores.scores(self, system, seed, dataset, split)

    def latency(self, system: str, seed: int | None, dataset: str, split: str) -> Artifact | None:
        """The latency of a system; see ``artifacts/scores.py``."""
        return scores.latency(self, system, seed, dataset, split)

    def inspect_texts(self, lineage: Lineage, seed: int, dataset: str, what: Spec) -> Artifact:
        """A model's outputs on texts; see ``artifacts/inspections.py``."""
        return inspections.of_texts(self, lineage, seed, dataset, what)

    def inspect_candidates(self, lineage: Lineage, seed: int, dataset: str, what: Spec) -> Artifact:
        """A query among the candidates of a model's run; see ``artifacts/inspections.py``."""
        return inspections.of_candidates(self, lineage, seed, dataset, what)

    def find(self, folder: str) -> Artifact:
        """The artifact in a folder: planned already, named by the folder itself, or in the index of an earlier plan.

        Raises:
            EncoreError: nothing in this run's configuration makes it; the message names the nearest one.
        """
        if folder not in self.made:
            folders.plan_named(self, folder)
        if folder not in self.made and (earlier := index.read().get(folder)):
            for artifact in earlier.ancestors():
                self.keep(artifact)
        if folder not in self.made:
            raise EncoreError(folders.unknown(self, folder))
        return self.made[folder]
