"""The plan of doc2query: the model that writes queries, if one is trained, and the queries of a collection."""

from encore import stages
from encore.config.datasets import role_of
from encore.config.systems import SAMPLING, T5, Published
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, names
from encore.plan.artifacts.collections import Given, checkpoint_files, collection, given, tokenizer
from encore.plan.planner import Planner
from encore.storage.files import digest


def identity(plan: Planner, name: str) -> str:
    """What decides an expansion, whatever collection it is of; a part of the name of a system that uses it."""
    fields = plan.resolve.doc2query(name)
    if isinstance(fields, Published):
        files = _predictions(plan, fields)
        content = {**names(files.inputs), **files.spec}
        return digest([stages.load("predict_queries").impl, content.get("content", content)])
    assert isinstance(fields, T5)
    model, sampling = doc2query_model(plan, name, fields).name, [getattr(fields, field) for field in SAMPLING]
    return digest([stages.load("predict_queries").impl, model, sampling])


def predicted_queries(plan: Planner, name: str, dataset: str) -> Artifact:
    """The predicted queries of a dataset's passages."""
    fields, inputs = plan.resolve.doc2query(name), {"collection": collection(plan, dataset)}
    folder = f"predicted_queries/{plan.resolve.doc2query_name(name)}.{plan.resolve.dataset(dataset).name}"
    if isinstance(fields, Published):
        files = _predictions(plan, fields)
        spec = {"kind": fields.kind, **files.spec}
        return plan.make("predict_queries", folder, spec, inputs | files.inputs, files.folder)
    assert isinstance(fields, T5)
    inputs["doc2query_model"] = doc2query_model(plan, name, fields)
    sampling = {field: getattr(fields, field) for field in (*SAMPLING, "length", "query_length")}
    return plan.make("predict_queries", folder, {"kind": fields.kind, **sampling, **plan.chance(fields.seed)}, inputs)


def _predictions(plan: Planner, fields: Published) -> Given:
    """The files of published predictions."""
    if fields.samples and fields.path not in plan.catalogue.sources:
        raise EncoreError(f"{fields.path} is one file, not one a sample; leave `samples` out, or name a source")
    files = given(plan, fields.path, lambda path: fields.content())
    return files._replace(spec=files.spec | ({"samples": fields.samples} if fields.samples else {}))


def doc2query_model(plan: Planner, name: str, fields: T5) -> Artifact:
    """The model that writes queries, trained on queries of role train alone."""
    splits = plan.resolve.dataset(fields.collection).fields.splits
    if fields.train_split not in splits or role_of(fields.train_split) != "train":
        train = ", ".join(split for split in splits if role_of(split) == "train") or "none"
        raise EncoreError(
            f"expansion {name!r}: {fields.train_split!r} is not a split of role train of "
            f"{plan.resolve.dataset(fields.collection).name!r}; it has {train}"
        )
    inputs = {"collection": collection(plan, fields.collection)}
    if fields.backbone is not None:
        inputs["tokenizer"] = tokenizer(plan, plan.resolve.named_backbone(plan.resolve.backbone_name(fields.backbone)))
    learning = fields.model_dump(mode="json", exclude={"kind", "collection", "backbone", "revision", "seed", *SAMPLING})
    spec = {"expansion": learning, **plan.chance(fields.seed)}
    folder = f"doc2query_models/{plan.resolve.doc2query_name(name)}"
    if fields.checkpoint is None:
        return plan.make("train_doc2query", folder, spec, inputs)
    given = checkpoint_files(plan, fields.checkpoint, fields.revision)
    del learning["checkpoint"]  # what it is called decides nothing
    return plan.make("train_doc2query", folder, spec | given.spec, inputs | given.inputs, given.folder)
