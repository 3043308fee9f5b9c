"""The plan of models: what each step of a lineage makes of the one before."""

from collections.abc import Callable
from typing import Any

from encore import objectives
from encore.config.datasets import draw_of
from encore.config.finetuning import FinetuneStep
from encore.config.lineage import Lineage, split_index
from encore.config.run import Backbone, PretrainStep, RunConfig, Step
from encore.config.validation import explained, nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Topics, names, required
from encore.plan.artifacts import fetched, negatives, teachers
from encore.plan.artifacts.texts import Texts
from encore.plan.catalogue import Catalogue

# Whose run or which file negatives come from, and who teaches: the folders' names say it, however it is called here.
NAMED_ELSEWHERE = {"mined_by", "triples", "systems_file", "teachers", "teacher_scores"}


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

    def _start_model(self, lineage: Lineage, seed: int) -> Artifact:
        backbone = self.backbone(lineage)
        inputs = {"tokenizer": self.tokenizer(backbone)}
        if backbone.start == "lsa":
            inputs["tokens"] = self.tokens(required(backbone.collection, "collection", "an LSA start"), backbone)
        fields = backbone.model_dump(mode="json", exclude={"checkpoint", "revision"})
        spec = {"impl": self.impl("start"), "backbone": fields, **self.chance(seed), **names(inputs)}
        if backbone.start != "checkpoint":
            return self.make("start", _folder(lineage, seed), spec, inputs)
        given = fetched.of_backbone(self, backbone)
        return self.make("start", _folder(lineage, seed), spec | given.spec, inputs | given.inputs, given.folder)

    def _step_model(self, lineage: Lineage, seed: int) -> Artifact:
        step = self.step(lineage.steps[-1])
        inputs = {
            "tokens": self.tokens(step.collection, self.backbone(lineage)),
            "weights": self.model(self._weights(lineage, step), seed),
        }
        self._check_states(lineage, step)
        self._check_length(lineage, step)
        stage = "finetune"
        impl: Any = self.impl(stage)
        if isinstance(step, PretrainStep):
            stage = f"pretrain.{step.objective}"
            impl = [self.impl("pretrain"), self.impl(stage)]
            inputs |= self._prepared(step, inputs)
        if isinstance(step, FinetuneStep):
            self._check_splits(lineage, step)
            self._check_ancestry(lineage, step)
            inputs["collection"] = self.collection(step.collection)
            drawn = negatives.planned(self, lineage.parent, step, seed)
            inputs |= {"negatives": drawn} if drawn else {}
            inputs |= teachers.teacher_outputs(self, lineage, seed, drawn)
        fields = step.model_dump(mode="json", exclude=NAMED_ELSEWHERE)
        spec = {"impl": impl, "step": fields, **self.chance(seed), **names(inputs)}
        return self.make(stage, _folder(lineage, seed), spec, inputs)

    def _check_states(self, lineage: Lineage, step: Step) -> None:
        """Refuse what needs states of tokens where the backbone is a bag of words."""
        if self.backbone(lineage).architecture != "bow-mlp":
            return
        where = f"{lineage}: {lineage.backbone!r} is a bag of words and has no states of tokens"
        if isinstance(step, PretrainStep) and objectives.load(step.objective).needs_states(step):
            raise EncoreError(f"{where}, which {step.objective} learns from; take ict, bfs, wlp or ict-bfs-wlp")
        if isinstance(step, FinetuneStep) and (step.scorer != "vector" or step.projector != "none"):
            raise EncoreError(f"{where}; take a step with `scorer: vector` and `projector: none`")

    def _check_length(self, lineage: Lineage, step: Step) -> None:
        """Refuse texts that are longer than the backbone has positions for; a bag of words has none to run out of."""
        backbone = self.backbone(lineage)
        if backbone.architecture == "bert" and step.length > backbone.max_length:
            raise EncoreError(
                f"{lineage}: step {lineage.steps[-1].name!r} reads {step.length} tokens of a text, and "
                f"{lineage.backbone!r} has {backbone.max_length} positions; lower `length`, or take another backbone"
            )

    def _check_ancestry(self, lineage: Lineage, step: FinetuneStep) -> None:
        """Refuse a miner that is no lineage, and a new start where nothing would be left behind."""
        name, parent = lineage.steps[-1].name, lineage.parent
        if step.mined_by:
            explained(self.lineage, step.mined_by, f"step {name!r}, mined_by")
        if step.start == "pretrained" and self._weights(lineage, step) == parent:
            raise EncoreError(
                f"{lineage}: {name!r} starts again from the pre-trained model, and no fine-tuning stands before it; "
                "put its first stage there, or let `start` be parent"
            )

    def _check_splits(self, lineage: Lineage, step: FinetuneStep) -> None:
        """Refuse splits that the step's collection does not have, have another role, or are of different draws."""
        splits = self.dataset(step.collection).splits
        used = {"train": step.train_split} | ({"valid": step.valid_split} if step.validate_every else {})
        for role, split in used.items():
            if split not in splits or splits[split].role != role:
                near = nearest(split, [name for name, fields in splits.items() if fields.role == role])
                raise EncoreError(f"{lineage}: {step.collection!r} has no split {split!r} of role {role}{near}")
        if len({draw_of(split) for split in used.values()}) > 1:
            raise EncoreError(f"{lineage}: {' and '.join(used.values())} are not of one draw; name splits that are")

    def tested_fairly(self, system: str, dataset: str, split: str) -> bool:
        """Whether a system may be asked a split: no step behind it has learned from queries that another draw tests."""
        if system in self.catalogue.systems:
            return all(self.tested_fairly(part, dataset, split) for part in self.system(system).parts)
        behind = teachers.learned_from(self, self.lineage(split_index(system)[0]))
        steps = (self.step(named) for lineage in behind for named in lineage.steps)
        tuned = [step for step in steps if isinstance(step, FinetuneStep)]
        if self.dataset(dataset).zero_shot and any(self._shares_queries(step.collection, dataset) for step in tuned):
            return False
        learned = (
            draw_of(step.train_split) for step in tuned if self._questions(step.collection) == self._questions(dataset)
        )
        return all(draw in (None, draw_of(split)) for draw in learned)

    def _shares_queries(self, learned: str, tested: str) -> bool:
        """Whether two datasets may have queries in common: made of one, and not known to be apart."""
        names = self.made_of(self.dataset_name(learned)), self.made_of(self.dataset_name(tested))
        return bool(set(names[0]) & set(names[1])) and not self.dataset(tested).is_apart_from(self.dataset(learned))

    def _questions(self, dataset: str) -> Any:
        """What tells datasets apart whose queries differ: the name, unless the fields say it."""
        return getattr(self.dataset(dataset), "asked", self.dataset_name(dataset))

    def _prepared(self, step: PretrainStep, inputs: dict[str, Artifact]) -> dict[str, Artifact]:
        """What the objective computes from the texts before any training, if anything."""
        preparation = objectives.load(step.objective).preparation(step)
        if preparation is None:
            return {}
        used = {role: inputs[role] for role in (["tokens", "weights"] if preparation.reads_weights else ["tokens"])}
        impl = [self.impl("prepare"), self.impl(f"pretrain.{step.objective}")]
        fields = {"objective": step.objective, "preparation": preparation.model_dump(mode="json")}
        spec = {"impl": impl, **fields, **names(used)}
        folder = f"prepared/{preparation.name}-{step.collection}"
        return {"prepared": self.make(f"prepare.{step.objective}", folder, spec, used)}

    def _weights(self, lineage: Lineage, step: Step) -> Lineage:
        """Whose weights the last step goes on from: the parent's, or the last pre-trained ancestor's."""
        parent = lineage.parent
        if isinstance(step, FinetuneStep) and step.start == "pretrained":
            while parent.steps and isinstance(self.step(parent.steps[-1]), FinetuneStep):
                parent = parent.parent
        return parent


def _folder(lineage: Lineage, seed: int) -> str:
    return f"models/{lineage}-s{seed}"
