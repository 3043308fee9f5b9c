"""What a table's models start from and have learned from: sentences that follow from the plan of the run."""

from collections.abc import Iterator, Mapping, Sequence

from encore.config.finetuning import FinetuneStep
from encore.config.systems import Rerank
from encore.plan.lineage import Lineage
from encore.plan.plan import Plan
from encore.products.tables.notes import published_name
from encore.products.tables.planned import PlannedCell
from encore.products.tables.rates import grouped

Models = Mapping[str, list[Lineage]]  # behind each system


def start_notes(plan: Plan, cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Sentences on the models behind the cells that are run."""
    run = [cell for cell in cells if cell.request.reads and cell.request.system]
    models = {cell.request.system: plan.resolve.lineages_of(cell.request.system) for cell in run}
    yield from _starts(plan, run, models)
    yield from _replaced(plan, run)
    yield from _untaught(plan, run, models)
    yield from _equal(plan, run)
    yield from _reranked(plan, run)
    yield from _beginnings(plan, run, models)


def _starts(plan: Plan, run: Sequence[PlannedCell], models: Models) -> Iterator[str]:
    """What training starts from; of the user's own data another note names a checkpoint."""
    found: dict[str, dict[str, None]] = {}
    is_trained = any(lineage.steps for lineages in models.values() for lineage in lineages)
    for cell in run if is_trained else ():
        for lineage in models[cell.request.system]:
            entry = plan.catalogue.backbones[lineage.backbone]
            if plan.config.proxy_data != "own" or not entry.checkpoint:
                found.setdefault(cell.row.label, {})[_start(plan, lineage.backbone)] = None
    starts = {label: " and ".join(own) for label, own in found.items()}
    if len({*starts.values()}) > 1:
        yield f"Models start: {grouped(starts, 'from')}."
    elif starts:
        yield f"Every model starts from {starts.popitem()[1]}."


def _start(plan: Plan, backbone: str) -> str:
    entry = plan.catalogue.backbones[backbone]
    shared = entry.lineage and f"one model for all seeds ({entry.lineage})"
    words = {"random": "random weights", "lsa": "random weights with word embeddings of the corpus (LSA)"}
    return words.get(entry.start) or shared or str(published_name(plan, backbone))


def _replaced(plan: Plan, run: Sequence[PlannedCell]) -> Iterator[str]:
    """Which rows have another beginning than the table names."""
    found = dict[str, str]()
    for cell in run:
        if taken := plan.resolve.replaced_beginning(cell.request.system):
            found[cell.row.label] = f"{plan.config.scale.replace_prefix[taken]} for {taken}"
    if found:
        yield f"In place of what the table names (`replace_prefix`): {grouped(found)}."


def _untaught(plan: Plan, run: Sequence[PlannedCell], models: Models) -> Iterator[str]:
    """That no model learned from queries like those that it answers, or from any."""
    searched = {(cell.request.dataset, cell.request.system) for cell in run if cell.request.expression}
    learned = {
        (dataset, step.collection)
        for dataset, system in searched
        for lineage in models[system]
        for each in plan.resolve.learned_from(lineage)
        for step in map(plan.resolve.step, each.steps)
        if isinstance(step, FinetuneStep)
    }
    if any(models[system] for _, system in searched) and not learned:
        yield "No model here was fine-tuned."
    elif learned and not any(_may_share(plan, *pair) for pair in learned):
        yield "No model learned here from a query of a collection that it searches."


def _may_share(plan: Plan, searched: str, learned: str) -> bool:
    one, two = plan.resolve.dataset(searched), plan.resolve.own(learned)
    return one.questions == two.questions or one.may_share_queries(two)


def _equal(plan: Plan, run: Sequence[PlannedCell]) -> Iterator[str]:
    """Objectives of a setting that are one model by different names."""
    made: dict[tuple[str, str], dict[str, None]] = {}
    for cell in (cell for cell in run if cell.row.role == "objective"):
        if cell.request.system not in plan.catalogue.systems:
            made.setdefault((cell.row.setting, cell.row.label), {})[plan.resolve.meaning(cell.request.system)] = None
    rows: dict[tuple[str, ...], list[str]] = {}
    for (setting, label), own in made.items():
        rows.setdefault((setting, *own), []).append(label)
    for labels in (labels for labels in rows.values() if len(labels) > 1):
        yield f"{' and '.join(labels)} are one model here, by different names."


def _reranked(plan: Plan, run: Sequence[PlannedCell]) -> Iterator[str]:
    """How many results of a first stage are ranked again."""
    named = [cell.request.system for cell in run if cell.request.system in plan.catalogue.systems]
    systems = {name: plan.resolve.system(name) for name in named}
    depths = {
        name: f"the first {system.depth:,} of {system.first}"
        for name, system in systems.items()
        if isinstance(system, Rerank) and system.first
    }
    if depths:
        yield f"Ranked again: {grouped(depths)}."


def _beginnings(plan: Plan, run: Sequence[PlannedCell], models: Models) -> Iterator[str]:
    """How much models read of the documents that Encore ships; of others another note counts what is cut off."""
    read: dict[str, set[int]] = {}
    for cell in (cell for cell in run if cell.request.expression):
        dataset = plan.resolve.dataset(cell.request.dataset)
        if dataset.fields.embedded and dataset.fields.length:
            lengths = {plan.resolve.passage_length(each, cell.request.dataset) for each in models[cell.request.system]}
            read.setdefault(dataset.name, set()).update(lengths)
    for name, lengths in read.items():
        yield f"{name}: models read the first {' or '.join(map(str, sorted(lengths)))} tokens of a document (FirstP)."
