"""The plan: every artifact that a configuration makes, with its spec, its folder and what it is made from.

A folder's name ends with the digest of its spec, and a spec names the folders it is made from: so a name identifies
everything upstream of it. What names mean is in ``resolver.py``, each kind of artifact in a file of ``artifacts/``.
"""

from encore.config.run import RunConfig
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan import folders, index
from encore.plan.artifact import Artifact
from encore.plan.artifacts import collections as texts
from encore.plan.artifacts import inspections, models, systems
from encore.plan.artifacts import scores as measured
from encore.plan.catalogue import Catalogue
from encore.plan.planner import Planner
from encore.plan.resolver import Resolver


class Plan(Planner):
    """The plan of one run: every artifact that its configuration makes from the catalogue.

    What others ask for by name is a method: a collection, its tokens, scores, latency and inspections (``artifacts/``).
    """

    def __init__(self, config: RunConfig, catalogue: Catalogue) -> None:
        super().__init__(Resolver(config, catalogue), models.model, systems.run)

    collection, tokens = texts.collection, texts.tokens
    scores, latency = measured.scores, measured.latency
    inspect_texts, inspect_candidates = inspections.of_texts, inspections.of_candidates
    inspect_vectors, masked_loss, pairs = inspections.of_vectors, inspections.masked_loss, inspections.pairs

    def find(self, folder: str) -> Artifact:
        """The artifact in a folder: planned already, named by the folder itself, or in the index of an earlier plan."""
        if folder not in self.made:
            folders.plan_named(self, folder)
        if folder not in self.made and (earlier := index.read().get(folder)):
            for artifact in earlier.ancestors():
                self.keep(artifact)
        if folder not in self.made:
            raise EncoreError(
                f"{folder} is nothing that this configuration makes{nearest(folder, self.made)}; "
                "`encore targets` prints what a lineage or a system has"
            )
        return self.made[folder]
