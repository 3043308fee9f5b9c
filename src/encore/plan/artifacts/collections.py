"""Texts: what is fetched for them, collections in the common form, and their token ids under a vocabulary.

Neither the address of a source nor where its files are kept decides anything, so neither is in a spec.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from encore.config import checkpoints
from encore.config.adapters import ADAPTER, read_adapter
from encore.config.entries import Backbone
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec, required
from encore.plan.planner import Planner


def fetched_source(plan: Planner, name: str) -> Artifact:
    """The unpacked files of an entry of ``sources.yaml``."""
    known = plan.catalogue.sources
    if name not in known:
        raise EncoreError(f"{name!r} is not in sources.yaml{nearest(name, known)}")
    spec = {"files": known[name].identity()}
    details = known[name].model_dump(mode="json", exclude_unset=True)
    return plan.make("fetch_source", f"sources/{name}", spec, {}, details=details)


def fetched_ir_datasets(plan: Planner, dataset: str) -> Artifact:
    """What ir_datasets downloads of a dataset itself: the record that it is in ``data_root``, with counts."""
    fields = plan.resolve.own(dataset).fields
    details = {"licence": fields.licence, "terms": fields.terms}
    spec = {"ids": fields.made_from.ids}
    return plan.make("fetch_ir_datasets", f"ir_datasets/{dataset}", spec, {}, details=details)


class Given(NamedTuple):
    """Where files come from: their fields in specs, the artifact that downloads them, or the user's file or folder."""

    spec: Spec
    inputs: dict[str, Artifact]
    folder: str | None = None

    @property
    def sha256(self) -> str:
        """The digest of the user's one file; empty for any other, and where it is missing."""
        return self.spec["content"].get("sha256", "") if self.folder else ""


def given(plan: Planner, place: str, content: Callable[[str], Any]) -> Given:
    """Files that a field names: an entry of ``sources.yaml``, or the user's own, whose ``content`` identifies them."""
    if place in plan.catalogue.sources:
        inputs = {"fetched": fetched_source(plan, place)}
        return Given({}, inputs)
    return Given({"content": content(place)}, {}, place)


def checkpoint_files(
    plan: Planner, name: str, revision: str | None = None, pinned: Mapping[str, str] = MappingProxyType({})
) -> Given:
    """The files of a checkpoint: an entry of ``sources.yaml``, a folder of the user's, or an id of the hub.

    Args:
        pinned: the sha256 of some of them, by name.
    """
    if name in plan.catalogue.sources:
        inputs = {"checkpoint": fetched_source(plan, name)}
    elif checkpoints.is_folder(name):
        own = Path(name)  # whose text is as Snakemake wants paths
        spec: Spec = {"content": checkpoints.content(own)}
        if (own / ADAPTER).is_file():  # its pinned files come together in the job
            needed = checkpoint_files(plan, *read_adapter(own)[:2]).inputs
            return Given(spec | {"sha256": dict(pinned)}, needed, str(own))
        if own.is_dir():
            checkpoints.refuse_changed(own, pinned)
        return Given(spec, {}, str(own))
    else:
        spec = {"id": name, "revision": revision}
        folder = f"checkpoints/{checkpoints.called(name).lower()}"
        inputs = {"checkpoint": plan.make("fetch_checkpoint", folder, spec, {})}
    return Given({"sha256": dict(pinned)} if pinned else {}, inputs)


def backbone_files(plan: Planner, backbone: Backbone) -> Given:
    """The files of the checkpoint that a backbone starts from."""
    name = required(backbone.checkpoint, "checkpoint", "a backbone with `start: checkpoint`")
    return checkpoint_files(plan, name, backbone.revision, backbone.sha256)


def collection(plan: Planner, dataset: str) -> Artifact:
    """The dataset that has a name at this scale, in the common form."""
    return named_collection(plan, plan.resolve.dataset(dataset).name)


def named_collection(plan: Planner, name: str, above: tuple[str, ...] = ()) -> Artifact:
    """A dataset by its own name: what it is made `of` is the named one, whatever replaces that at this scale."""
    if name in above:
        raise EncoreError(f"dataset {name!r} is derived from itself ({' of '.join([*above, name])}); fix `of`")
    if name in plan.collections:
        return plan.collections[name]
    dataset = plan.resolve.own(name)
    fields, origin = dataset.fields, dataset.fields.made_from
    inputs = {}
    if origin.base is not None:
        if plan.resolve.own(origin.base).fields.only_articles and not fields.takes_articles:
            raise EncoreError(
                f"dataset {name!r} is made of passages, and {origin.base!r} has articles only, to pre-train on; let "
                "`of` name another, or choose whole `articles` of it (kind subset)"
            )
        inputs["collection"] = named_collection(plan, origin.base, (*above, name))
    for number, part in enumerate(origin.parts):
        inputs[f"part.{number}"] = named_collection(plan, part, (*above, name))
    inputs |= {"fetched": fetched_ir_datasets(plan, name)} if origin.ids else {}
    inputs |= {f"source.{each}": fetched_source(plan, each) for each in origin.sources}
    plan.collections[name] = plan.make("collection", f"collections/{name}", dataset.content, inputs, origin.path)
    return plan.collections[name]


def identical_ids(plan: Planner, dataset: str) -> Spec:
    """The part of a spec that says that a query's own document is nothing to retrieve or to learn from; or nothing."""
    return {"ignore_identical_ids": True} if plan.resolve.dataset(dataset).fields.ignore_identical_ids else {}


def no_negatives(plan: Planner, dataset: str) -> Spec:
    """The part of a spec that says which unjudged documents are no negatives; or nothing."""
    copies = plan.resolve.dataset(dataset).fields.ignore_copies
    return identical_ids(plan, dataset) | ({"ignore_copies": True} if copies else {})


def tokenizer(plan: Planner, backbone: Backbone) -> Artifact:
    """The vocabulary that a backbone reads: a checkpoint's own, or one trained on its texts."""
    if backbone.lineage:
        return tokenizer(plan, plan.resolve.backbone(plan.resolve.lineage(backbone.lineage)))
    if backbone.start == "checkpoint":
        given = backbone_files(plan, backbone)
        return plan.make("tokenizer", "tokenizers/checkpoint", given.spec, given.inputs, given.folder)
    texts = collection(plan, required(backbone.collection, "collection", "a backbone without a checkpoint"))
    size = required(backbone.vocabulary, "vocabulary", "a backbone without a checkpoint")
    return plan.make("tokenizer", f"tokenizers/wordpiece-{size}", {"vocabulary": size}, {"collection": texts})


def tokens(plan: Planner, dataset: str, backbone: Backbone) -> Artifact:
    """A dataset's texts as token ids of a backbone's vocabulary."""
    return _named_tokens(plan, plan.resolve.dataset(dataset).name, backbone)


def _named_tokens(plan: Planner, name: str, backbone: Backbone) -> Artifact:
    """Tokens of the dataset with this name; those of a joined one are joined from its parts', to the same bytes."""
    texts, vocabulary = named_collection(plan, name), tokenizer(plan, backbone)
    inputs = {"collection": texts, "tokenizer": vocabulary}
    spec: Spec = {"collection": texts.name}
    prompts = {"queries": backbone.query_marker, "passages": backbone.passage_marker}
    if backbone.architecture == "transformers" and any(prompts.values()):  # whose tokens may reach over their ends
        spec |= {"prompts": prompts}
    if parts := plan.resolve.own(name).fields.made_from.parts:
        stores = {f"part_token.{number}": _named_tokens(plan, part, backbone) for number, part in enumerate(parts)}
        inputs = {**texts.inputs, **stores, "tokenizer": vocabulary}
    return plan.make("tokens", f"tokens/{name}", spec, inputs)
