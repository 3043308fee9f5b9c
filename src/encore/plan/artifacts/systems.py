"""Runs: a system's ranking for the queries of a split. One function a kind of system; lineages are searched densely."""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore import stages
from encore.config.datasets import serves
from encore.config.systems import Bm25, Fusion, Rerank, TakenRun
from encore.config.validation import explained, nearest
from encore.datasets.source_files import content_of
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec, Topics, names
from encore.plan.artifacts import doc2query
from encore.plan.artifacts.collections import Given, collection, given, tokens
from encore.plan.lineage import Lineage, StepName, split_index
from encore.plan.planner import Planner
from encore.storage.files import digest
from encore.storage.manifest import MANIFEST, NAME

CHOOSING = {"train": "train", "valid": "held-out"}  # role of a split: what `tuned_on` calls it
LISTS = ("sparse", "dense")


def run(plan: Planner, system: str, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    """A system's run over the queries of a split.

    Args:
        system: an entry of systems.yaml, or a lineage, perhaps with the index that it is searched in.
        seed: None where the system has no chance in it.
    """
    if system in plan.catalogue.systems:
        fields: Any = plan.resolve.system(system)
        with explained(f"system {system!r}"):
            return KINDS[fields.kind](plan, system, fields, seed, dataset, topics)
    if seed is None and plan.resolve.has_chance(system):
        raise EncoreError(f"system {system!r} is trained, so its run needs a seed")
    seed = seed or 0  # any, where nothing is drawn from it
    name, index = split_index(system)
    lineage = plan.resolve.lineage(name)
    if (scorer := plan.resolve.scorer(lineage)) != "vector":
        raise EncoreError(
            f"lineage {system!r} ends with a {scorer} scorer, whose texts have no single vector to search; "
            "rank another system's results again with it: an entry of kind `rerank` in systems.yaml"
        )
    if index is not None:
        return _indexed(plan, lineage, index, seed, dataset, topics)
    return _dense(plan, lineage, seed, dataset, topics)


def _bm25(plan: Planner, system: str, fields: Bm25, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    impl = stages.load("lucene_search").impl
    model: Spec = {"k1": fields.k1, "b": fields.b}
    added = {} if fields.expansion is None else {"expansion": doc2query.identity(plan, fields.expansion)}
    name = f"{system}-{digest([impl, {**model, **added}])}"
    inputs = {"index": lucene_index(plan, dataset, fields.expansion), "collection": collection(plan, dataset)}
    spec = {**model, **topics._asdict(), "system": name}
    return plan.make("lucene_search", f"runs/{name}/{plan.resolve.dataset(dataset).name}.{topics}", spec, inputs)


def lucene_index(plan: Planner, dataset: str, expansion: str | None) -> Artifact:
    """Lucene's index of a dataset's passages, each with its predicted queries, if there are any."""
    inputs = {"collection": collection(plan, dataset)}
    folder = f"indexes/lucene/{plan.resolve.dataset(dataset).name}"
    if expansion is not None:
        inputs["predicted_queries"] = doc2query.predicted_queries(plan, expansion, dataset)
        folder += f"+{plan.resolve.doc2query_name(expansion)}"
    return plan.make("lucene_index", folder, {}, inputs)


def taken_file(plan: Planner, system: str, fields: TakenRun) -> Given:
    """The file of a run that others made."""
    files = given(plan, fields.path or system, lambda path: content_of(Path(path), "sha256"))
    if fields.sha256 and files.sha256 not in ("", fields.sha256):
        has = f"has the sha256 {files.sha256}, not {fields.sha256}"
        raise EncoreError(f"{files.folder} {has}; name the file that was meant")
    return files


def _taken(plan: Planner, system: str, fields: TakenRun, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    files = taken_file(plan, system, fields)
    owner = f"{system}-{digest([stages.load('take_run').impl, {**files.spec, **names(files.inputs)}])}"
    spec = {**files.spec, **topics._asdict(), "system": owner}
    inputs = {"collection": collection(plan, dataset), **files.inputs}
    folder = f"runs/{owner}/{plan.resolve.dataset(dataset).name}.{topics}"
    return plan.make("take_run", folder, spec, inputs, files.folder)


def _of_seed(plan: Planner, system: str, seed: int | None) -> str:
    return f"{system}-s{seed}" if plan.resolve.has_chance(system) else system


def _rerank(plan: Planner, system: str, fields: Rerank, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    """The first stage's run over the queries of a split, its best ``depth`` in the order of the ranker's scores."""
    ranker = plan.resolve.lineage(fields.ranker)
    if fields.first is None:
        return _by_tokens(plan, system, ranker, seed, dataset, topics)
    inputs = {
        "first": plan.run(fields.first, seed, dataset, topics._replace(depth=max(topics.depth, fields.depth))),
        "model": plan.model(ranker, seed or 0),
        "tokens": tokens(plan, dataset, plan.resolve.backbone(ranker)),
    }
    impl, how = stages.load("rerank").impl, {"reranked": fields.depth, "numerics": plan.numerics()}
    owner = f"{_of_seed(plan, system, seed)}-{digest([impl, how, inputs['first'].owner, inputs['model'].name])}"
    spec = {**topics._asdict(), **how, "system": owner, "collection": collection(plan, dataset).name}
    return plan.make("rerank", f"runs/{owner}/{plan.resolve.dataset(dataset).name}.{topics}", spec, inputs)


def _by_tokens(plan: Planner, system: str, ranker: Lineage, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    """All passages in the order of a ranker that compares them by the vectors of their tokens."""
    if (scorer := plan.resolve.scorer(ranker)) != "late-interaction":
        raise EncoreError(
            f"{ranker} is a {scorer} scorer, and only one with vectors of tokens ranks a whole collection; name a "
            "`first` stage"
        )
    inputs = {
        "model": plan.model(ranker, seed or 0),
        "tokens": tokens(plan, dataset, plan.resolve.backbone(ranker)),
        "collection": collection(plan, dataset),
    }
    how = {"impl": stages.load("rerank").impl, "numerics": plan.numerics()}
    owner = f"{_of_seed(plan, system, seed)}-{digest([how, inputs['model'].name])}"
    spec = {"numerics": plan.numerics(), **topics._asdict(), "system": owner}
    return plan.make("rerank", f"runs/{owner}/{plan.resolve.dataset(dataset).name}.{topics}", spec, inputs)


def _indexed(plan: Planner, lineage: Lineage, index: StepName, seed: int, dataset: str, topics: Topics) -> Artifact:
    """A lineage's run over the queries of a split, searched in an index of that type.

    The exact run over the same queries is read too: the recall of its answers is reported with the run.
    """
    exact = _dense(plan, lineage, seed, dataset, topics)
    inputs = {role: exact.inputs[role] for role in ("model", "tokens", "collection")}
    inputs |= {"index": _index(plan, lineage, index, seed, dataset), "exact": exact}
    system = f"{inputs['model'].name}@{index}"
    how = {"query_length": plan.resolve.lengths(lineage)[1], "numerics": plan.numerics()}
    how |= {"search": plan.resolve.index_type(index).searching(), "system": system}
    spec = {**topics._asdict(), **how}
    return plan.make("search_index", f"runs/{system}/{plan.resolve.dataset(dataset).name}.{topics}", spec, inputs)


def _index(plan: Planner, lineage: Lineage, index: StepName, seed: int, dataset: str) -> Artifact:
    """One index of a type over a dataset's vectors; how it will be searched is not part of it."""
    fields, backbone = plan.resolve.index_type(index), plan.resolve.backbone(lineage)
    fields.check(backbone.projection_dim or backbone.hidden)
    vectors = shards(plan, lineage, seed, dataset)
    spec = {"index": fields.building(), "vectors": vectors[0].owner}
    inputs = {f"shard{number}": shard for number, shard in enumerate(vectors)}
    kept = StepName(index.name, tuple(pair for pair in index.overrides if pair[0] not in fields.SEARCH))
    owner = f"{plan.model(lineage, seed).name}@{kept}"
    return plan.make("build_index", f"indexes/{owner}/{plan.resolve.dataset(dataset).name}", spec, inputs)


def _dense(plan: Planner, lineage: Lineage, seed: int, dataset: str, topics: Topics) -> Artifact:
    model, vectors = plan.model(lineage, seed), shards(plan, lineage, seed, dataset)
    inputs = {"model": model, "tokens": vectors[0].inputs["tokens"], "collection": collection(plan, dataset)}
    inputs |= {f"shard{number}": shard for number, shard in enumerate(vectors)}
    how = {"query_length": plan.resolve.lengths(lineage)[1], "numerics": plan.numerics()}
    spec = {**topics._asdict(), **how, "index": vectors[0].owner, "system": model.name}
    return search(plan, f"{model.name}/{plan.resolve.dataset(dataset).name}.{topics}", spec, inputs)


def search(plan: Planner, stem: str, fields: Spec, inputs: dict[str, Artifact]) -> Artifact:
    """The run of an exact search.

    Args:
        stem: the system, and the name of the run without its digest.
        inputs: with all shards.
    """
    if len(shards_of(inputs)) > 1:
        inputs = _by_shard(plan, stem, fields, inputs)
    return plan.make("search", f"runs/{stem}", fields, inputs)


def _by_shard(plan: Planner, stem: str, fields: Spec, inputs: dict[str, Artifact]) -> dict[str, Artifact]:
    """The inputs of a run, with the hits in each shard for the shard where ``execution`` has them searched apart.

    Which it was is in no digest: as with shards, finished hits, or a finished run, are used as they are.
    """
    others = {role: made for role, made in inputs.items() if not role.startswith("shard")}
    stage, spec = stages.load("search_shard").planned(fields, names(others))  # the spec of the run
    name, hits = f"{stem}-{digest(spec)}", {}
    for role, shard in shards_of(inputs).items():
        folder = f"results/hits/{name}/{shard.name}"
        hits[role.replace("shard", "hit")] = Artifact(stage, folder, spec, others | {"shard0": shard})
    asked = plan.config.execution.search_by_shard and not Path(f"results/runs/{name}/{MANIFEST}").is_file()
    if not asked and not all(Path(each.manifest).is_file() for each in hits.values()):
        return inputs
    return others | {role: plan.keep(each) for role, each in hits.items()}


def shards_of(inputs: dict[str, Artifact]) -> dict[str, Artifact]:
    """The shards that an exact search reads, by role, itself or by a job for each."""
    found = {role: made for role, made in inputs.items() if role.startswith("shard")}
    for role, made in inputs.items():
        if made.stage == "search_shard":
            found[role.replace("hit", "shard")] = made.inputs["shard0"]
    return found


def shards(plan: Planner, lineage: Lineage, seed: int, dataset: str) -> list[Artifact]:
    """A dataset's vectors; the number of shards is execution, so it is in their names but in no digest.

    Vectors that are there in another number of shards than the configuration's are used as they are. A step that trains
    the encoder of queries alone leaves them as they were.
    """
    while lineage.steps and getattr(plan.resolve.step(lineage.steps[-1]), "negatives", "") == "index":
        lineage = lineage.parent
    model = plan.model(lineage, seed)
    inputs = {"model": model, "tokens": tokens(plan, dataset, plan.resolve.backbone(lineage))}
    fields = {"length": plan.resolve.passage_length(lineage, dataset), "numerics": plan.numerics()}
    if (stored := plan.config.numerics.vectors) != "fp32":
        fields["vectors"] = stored
    _, spec = stages.load("encode").planned(fields, names(inputs))
    folder = f"results/indexes/{model.name}/{plan.resolve.dataset(dataset).name}-{digest(spec)}"
    count = _finished_count(Path(folder), plan.config.execution.shards_of(plan.resolve.dataset(dataset).name))
    return [plan.keep(Artifact("encode", f"{folder}/{n:03d}-of-{count:03d}", spec, inputs)) for n in range(count)]


def _finished_count(folder: Path, wanted: int) -> int:
    """The number of shards in which a collection's vectors are finished; the wanted one if there are none."""
    try:
        names = [entry.name for entry in os.scandir(folder) if NAME.fullmatch(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return wanted
    finished = Counter(int(name.rpartition("-")[2]) for name in names if (folder / name / MANIFEST).is_file())
    counts = [count for count, number in finished.items() if count == number]
    return wanted if wanted in counts else min(counts, default=wanted)


def _fusion(plan: Planner, system: str, fields: Fusion, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    lists = _lists(plan, fields, seed, dataset, topics._replace(depth=fields.depth))
    how = fields.model_dump(mode="json", by_alias=True, exclude={"kind", *LISTS})
    impl = stages.load("fuse").impl
    owner = f"{_of_seed(plan, system, seed)}-{digest([impl, how, *(each.owner for each in lists.values())])}"
    inputs = {**lists, "weight": _weight(plan, owner, fields, seed, dataset, topics.split)}
    spec = {**topics._asdict(), "system": owner, "collection": collection(plan, dataset).name}
    return plan.make("fuse", f"runs/{owner}/{plan.resolve.dataset(dataset).name}.{topics}", spec, inputs)


def _weight(plan: Planner, owner: str, fields: Fusion, seed: int | None, dataset: str, requested: str) -> Artifact:
    """The weight of the sparse scores, from runs over samples of the training and of the held-out queries.

    If several splits exist, they are those of the draw that ``requested`` belongs to.
    """
    splits = plan.resolve.dataset(dataset).fields.splits
    choosing = {
        CHOOSING[split.role]: name
        for name, split in splits.items()
        if split.role in CHOOSING and serves(name, requested)
    }
    if fields.tuned_on not in choosing:
        role = next(role for role, role_name in CHOOSING.items() if role_name == fields.tuned_on)
        raise EncoreError(
            f"fusion {owner.rsplit('-', 1)[0]!r}: dataset {plan.resolve.dataset(dataset).name!r} has no split of role "
            f"{role!r} to choose the weight on; add one, or set `tuned_on`"
        )
    inputs = {"collection": collection(plan, dataset)}
    for role_name, split in choosing.items():
        lists = _lists(plan, fields, seed, dataset, Topics(split, fields.depth, fields.queries, fields.sample))
        inputs |= {f"{role}_{role_name.replace('-', '_')}": made for role, made in lists.items()}
    spec = {
        "weights": fields.weights.values(),
        "measure": _expression(splits, fields.measure, plan.resolve.dataset(dataset).name),
        "tuned_on": fields.tuned_on,
        "splits": choosing,
        "queries": fields.queries,
        "sample": fields.sample,
    }
    return plan.make("tune_fusion", f"fusions/{owner}/{plan.resolve.dataset(dataset).name}", spec, inputs)


def _lists(plan: Planner, fields: Fusion, seed: int | None, dataset: str, topics: Topics) -> dict[str, Artifact]:
    return {role: plan.run(getattr(fields, role), seed, dataset, topics) for role in LISTS}


def _expression(splits: dict[str, Any], measure: str, dataset: str) -> str:
    """How the dataset spells a measure: as on the held-out queries, or else as on those that it reports."""
    ordered = sorted(splits.values(), key=lambda split: ["valid", "test", "graded", "train"].index(split.role))
    for split in ordered:
        if measure in split.measures:
            return str(split.measures[measure])
    known = {name for split in ordered for name in split.measures}
    raise EncoreError(
        f"a fusion is to be best at {measure!r}, which dataset {dataset!r} lacks{nearest(measure, known)}"
    )


# How the run of each kind of system is planned: (plan, name, fields, seed, dataset, topics).
KINDS: dict[str, Callable[..., Artifact]] = {"bm25": _bm25, "fusion": _fusion, "rerank": _rerank, "run": _taken}
