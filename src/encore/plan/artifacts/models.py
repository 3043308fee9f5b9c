"""Models: each step of a lineage trains the model of the step before."""

from pathlib import Path

from encore import objectives
from encore.config.checkpoints import TOKENIZER
from encore.config.entries import PretrainStep, Step
from encore.config.finetuning import FinetuneStep
from encore.config.systems import Rerank
from encore.config.validation import explained, nearest
from encore.errors import EncoreError
from encore.objectives.parts.attention import AttendedTexts
from encore.plan.artifact import Artifact, Spec, required
from encore.plan.artifacts import negatives, teachers
from encore.plan.artifacts.collections import backbone_files, collection, no_negatives, tokenizer, tokens
from encore.plan.artifacts.systems import shards
from encore.plan.lineage import Lineage
from encore.plan.planner import Planner
from encore.stages.start import refuse_markers

# Where negatives come from, and the teachers: folders' names identify them, so their names in the step decide nothing.
NAMED_BY_INPUTS = {"checkpoint", "revision", "sha256", "lineage"}  # of a backbone
SHARED = 0  # the seed of a start without chance, or a trained one: as the papers have one BERT, all seeds have one
NAMED_ELSEWHERE = {"mined_by", "triples", "systems_file", "teachers", "teacher_scores", "batch_teachers"}
BF16 = 3  # the version of how trainings compute in bf16; raised where last bits change there alone
# Fields of a step that came after models had names: of no spec where they have their default, as before them.
ADDED = {
    "head_warmup",
    "negatives_below",
    "kept",
    "batch_weight",
    "clusters",
    "learning_rates",
    "margin_bins",
    "query_vectors",
    "passage_vectors",
}


def model(plan: Planner, lineage: Lineage, seed: int) -> Artifact:
    """The model that a lineage ends with, under one seed: its last step, or the backbone where it has none."""
    return _step_model(plan, lineage, seed) if lineage.steps else _start_model(plan, lineage, seed)


def _start_model(plan: Planner, lineage: Lineage, seed: int) -> Artifact:
    backbone = plan.resolve.backbone(lineage)
    inputs = {"tokenizer": tokenizer(plan, backbone)}
    if backbone.is_given:
        seed = SHARED
    if backbone.lineage:
        inputs["pretrained"] = plan.model(plan.resolve.lineage(backbone.lineage), seed)
    if backbone.start == "lsa":
        inputs["tokens"] = tokens(plan, required(backbone.collection, "collection", "an LSA start"), backbone)
    fields = backbone.model_dump(mode="json", exclude=NAMED_BY_INPUTS)
    spec = {"backbone": fields, **plan.chance(seed)}
    if backbone.start != "checkpoint":
        return plan.make("start", f"models/{lineage}-s{seed}", spec, inputs)
    given = backbone_files(plan, backbone)
    if backbone.pooling == "content" and given.folder and Path(given.folder, TOKENIZER).is_file():
        with explained(f"backbone {lineage.backbone!r}"):
            refuse_markers(backbone, Path(given.folder))
    return plan.make("start", f"models/{lineage}-s{seed}", spec | given.spec, inputs | given.inputs, given.folder)


def _step_model(plan: Planner, lineage: Lineage, seed: int) -> Artifact:
    step = plan.resolve.step(lineage.steps[-1])
    inputs = {
        "tokens": tokens(plan, step.collection, plan.resolve.backbone(lineage)),
        "weights": plan.model(_weights(plan, lineage, step), seed),
    }
    if step.steps is None and step.epochs is None:
        raise EncoreError(
            f"step {lineage.steps[-1].name!r} says neither `steps` nor `epochs`; add one to its entry in steps.yaml"
        )
    _check_texts(plan, lineage, step)
    if isinstance(step, PretrainStep):
        inputs |= _prepared(plan, step, inputs)
    if isinstance(step, FinetuneStep):
        _check_splits(plan, lineage, step)
        _check_ancestry(plan, lineage, step)
        inputs["collection"] = collection(plan, step.collection)
        sampled = negatives.planned(plan, lineage.parent, step, seed)
        inputs |= {"negatives": sampled} if sampled else {}
        inputs |= teachers.teacher_outputs(plan, lineage, seed, sampled)
        inputs |= {"clusterer": plan.model(lineage.parent, seed)} if step.clusters else {}
    known = type(step).model_fields
    standing = {name for name in ADDED & known.keys() if getattr(step, name) == known[name].get_default()}
    fields = step.model_dump(mode="json", exclude=NAMED_ELSEWHERE | standing)
    own = no_negatives(plan, step.collection) if isinstance(step, FinetuneStep) else {}
    spec = {"step": fields, **own, "seed": seed, "numerics": _numerics(plan)}
    if isinstance(step, FinetuneStep) and step.negatives == "index":
        vectors = shards(plan, lineage.parent, seed, step.collection)
        inputs |= {f"shard{number}": shard for number, shard in enumerate(vectors)}
        spec |= {"index": vectors[0].owner}
    stage = "pretrain" if isinstance(step, PretrainStep) else "finetune"
    return plan.make(stage, f"models/{lineage}-s{seed}", spec, inputs)


def _numerics(plan: Planner) -> Spec:
    """The numerical settings of a training, with those that are of trainings alone."""
    own = plan.config.numerics
    in_bf16 = {"bf16": BF16} if own.precision == "bf16" else {}
    return plan.numerics() | in_bf16 | ({"compiled": True} if own.compiled else {})


def _check_texts(plan: Planner, lineage: Lineage, step: Step) -> None:
    """Refuse texts that the step cannot learn from, or its backbone cannot read."""
    backbone = plan.resolve.backbone(lineage)
    objective = objectives.load(step.objective) if isinstance(step, PretrainStep) else None
    texts = plan.resolve.own(plan.resolve.own(step.collection).derivation[-1]).fields
    if isinstance(step, PretrainStep) and objective and objective.reads_articles and texts.only_passages:
        raise EncoreError(
            f"{lineage}: {step.objective} learns from articles with sections and links, and {step.collection!r} (kind "
            f"{texts.kind}) has passages only; leave its rows out of `tables:`, or let it read other texts"
        )
    if backbone.architecture == "transformers" and getattr(step, "scorer", "cross-encoder") == "cross-encoder":
        raise EncoreError(
            f"{lineage}: {lineage.backbone!r} runs by Transformers' code (`architecture: transformers`), which is "
            "neither pre-trained further nor a cross-encoder here, only fine-tuned for vectors; take a BERT, or leave "
            "the row out"
        )
    longest, read = max(("length", step.length), ("query_length", step.query_length), key=lambda each: each[1])
    if getattr(step, "scorer", "vector") == "cross-encoder":
        longest, read = "length` or `query_length", step.query_length + step.length
    if backbone.architecture != "bow-mlp" and read > backbone.max_length:
        raise EncoreError(
            f"{lineage}: step {lineage.steps[-1].name!r} reads {read} tokens of a text, and "
            f"{lineage.backbone!r} has {backbone.max_length} positions; lower `{longest}`, or take another backbone"
        )
    if backbone.architecture != "bow-mlp":
        return
    where = f"{lineage}: {lineage.backbone!r} is a bag of words and has no states of tokens"
    if isinstance(step, PretrainStep) and objective and objective.needs_states(step):
        raise EncoreError(f"{where}, which {step.objective} learns from; take ict, bfs, wlp or ict-bfs-wlp")
    if isinstance(step, FinetuneStep) and (step.scorer != "vector" or step.projector != "none" or step.pooling):
        raise EncoreError(f"{where}; take a step with `scorer: vector`, `projector: none` and no `pooling`")


def _check_ancestry(plan: Planner, lineage: Lineage, step: FinetuneStep) -> None:
    """Refuse a miner that is not there, and a new start from the parent itself."""
    name, parent = lineage.steps[-1].name, lineage.parent
    if step.negatives == "index" and plan.resolve.scorer(parent) != "vector":
        raise EncoreError(f"{lineage}: {name!r} searches the vectors of {parent}, whose texts have no single one each")
    if step.negatives == "index" and plan.resolve.backbone(lineage).architecture == "transformers":
        raise EncoreError(
            f"{lineage}: {lineage.backbone!r} has one tower, and {name!r} trains a second one; take a BERT"
        )
    if step.mined_by:
        with explained(f"step {name!r}, mined_by"):
            plan.resolve.lineages_of(step.mined_by)
    if step.negatives_below and not _tells_probabilities(plan, step):
        raise EncoreError(
            f"step {name!r}: `negatives_below` is a probability, and {step.mined_by!r} gives none; mine from a system "
            f"of kind rerank, by `mined_by`, with a `depth` of {step.depth} at least and a ranker of `loss: pointwise`"
        )
    if step.start == "pretrained" and _weights(plan, lineage, step) == parent:
        raise EncoreError(
            f"{lineage}: {name!r} starts again from the pre-trained model, and no fine-tuning comes before it; "
            "put its first stage there, or let `start` be parent"
        )


def _tells_probabilities(plan: Planner, step: FinetuneStep) -> bool:
    """Whether all that a step mines from have a cross-encoder's logits for scores."""
    fields = plan.resolve.system(step.mined_by) if step.mined_by in plan.catalogue.systems else None
    if not isinstance(fields, Rerank) or fields.depth < step.depth:
        return False
    last = plan.resolve.lineage(fields.ranker).steps[-1:]
    return any(getattr(plan.resolve.step(each), "loss", "") == "pointwise" for each in last)


def _check_splits(plan: Planner, lineage: Lineage, step: FinetuneStep) -> None:
    """Refuse splits that the step's collection does not have, have another role, or a validation of another share.

    That of another share may hold questions that train or are tested here.
    """
    fields = plan.resolve.dataset(step.collection).fields
    splits = fields.splits
    used = {"train": step.train_split} | ({"valid": step.valid_split} if step.validates else {})
    for role, split in used.items():
        if split not in splits or splits[split].role != role:
            near = nearest(split, [name for name, known in splits.items() if known.role == role])
            raise EncoreError(f"{lineage}: {step.collection!r} has no split {split!r} of role {role}{near}")
    if "valid" in used and not fields.serves(step.valid_split, step.train_split):
        raise EncoreError(f"{lineage}: {' and '.join(used.values())} are not of one draw; name splits that are")


def _prepared(plan: Planner, step: PretrainStep, inputs: dict[str, Artifact]) -> dict[str, Artifact]:
    """What the objective computes from the texts before any training, if anything."""
    preparation = objectives.load(step.objective).preparation(step)
    if preparation is None:
        return {}
    used = {"tokens": inputs["tokens"]}
    if preparation.reads_attention:  # what the model that the step starts from attends to in the texts
        read = {role: inputs[role] for role in ("tokens", "weights")}
        texts = AttendedTexts(**{name: getattr(preparation, name) for name in AttendedTexts.model_fields})
        spec = {"texts": texts.model_dump(mode="json")}
        used["attention"] = plan.make("attend", f"attention/{step.collection}", spec, read)
    fields = {"objective": step.objective, "preparation": preparation.model_dump(mode="json")}
    folder = f"prepared/{preparation.name}-{step.collection}"
    return {"prepared": plan.make("prepare", folder, fields, used)}


def _weights(plan: Planner, lineage: Lineage, step: Step) -> Lineage:
    """The lineage whose weights the last step starts from: the parent, or the last pre-trained ancestor."""
    parent = lineage.parent
    if isinstance(step, FinetuneStep) and step.start == "pretrained":
        while parent.steps and isinstance(plan.resolve.step(parent.steps[-1]), FinetuneStep):
            parent = parent.parent
    return parent
