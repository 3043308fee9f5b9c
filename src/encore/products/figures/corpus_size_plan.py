"""The figure of the growing collection: which runs and scores it shows, at which sizes."""

from typing import Any

from encore.config.lineage import split_index
from encore.config.run import CorpusSize
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Topics, names
from encore.plan.plan import Plan
from encore.products.slices import CORPUS_SIZE


def corpus_size_plan(plan: Plan) -> dict[str, Any]:
    """Every system with its runs and scores at each size, under each seed; no rows where none is requested.

    Raises:
        EncoreError: a system is no lineage that is searched exactly, or the dataset has no such split.
    """
    fields = plan.config.corpus_size
    if fields is None:
        return {"name": CORPUS_SIZE, "rows": [], "proxy_data": plan.config.proxy_data}
    splits = plan.resolve.dataset(fields.dataset).splits
    if fields.split not in splits or not splits[fields.split].measures:
        raise EncoreError(f"corpus_size.split: {fields.split!r} has no measures{nearest(fields.split, splits)}")
    rows = [
        {
            "label": label,
            "system": plan.resolve.canonical(searched(plan, system)),
            "seeds": [point for seed in plan.config.seeds for point in points(plan, fields, system, seed)],
        }
        for label, system in fields.systems.items()
    ]
    about: dict[str, Any] = {"dataset": plan.resolve.dataset_name(fields.dataset), "split": fields.split}
    about |= {"measures": list(splits[fields.split].measures), "depth": fields.depth}
    return {"name": CORPUS_SIZE, **about, "rows": rows, "proxy_data": plan.config.proxy_data}


def corpus_size_artifacts(plan: Plan) -> list[Artifact]:
    """Every folder that the figure reads: scores, and the runs, which record how many passages were searched."""
    points = [point for row in corpus_size_plan(plan)["rows"] for point in row["seeds"]]
    return [plan.find(point[kind]) for point in points for kind in ("scores", "run")]


def searched(plan: Plan, system: str) -> str:
    """A lineage that is searched exactly, as it was named.

    Raises:
        EncoreError: it is none.
    """
    if system in plan.catalogue.systems or split_index(system)[1] is not None:
        raise EncoreError(f"systems: {system!r} is no lineage searched exactly, whose vectors could be masked")
    return system


def points(plan: Plan, fields: CorpusSize, system: str, seed: int) -> list[dict[str, Any]]:
    """A lineage's runs and scores from the smallest collection to all of it."""
    topics = Topics(_asked(plan, fields), plan.config.depth, fields.queries, fields.sample)
    whole = plan.run(system, seed, fields.dataset, topics)
    parts = [(size, _part(plan, fields, whole, topics, size)) for size in ("start", *fields.sizes)]
    return [
        {"seed": seed, "size": size, "run": run.folder, "scores": _scores(plan, fields, run, topics, size).folder}
        for size, run in [*parts, ("all", whole)]
    ]


def _part(plan: Plan, fields: CorpusSize, whole: Artifact, topics: Topics, size: str | float) -> Artifact:
    """A run over a part of the collection: the run over all of it, with its vectors masked."""
    subset = _subset(plan, fields)
    spec = {**whole.spec, "size": size, "subset": subset.name}
    stem = f"runs/{whole.owner}/{plan.resolve.dataset_name(fields.dataset)}.{topics}.{_called(size)}"
    return plan.make("search", stem, spec, {**whole.inputs, "subset": subset})


def _subset(plan: Plan, fields: CorpusSize) -> Artifact:
    """The order in which the collection grows."""
    topics = Topics(_asked(plan, fields), fields.depth, fields.queries, fields.sample)
    inputs = {"run": plan.run("bm25", None, fields.dataset, topics), "collection": plan.collection(fields.dataset)}
    spec = {"impl": plan.impl("nested_corpora"), **topics._asdict(), "order": fields.order, **names(inputs)}
    return plan.make("nested_corpora", f"subsets/{plan.resolve.dataset_name(fields.dataset)}.{topics}", spec, inputs)


def _scores(plan: Plan, fields: CorpusSize, run: Artifact, topics: Topics, size: str | float) -> Artifact:
    """The measures of the split alone: others that share its queries have relevant passages of their own."""
    inputs = {"run": run, "collection": plan.collection(fields.dataset)}
    measures = {fields.split: plan.resolve.dataset(fields.dataset).splits[fields.split].measures}
    sampled = {"queries": topics.queries, "sample": topics.sample}
    spec = {"impl": plan.impl("evaluate"), "splits": measures, **sampled, **names(inputs)}
    stem = f"scores/{run.owner}/{plan.resolve.dataset_name(fields.dataset)}.{topics}.{_called(size)}"
    return plan.make("evaluate", stem, spec, inputs)


def _asked(plan: Plan, fields: CorpusSize) -> str:
    """The split whose queries the run answers."""
    return plan.resolve.dataset(fields.dataset).splits[fields.split].topics or fields.split


def _called(size: str | float) -> str:
    """A size in a folder's name."""
    return f"{100 * size:g}pct" if isinstance(size, float) else str(size)
