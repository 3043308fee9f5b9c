"""The plan: every artifact that a configuration makes, with its spec, its folder and what it is made from.

A folder's name ends with the digest of its spec, and a spec names the folders it is made from: so a name stands for
everything upstream of it. What the names mean is in ``resolution.py``.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from encore import objectives
from encore.catalogue import Catalogue, nearest
from encore.config import Backbone, FinetuneStep, PretrainStep, RunConfig, Step
from encore.errors import EncoreError
from encore.lineage import Lineage, StepName
from encore.resolution import Resolution
from encore.storage import digest

LONGEST_NAME = 100
Spec = dict[str, Any]


@dataclass(frozen=True)
class Artifact:
    """A folder of results: the stage that makes it, with which spec, from which other folders (by role)."""

    stage: str
    folder: str
    spec: Spec
    inputs: dict[str, "Artifact"] = field(default_factory=dict)
    source: str | None = None  # a folder of the user's that is read, never part of the identity

    @property
    def name(self) -> str:
        """The last part of the folder: what specs of other artifacts call it."""
        return self.folder.rsplit("/", 1)[-1]

    @property
    def manifest(self) -> str:
        return f"{self.folder}/manifest.json"

    def ancestors(self) -> Iterator["Artifact"]:
        """This artifact after all that it is made from; one that is reached twice comes twice."""
        for parent in self.inputs.values():
            yield from parent.ancestors()
        yield self


class Topics(NamedTuple):
    """Which queries of a dataset a run answers, and how deep."""

    split: str
    depth: int
    queries: int | None = None
    sample: int = 0

    def __str__(self) -> str:
        return self.split + (f".{self.queries}" if self.queries else "")


class Plan(Resolution):
    """What one run configuration makes of the catalogue."""

    def __init__(self, config: RunConfig, catalogue: Catalogue, impl: Callable[[str], int]) -> None:
        super().__init__(config, catalogue)
        self._impl = impl
        self._made: dict[str, Artifact] = {}
        self._models: dict[tuple[str, int], Artifact] = {}
        self._collections: dict[str, Artifact] = {}

    # Texts

    def collection(self, dataset: str) -> Artifact:
        """A dataset in the common form."""
        name, fields = self.dataset_name(dataset), self.dataset(dataset)
        if name not in self._collections:
            stage = f"collection.{fields.kind}"
            spec = {"impl": self._impl(stage), **fields.resolve()}
            self._collections[name] = self._make(stage, f"collections/{name}", spec, {}, getattr(fields, "path", None))
        return self._collections[name]

    def tokenizer(self, backbone: Backbone) -> Artifact:
        """The vocabulary that a backbone reads: a checkpoint's own, or one trained on its texts."""
        impl = self._impl("tokenizer")
        if backbone.checkpoint is not None:
            return self._make(
                "tokenizer", "tokenizers/checkpoint", {"impl": impl, "checkpoint": backbone.checkpoint}, {}
            )
        texts = self.collection(_required(backbone.collection, "collection", "a backbone without a checkpoint"))
        size = _required(backbone.vocabulary, "vocabulary", "a backbone without a checkpoint")
        spec = {"impl": impl, "vocabulary": size, "collection": texts.name}
        return self._make("tokenizer", f"tokenizers/wordpiece-{size}", spec, {"collection": texts})

    def tokens(self, dataset: str, backbone: Backbone) -> Artifact:
        """A dataset's texts as token ids of a backbone's vocabulary."""
        inputs = {"collection": self.collection(dataset), "tokenizer": self.tokenizer(backbone)}
        spec = {"impl": self._impl("tokens"), **_names(inputs)}
        return self._make("tokens", f"tokens/{self.dataset_name(dataset)}", spec, inputs)

    # Models

    def model(self, lineage: Lineage, seed: int) -> Artifact:
        """The model that a lineage ends with, under one seed."""
        key = (str(lineage), seed)
        if key not in self._models:
            self._models[key] = self._step_model(lineage, seed) if lineage.steps else self._start_model(lineage, seed)
        return self._models[key]

    def _start_model(self, lineage: Lineage, seed: int) -> Artifact:
        backbone = self.catalogue.backbones[lineage.backbone]
        inputs = {"tokenizer": self.tokenizer(backbone)}
        if backbone.start == "lsa":
            inputs["tokens"] = self.tokens(_required(backbone.collection, "collection", "an LSA start"), backbone)
        fields = backbone.model_dump(mode="json", exclude_defaults=True)
        spec = {"impl": self._impl("start"), "backbone": fields, **self._chance(seed), **_names(inputs)}
        return self._make("start", _model_folder(lineage, seed), spec, inputs)

    def _step_model(self, lineage: Lineage, seed: int) -> Artifact:
        step = self.step(lineage.steps[-1])
        backbone = self.catalogue.backbones[lineage.backbone]
        inputs = {
            "tokens": self.tokens(step.collection, backbone),
            "weights": self.model(self._weights(lineage, step), seed),
        }
        stage = "finetune"
        impl: Any = self._impl(stage)
        if isinstance(step, PretrainStep):
            stage = f"pretrain.{step.objective}"
            impl = [self._impl("pretrain"), self._impl(stage)]
            inputs |= self._prepared(step, inputs)
        if isinstance(step, FinetuneStep):
            inputs["collection"] = self.collection(step.collection)
            inputs["negatives"] = self.negatives(lineage.parent, step, seed)
        fields = step.model_dump(mode="json", exclude_defaults=True)
        spec = {"impl": impl, "step": fields, **self._chance(seed), **_names(inputs)}
        return self._make(stage, _model_folder(lineage, seed), spec, inputs)

    def _prepared(self, step: PretrainStep, inputs: dict[str, Artifact]) -> dict[str, Artifact]:
        """What the objective computes from the texts before any training, if anything."""
        preparation = objectives.load(step.objective).preparation(step)
        if preparation is None:
            return {}
        used = {role: inputs[role] for role in (["tokens", "weights"] if preparation.reads_weights else ["tokens"])}
        impl = [self._impl("prepare"), self._impl(f"pretrain.{step.objective}")]
        fields = {"objective": step.objective, "preparation": preparation.model_dump(mode="json")}
        spec = {"impl": impl, **fields, **_names(used)}
        return {"prepared": self._make("prepare", f"prepared/{preparation.name}-{step.collection}", spec, used)}

    def _weights(self, lineage: Lineage, step: Step) -> Lineage:
        """Whose weights the last step goes on from: the parent's, or the last pre-trained ancestor's."""
        parent = lineage.parent
        if isinstance(step, FinetuneStep) and step.start == "pretrained":
            while parent.steps and isinstance(self.step(parent.steps[-1]), FinetuneStep):
                parent = parent.parent
        return parent

    # Runs

    def negatives(self, parent: Lineage, step: FinetuneStep, seed: int) -> Artifact:
        """Negatives for a fine-tuning step, from BM25 or from its parent's own run over the training queries."""
        topics = Topics("train", step.depth, step.queries, step.sample)
        if step.negatives == "bm25":
            run = self.bm25_run("bm25", step.collection, topics)
        else:
            run = self.dense_run(parent, seed, step.collection, topics)
        inputs = {"run": run, "collection": self.collection(step.collection)}
        recipe = {"depth": step.depth, "keep": step.keep, "exclude_judged": step.exclude_judged, "seed": seed}
        spec = {"impl": self._impl("negatives"), "split": topics.split, **recipe, **_names(inputs)}
        system = run.folder.split("/")[-2]
        return self._make(
            "negatives", f"negatives/{system}/{self.dataset_name(step.collection)}.{topics}", spec, inputs
        )

    def bm25_run(self, system: str, dataset: str, topics: Topics) -> Artifact:
        """A BM25 run over the queries of a split."""
        fields = self.system(system)
        collection = self.collection(dataset)
        index_spec = {"impl": self._impl("lucene_index"), "collection": collection.name}
        index_folder = f"indexes/lucene/{self.dataset_name(dataset)}"
        index = self._make("lucene_index", index_folder, index_spec, {"collection": collection})
        impl = self._impl("lucene_search")
        model = {"k1": fields.k1, "b": fields.b}
        name = f"{system}-{digest([impl, model])}"
        inputs = {"index": index, "collection": collection}
        spec = {"impl": impl, **model, **topics._asdict(), "system": name, **_names(inputs)}
        return self._make("lucene_search", f"runs/{name}/{self.dataset_name(dataset)}.{topics}", spec, inputs)

    def dense_run(self, lineage: Lineage, seed: int, dataset: str, topics: Topics) -> Artifact:
        """A lineage's run over the queries of a split."""
        model, shards = self.model(lineage, seed), self.shards(lineage, seed, dataset)
        backbone = self.catalogue.backbones[lineage.backbone]
        inputs = {"model": model, "tokens": self.tokens(dataset, backbone), "collection": self.collection(dataset)}
        names = {**_names(inputs), "index": shards[0].folder.split("/")[-2], "system": model.name}
        inputs |= {f"shard{number}": shard for number, shard in enumerate(shards)}
        how = {"query_length": self.lengths(lineage)[1], "numerics": self._numerics()}
        spec = {"impl": self._impl("search"), **topics._asdict(), **how, **names}
        return self._make("search", f"runs/{model.name}/{self.dataset_name(dataset)}.{topics}", spec, inputs)

    def shards(self, lineage: Lineage, seed: int, dataset: str) -> list[Artifact]:
        """A dataset's vectors; the number of shards is execution, so it is in their names but in no digest."""
        model, backbone = self.model(lineage, seed), self.catalogue.backbones[lineage.backbone]
        inputs = {"model": model, "tokens": self.tokens(dataset, backbone)}
        spec = {
            "impl": self._impl("encode"),
            "length": self.lengths(lineage)[0],
            "numerics": self._numerics(),
            **_names(inputs),
        }
        folder = f"results/indexes/{model.name}/{self.dataset_name(dataset)}-{digest(spec)}"
        count = self.config.execution.shards
        return [self._keep(Artifact("encode", f"{folder}/{n:03d}-of-{count:03d}", spec, inputs)) for n in range(count)]

    def scores(self, system: str, seed: int | None, dataset: str, split: str) -> Artifact:
        """The measures of a system's run, for every split that shares the run's queries.

        ``seed`` is None for a system without chance in it.
        """
        splits = self.dataset(dataset).splits
        topics = splits[split].topics or split
        if seed is None:
            run = self.bm25_run(system, dataset, Topics(topics, self.config.depth))
        else:
            run = self.dense_run(self.lineage(system), seed, dataset, Topics(topics, self.config.depth))
        measures = {
            name: kept.measures for name, kept in splits.items() if (kept.topics or name) == topics and kept.measures
        }
        inputs = {"run": run, "collection": self.collection(dataset)}
        spec = {"impl": self._impl("evaluate"), "splits": measures, **_names(inputs)}
        folder = f"scores/{run.folder.split('/')[-2]}/{self.dataset_name(dataset)}.{topics}"
        return self._make("evaluate", folder, spec, inputs)

    # Finding

    def models_after(self, kind: str) -> str:
        """A regular expression of the folders of models whose last step is of a kind."""
        last = _alternatives(name for name, step in self.catalogue.steps.items() if step["kind"] == kind)
        return rf"[a-z0-9_.=~+-]*\+{last}(?:~[a-z0-9_.=~-]*)?-s\d+-[0-9a-f]{{8}}"

    def systems(self, kind: str) -> str:
        """A regular expression of the folders of systems that are no lineages, of a kind."""
        names = _alternatives(name for name, system in self.catalogue.systems.items() if system.kind == kind)
        return rf"{names}-[0-9a-f]{{8}}"

    def artifacts(self) -> dict[str, Artifact]:
        """Every artifact that has been asked for, by folder; made from come before made of."""
        return self._made

    def find(self, folder: str) -> Artifact:
        """The artifact in a folder, declared or named by a lineage.

        Raises:
            EncoreError: no configuration of this run makes it; says what is near.
        """
        if folder not in self._made:
            self._explore(folder)
        if folder not in self._made:
            raise EncoreError(f"{folder} is nothing that this configuration makes{nearest(folder, self._made)}")
        return self._made[folder]

    def _explore(self, folder: str) -> None:
        """Make the plan of a lineage that only the folder's name knows, and of all that follows from it."""
        system = folder.split("/")[2] if folder.count("/") >= 2 else ""
        text, _, rest = system.rpartition("-s")
        seed = rest.split("-")[0]
        if not text or not seed.isdigit():
            return
        lineage = self.lineage(text)
        model = self.model(lineage, int(seed))
        if model.name != system:
            raise EncoreError(f"{system} was made by another configuration; under this one the lineage is {model.name}")
        for name in self.catalogue.steps:
            step = self.step(StepName(name))
            if isinstance(step, FinetuneStep) and step.negatives == "mined":
                self.negatives(lineage, step, int(seed))
        for dataset in {*self.config.scale.datasets.values(), *self.config.datasets}:
            for split, fields in self._datasets[dataset].splits.items():
                if fields.measures:
                    self.scores(text, int(seed), dataset, split)

    # Parts

    def _make(
        self, stage: str, stem: str, spec: Spec, inputs: dict[str, Artifact], source: str | None = None
    ) -> Artifact:
        return self._keep(Artifact(stage, f"results/{stem}-{digest(spec)}", spec, inputs, source))

    def _keep(self, artifact: Artifact) -> Artifact:
        if len(artifact.name) > LONGEST_NAME:
            raise EncoreError(
                f"the folder name {artifact.name!r} has {len(artifact.name)} characters, {LONGEST_NAME} are allowed; "
                "give the step an entry of its own in steps.yaml instead of overrides"
            )
        return self._made.setdefault(artifact.folder, artifact)

    def _numerics(self) -> dict[str, Any]:
        return self.config.numerics.model_dump()

    def _chance(self, seed: int) -> Spec:
        return {"seed": seed, "numerics": self._numerics()}


def _alternatives(names: Iterable[str]) -> str:
    return "(?:" + "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) + ")"


def _model_folder(lineage: Lineage, seed: int) -> str:
    return f"models/{lineage}-s{seed}"


def _names(inputs: dict[str, Artifact]) -> Spec:
    return {role: artifact.name for role, artifact in inputs.items()}


def _required(value: Any, field_name: str, owner: str) -> Any:
    if value is None:
        raise EncoreError(f"{owner} needs the field {field_name!r}; add it in backbones.yaml")
    return value
