"""The plan of texts: collections, vocabularies and token stores; and how any artifact is named and remembered."""

from collections.abc import Callable
from typing import Any

from encore.config.run import Backbone, RunConfig
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec, names, required
from encore.plan.artifacts import fetched
from encore.plan.catalogue import Catalogue
from encore.plan.resolution import Resolution
from encore.storage.files import digest

LONGEST_NAME = 100


class Texts(Resolution):
    """A run's configuration over the catalogue, and every artifact that has been asked of it."""

    def __init__(self, config: RunConfig, catalogue: Catalogue, impl: Callable[[str], int]) -> None:
        super().__init__(config, catalogue)
        self.impl = impl  # the declared version of a stage
        self.made: dict[str, Artifact] = {}  # by folder; made from come before made of
        self._collections: dict[str, Artifact] = {}

    def collection(self, dataset: str) -> Artifact:
        """A dataset in the common form."""
        return self.named_collection(self.dataset_name(dataset))

    def named_collection(self, name: str, above: tuple[str, ...] = ()) -> Artifact:
        """A dataset by its own name: what it is made `of` is the named one, whatever stands for that at this scale."""
        if name in above:
            raise EncoreError(f"dataset {name!r} is made of itself ({' of '.join([*above, name])}); mend `of`")
        if name not in self._collections:
            fields = self.dataset_fields(name)
            stage, base = f"collection.{fields.kind}", getattr(fields, "of", None)
            inputs = {"collection": self.named_collection(base, (*above, name))} if base is not None else {}
            for number, part in enumerate(getattr(fields, "parts", ())):
                inputs[f"part.{number}"] = self.named_collection(part, (*above, name))
            inputs |= fetched.of_dataset(self, name, fields)
            spec = {"impl": self.impl(stage), **fields.resolve(), **names(inputs)}
            source = getattr(fields, "path", None)
            self._collections[name] = self.make(stage, f"collections/{name}", spec, inputs, source)
        return self._collections[name]

    def tokenizer(self, backbone: Backbone) -> Artifact:
        """The vocabulary that a backbone reads: a checkpoint's own, or one trained on its texts."""
        impl = self.impl("tokenizer")
        if backbone.start == "checkpoint":
            given = fetched.of_backbone(self, backbone)
            return self.make(
                "tokenizer", "tokenizers/checkpoint", {"impl": impl, **given.spec}, given.inputs, given.folder
            )
        texts = self.collection(required(backbone.collection, "collection", "a backbone without a checkpoint"))
        size = required(backbone.vocabulary, "vocabulary", "a backbone without a checkpoint")
        spec = {"impl": impl, "vocabulary": size, "collection": texts.name}
        return self.make("tokenizer", f"tokenizers/wordpiece-{size}", spec, {"collection": texts})

    def tokens(self, dataset: str, backbone: Backbone) -> Artifact:
        """A dataset's texts as token ids of a backbone's vocabulary."""
        inputs = {"collection": self.collection(dataset), "tokenizer": self.tokenizer(backbone)}
        spec = {"impl": self.impl("tokens"), **names(inputs)}
        return self.make("tokens", f"tokens/{self.dataset_name(dataset)}", spec, inputs)

    def make(
        self, stage: str, stem: str, spec: Spec, inputs: dict[str, Artifact], source: str | None = None
    ) -> Artifact:
        """The artifact of a spec, in a folder named by a stem and the spec's digest."""
        return self.keep(Artifact(stage, f"results/{stem}-{digest(spec)}", spec, inputs, source))

    def keep(self, artifact: Artifact) -> Artifact:
        """Remember an artifact; of equal ones the first."""
        if len(artifact.name) > LONGEST_NAME:
            raise EncoreError(
                f"the folder name {artifact.name!r} has {len(artifact.name)} characters, {LONGEST_NAME} are allowed; "
                "give the step an entry of its own in steps.yaml instead of overrides"
            )
        return self.made.setdefault(artifact.folder, artifact)

    def numerics(self) -> dict[str, Any]:
        """How this run computes, as specs say it."""
        return self.config.numerics.model_dump()

    def chance(self, seed: int) -> Spec:
        """What a training's result depends on beside its step and its inputs."""
        return {"seed": seed, "numerics": self.numerics()}
