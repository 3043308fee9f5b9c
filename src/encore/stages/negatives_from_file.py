"""Sample negatives for training queries from a file in which others have listed them."""

from collections.abc import Collection as Several
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from encore.config.datasets import Ignored
from encore.errors import EncoreError
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import PLAIN, Needs, Size

if TYPE_CHECKING:
    from encore.finetuning.negatives.systems_file import PublishedScores

ENDINGS = {"triples": (".tsv", ".tsv.gz", ".txt", ".txt.gz"), "systems": (".jsonl", ".jsonl.gz")}
SCORES = (".pkl", ".pkl.gz")


class Spec(Fields, Ignored):
    """The form of the file, which queries, and the recipe: of triples ``keep`` and ``seed``, of systems the others."""

    form: Literal["triples", "systems"]
    content: str | None = None  # the digest of the user's file
    exclude_judged: bool
    split: str
    queries: int | None
    sample: int
    keep: int = 0
    seed: int = 0
    margin: float = 0.0
    per_system: int = 0


class Inputs(Roles):
    """The collection, and the folder of the file where it was fetched."""

    collection: Path
    fetched: Path | None = None


class NegativesFromFile(Stage[Spec, Inputs]):
    """A file of the negatives of each query."""

    impl = 2

    def needs(self, size: Size) -> Needs:
        return Needs(PLAIN + 13_000 * size.queries, disk=180 * size.queries)

    def make(self, job: Job) -> Facts:
        from encore.data.collection import Collection, topics
        from encore.data.judged import no_negatives
        from encore.finetuning.negatives import mining
        from encore.finetuning.negatives.systems_file import from_systems
        from encore.finetuning.negatives.triples import NegativesRequest, from_triples
        from encore.storage.document_ids import DocIds

        spec, collection, path = self.spec, Collection(self.inputs.collection), self._file(job)
        asked = set(topics(collection, spec.split, spec.queries, spec.sample))
        ids = (row["_id"] for row in collection.corpus())
        documents: Any = dict.fromkeys(ids) if spec.form == "systems" else DocIds.of(ids)  # one by one: a dict
        excluded = no_negatives(collection, spec.split, spec)
        wanted = NegativesRequest(asked, collection.qrels(spec.split), documents, spec.exclude_judged, excluded)
        if spec.form == "systems":
            scores = self._scores(asked)
            drawn, counts = from_systems(path, wanted, scores, margin=spec.margin, per_system=spec.per_system)
        else:
            drawn, counts = from_triples(path, wanted, collection, keep=spec.keep, seed=spec.seed)
        lines = f"{counts.unknown} lines of another collection"
        print(f"negatives: {counts.kept} for {counts.queries} queries, {lines}")
        return {"results": mining.write_negatives(job.output, drawn, counts)}

    def _file(self, job: Job) -> Path:
        """The file, which is the user's or was fetched."""
        from encore.data import unpacked
        from encore.storage.files import contents

        if self.inputs.fetched:
            return unpacked.file(self.inputs.fetched, ENDINGS[self.spec.form])
        assert job.source is not None
        if contents({"file": job.source})["file"] != self.spec.content:
            raise EncoreError(f"{job.source} is not what was planned with: it has changed since; run snakemake again")
        return job.source

    def _scores(self, queries: Several[str]) -> "PublishedScores | None":
        """The scores that a source has in another file, if it has."""
        from encore.data import unpacked
        from encore.finetuning.negatives.systems_file import PublishedScores

        folder = self.inputs.fetched
        if folder and any(path.name.endswith(SCORES) for path in unpacked.files(folder)):
            return PublishedScores.read(unpacked.file(folder, SCORES), queries)
        return None


STAGE = NegativesFromFile
