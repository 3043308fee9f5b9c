"""The plan of models: what each step of a lineage makes of the one before, and the negatives that it learns from."""

from collections.abc import Callable
from typing import Any

from encore import objectives
from encore.catalogue import Catalogue
from encore.config import Backbone, FinetuneStep, PretrainStep, RunConfig, Step
from encore.errors import EncoreError
from encore.lineage import Lineage
from encore.planning import teachers
from encore.planning.artifact import Artifact, Topics, names, required
from encore.planning.texts import Texts


class Models(Texts):
    """Artifacts of training."""

    def __init__(self, config: RunConfig, catalogue: Catalogue, impl: Callable[[str], int]) -> None:
        super().__init__(config, catalogue, impl)
        self._models: dict[tuple[str, int], Artifact] = {}
        self._begun: set[tuple[str, int]] = set()

    def run(self, system: str, seed: int | None, dataset: str, topics: Topics) -> Artifact:
        """A system's run, which negatives are drawn from; see ``runs.py``."""
        raise NotImplementedError

    def backbone(self, lineage: Lineage) -> Backbone:
        """The catalogue's entry that a lineage starts from."""
        return self.catalogue.backbones[lineage.backbone]

    def model(self, lineage: Lineage, seed: int) -> Artifact:
        """The model that a lineage ends with, under one seed.

        Raises:
            EncoreError: it would be made from itself.
        """
        key = (str(lineage), seed)
        if key in self._begun:
            raise EncoreError(f"{lineage} waits for a model that is made from it; name another lineage in its steps")
        if key not in self._models:
            self._begun.add(key)
            try:
                made = self._step_model(lineage, seed) if lineage.steps else self._start_model(lineage, seed)
            finally:
                self._begun.remove(key)
            self._models[key] = made
        return self._models[key]

    def negatives(self, parent: Lineage, step: FinetuneStep, seed: int) -> Artifact | None:
        """Negatives for a fine-tuning step, none where its batches are enough."""
        if step.negatives == "none":
            return None
        return self.drawn("bm25" if step.negatives == "bm25" else step.mined_by or str(parent), step, seed)

    def drawn(self, system: str, step: FinetuneStep, seed: int) -> Artifact:
        """Negatives by a step's recipe from a system's run over the training queries."""
        topics = Topics("train", step.depth, step.queries, step.sample)
        run = self.run(system, seed, step.collection, topics)
        inputs = {"run": run, "collection": self.collection(step.collection)}
        recipe = {"depth": step.depth, "keep": step.keep, "exclude_judged": step.exclude_judged, "seed": seed}
        recipe |= {"first_rank": step.first_rank} if step.first_rank > 1 else {}
        spec = {"impl": self.impl("negatives"), "split": topics.split, **recipe, **names(inputs)}
        return self.make(
            "negatives", f"negatives/{run.owner}/{self.dataset_name(step.collection)}.{topics}", spec, inputs
        )

    def _start_model(self, lineage: Lineage, seed: int) -> Artifact:
        backbone = self.backbone(lineage)
        inputs = {"tokenizer": self.tokenizer(backbone)}
        if backbone.start == "lsa":
            inputs["tokens"] = self.tokens(required(backbone.collection, "collection", "an LSA start"), backbone)
        fields = backbone.model_dump(mode="json", exclude_defaults=True)
        spec = {"impl": self.impl("start"), "backbone": fields, **self.chance(seed), **names(inputs)}
        return self.make("start", _folder(lineage, seed), spec, inputs)

    def _step_model(self, lineage: Lineage, seed: int) -> Artifact:
        step = self.step(lineage.steps[-1])
        inputs = {
            "tokens": self.tokens(step.collection, self.backbone(lineage)),
            "weights": self.model(self._weights(lineage, step), seed),
        }
        stage = "finetune"
        impl: Any = self.impl(stage)
        if isinstance(step, PretrainStep):
            stage = f"pretrain.{step.objective}"
            impl = [self.impl("pretrain"), self.impl(stage)]
            inputs |= self._prepared(step, inputs)
        if isinstance(step, FinetuneStep):
            inputs["collection"] = self.collection(step.collection)
            negatives = self.negatives(lineage.parent, step, seed)
            inputs |= {"negatives": negatives} if negatives else {}
            inputs |= teachers.taught(self, lineage, seed, negatives)
        # Whose run negatives come from and who teaches is in the folders' names, whatever the lineage is called here.
        fields = step.model_dump(mode="json", exclude_defaults=True, exclude={"mined_by", "teachers", "teacher_scores"})
        spec = {"impl": impl, "step": fields, **self.chance(seed), **names(inputs)}
        return self.make(stage, _folder(lineage, seed), spec, inputs)

    def _prepared(self, step: PretrainStep, inputs: dict[str, Artifact]) -> dict[str, Artifact]:
        """What the objective computes from the texts before any training, if anything."""
        preparation = objectives.load(step.objective).preparation(step)
        if preparation is None:
            return {}
        used = {role: inputs[role] for role in (["tokens", "weights"] if preparation.reads_weights else ["tokens"])}
        impl = [self.impl("prepare"), self.impl(f"pretrain.{step.objective}")]
        fields = {"objective": step.objective, "preparation": preparation.model_dump(mode="json")}
        spec = {"impl": impl, **fields, **names(used)}
        return {"prepared": self.make("prepare", f"prepared/{preparation.name}-{step.collection}", spec, used)}

    def _weights(self, lineage: Lineage, step: Step) -> Lineage:
        """Whose weights the last step goes on from: the parent's, or the last pre-trained ancestor's."""
        parent = lineage.parent
        if isinstance(step, FinetuneStep) and step.start == "pretrained":
            while parent.steps and isinstance(self.step(parent.steps[-1]), FinetuneStep):
                parent = parent.parent
        return parent


def _folder(lineage: Lineage, seed: int) -> str:
    return f"models/{lineage}-s{seed}"
