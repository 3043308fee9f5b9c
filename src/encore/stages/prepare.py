"""Compute what an objective needs of a collection before any training: document frequencies, word sets."""

from pathlib import Path
from typing import Any

from encore import objectives
from encore.errors import EncoreError
from encore.stages.base import Facts, Fields, Job, Roles
from encore.stages.needs import PLAIN, Needs, Size
from encore.stages.of_objective import ObjectiveStage


class Spec(Fields):
    """The objective, and its fields of preparation."""

    objective: str
    preparation: dict[str, Any]

    @property
    def variant(self) -> str:
        """The objective."""
        return self.objective


class Inputs(Roles):
    """The texts' tokens, and the attention to them where the objective reads it."""

    tokens: Path
    attention: Path | None = None


class Prepare(ObjectiveStage[Spec, Inputs]):
    """Each objective that prepares something says how, by ``Prepares``."""

    def needs(self, size: Size) -> Needs:
        tokens = size.collection.chunks(self.spec.preparation).tokens
        seconds = tokens / 500e3  # 850,000 in each of 16 processes, of word sets
        return Needs(PLAIN + 2.5 * tokens, 0.9 * tokens, core_seconds=seconds, cores=size.cores)

    def make(self, job: Job) -> Facts:
        from encore.data.tokens import TokenStore

        prepares = objectives.load(self.spec.objective).Prepares
        if prepares is None:
            raise EncoreError(f"objective {self.spec.objective!r} has nothing to prepare")
        store, preparation = TokenStore(self.inputs.tokens), prepares(**self.spec.preparation)
        return {"results": preparation.write(store, job.output, self.inputs.attention, job.threads)}


STAGE = Prepare
