"""What a user may request of Snakemake: the targets that a run declares, and what any target is built from."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from encore import stages
from encore.config.datasets import draw_of
from encore.config.finetuning import FinetuneStep
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, upstream
from encore.plan.lineage import split_index
from encore.plan.plan import Plan
from encore.products.declared import declared_figures
from encore.products.kinds import BY_RULE, PRODUCTS, ProductKind, kind_at
from encore.products.known_numbers import CHECKS
from encore.products.report.plan import REPORT
from encore.products.slices import built_from
from encore.products.tables.plan import has_figure, table_plan
from encore.storage import typed
from encore.storage.files import readable_object

PAGE = BY_RULE[REPORT].files[0]  # of every run
SHORT = {kind.name({}): kind for kind in PRODUCTS if not kind.wildcard}  # names of products of which a run has one


def everything_declared(plan: Plan) -> list[str]:
    """Every table and figure of the configuration, the scores of its further lineages, and the page of all of them."""
    tables = [f"results/tables/{name}.csv" for name in plan.config.tables]
    figures = [f"results/figures/{name}.png" for name in declared_figures(plan)]
    scores = [artifact for name in plan.config.lineages for artifact in lineage_targets(plan, name)]
    checks = BY_RULE[CHECKS].files[:1] if plan.config.checks else []
    return [*tables, *figures, *checks, *scores, PAGE]


def kind_of(plan: Plan, target: str) -> tuple[ProductKind, str] | None:
    """The kind and the name of the product that a target belongs to, or None if it belongs to none.

    Args:
        target: as Snakemake takes it: ``./results/...`` and absolute paths too.
    """
    return kind_at(os.path.relpath(target), plan.catalogue.figures.__contains__)


def is_of_another_plan(plan: Plan, record: Path) -> bool:
    """Whether a product in results has other cells, words or notes than are planned: another run's, or an older one's.

    Args:
        record: its manifest; one that does not say what was planned is taken for this run's.
    """
    found = kind_of(plan, str(record))
    try:
        return found is None or built_from(record, found[0].slice(plan, found[1]).dumped()) is False
    except EncoreError:
        return True


def _is_of_another_run(plan: Plan, kind: ProductKind, name: str) -> bool:
    """Whether a product in results has another plan; of a page, whose plan grows with what is made, another run."""
    record = Path(kind.named(kind.record, name))
    if kind.rule != REPORT:
        return is_of_another_plan(plan, record)
    match readable_object(record):
        case {"spec": {"run": str(run)}}:
            return run != plan.config.called
    return False


def summary(plan: Plan, root: str | None, run: str, requested: Iterable[str] = ()) -> str:
    """The files of a finished run that are worth a look, the root of its results, and what to do next.

    Args:
        root: of what is in results, if anything is.
        run: the run's file, as commands name it.
        requested: the targets that the user named, declared by the run or not.
    """
    named = [os.path.relpath(target) for target in requested if "/" in target]
    products = {path: kind_of(plan, path) for path in (*named, *everything_declared(plan))}
    made = {
        path: found
        for path, found in products.items()
        if Path(path).is_file() and (path in named or (found and not _is_of_another_run(plan, *found)))
    }
    shown = [path for path, found in made.items() if found and found[0].category in ("Tables", "Figures")]
    said = f"tables and figures made: {len(shown)}" if shown else "what was requested is made"
    lines = [f"{plan.config.title}: {said}", *(f"  {path}" for path in made)]
    told = "one digest of all results; keep it, and `encore audit --root` with it tells later whether any has changed"
    lines += [f"root {root}: {told}"] if root else []
    table = next((found[1] for found in made.values() if found and found[0].rule == "table"), None)
    show, audit = typed.encore("show", table or "", run=run), typed.encore("audit", run=run)
    advice = f"Show a table with `{show}`, verify all with `{audit}`." if table else f"Verify all with `{audit}`."
    return "\n".join([*lines, advice])


def lineage_targets(plan: Plan, name: str) -> list[str]:
    """The scores of a lineage or system on every dataset, for every seed; a lineage's models if they score pairs."""
    if name not in plan.catalogue.systems:
        own, index = split_index(name)
        lineage = plan.resolve.lineage(own)
        if plan.resolve.scorer(lineage) != "vector" and index is None:
            return [plan.model(lineage, seed).manifest for seed in plan.config.seeds]
    reported = dict.fromkeys((dataset, topics) for dataset, _, topics in reported_splits(plan, name))
    return [plan.scores(name, seed, *each).manifest for seed in plan.config.seeds for each in reported]


def reported_splits(plan: Plan, name: str) -> list[tuple[str, str, str]]:
    """The splits that a lineage or system is tested on: each with its dataset, and the split whose queries it has."""
    datasets = {dataset: plan.resolve.dataset(dataset).fields for dataset in plan.resolve.datasets.in_use()}
    return [
        (dataset, key, split.topics or key)
        for dataset, fields in datasets.items()
        for key, split in ({} if fields.zero_shot else fields.splits).items()
        if split.measures and split.role in ("test", "graded") and _is_its_own(plan, name, dataset, key)
    ]


def _is_its_own(plan: Plan, name: str, dataset: str, split: str) -> bool:
    """True if a lineage is tested on a split by default: on a draw's only after training on it, a system never."""
    if draw_of(split) is None or name in plan.catalogue.systems:
        return draw_of(split) is None
    steps = [plan.resolve.step(step) for step in plan.resolve.lineage(split_index(name)[0]).steps]
    draws = {
        draw_of(step.train_split) for step in steps if isinstance(step, FinetuneStep) and step.collection == dataset
    }
    return draws == {draw_of(split)}


def find(plan: Plan, folder: str) -> Artifact:
    """The artifact in a folder: named by it, declared by the configuration, or in the index of an earlier plan."""
    try:
        return plan.find(folder)
    except EncoreError:
        declared = upstream(declared_reads(plan))
        return next((artifact for artifact in declared if artifact.folder == folder), None) or plan.find(folder)


def reads_of_targets(plan: Plan, targets: Iterable[str]) -> dict[str, list[Artifact]]:
    """For each target what it is made from; a rule, or no target at all, is for what the configuration declares."""
    targets = list(targets)
    files = [target for target in targets if "/" in target]
    if not files or len(files) < len(targets):
        files += everything_declared(plan)
    return {target: reads_of(plan, target) for target in files}


def needed_by(plan: Plan, targets: Sequence[str]) -> list[Artifact]:
    """All that targets are made from; of all that the run declares without targets."""
    return upstream(read for reads in reads_of_targets(plan, targets).values() for read in reads)


def downloads(plan: Plan) -> list[str]:
    """The manifests of all that the configuration needs from the network."""
    needed = needed_by(plan, [])
    return [artifact.manifest for artifact in needed if artifact.stage in stages.that("fetches")]


def reads_of(plan: Plan, target: str) -> list[Artifact]:
    """What a target is built from, or the artifact that it is a file of; of the report, all that is declared."""
    if (found := kind_of(plan, target)) is None:
        return [find(plan, str(PurePosixPath(os.path.relpath(target)).parent))]
    kind, name = found
    if kind.rule == REPORT:
        return list(declared_reads(plan))
    return [plan.find(str(folder)) for folder in kind.slice(plan, name).reads()]


def declared_reads(plan: Plan) -> Iterator[Artifact]:
    """What the declared tables and figures are built from, and what is built of further lineages."""
    for target in everything_declared(plan):
        if target != PAGE:
            yield from reads_of(plan, target)


def check_target(plan: Plan, target: str) -> None:
    """Refuse a target that nothing makes."""
    path = PurePosixPath(os.path.relpath(target))
    if found := kind_of(plan, target):
        kind, name = found
        if kind.wildcard == "table" and name not in plan.catalogue.tables:
            folder = path.parts[1]
            known = [*plan.catalogue.tables, *(plan.catalogue.figures if folder == "figures" else [])]
            raise EncoreError(f"target {target!r}: there is no {folder[:-1]} {name!r}{nearest(name, known)}")
        if kind.rule != REPORT:
            kind.slice(plan, name)
        return
    match path.parts:
        case ("results", "tables" | "figures" as folder, *_):
            files = [file for kind in PRODUCTS for file in kind.files if file.startswith(f"results/{folder}/")]
            endings = dict.fromkeys(f".{file.partition('.')[2]}" for file in files)
            raise EncoreError(f"target {target!r}: {folder} are written as {', '.join(endings)}")
        case ("results", "plan" | "logs" | "state", *_):
            raise EncoreError(f"target {target!r} is made on the way to others and is not a target")
        case ("results", folder, *rest) if rest and folder != REPORT:
            find(plan, str(path.parent))
        case _:
            known = [file for name in SHORT for file in SHORT[name].files]
            near = nearest(target, [*everything_declared(plan), *known])
            raise EncoreError(f"target {target!r} is not a file of results/{near}")


def requested_targets(plan: Plan, names: Iterable[str]) -> list[str]:
    """The files that names or paths mean: of a table's name the table, and its figure if it has one."""
    found: dict[str, None] = {}
    for name in names:
        if name and Path(os.path.relpath(name)).parts[:1] == ("results",):
            meant = [name]
        elif name in SHORT:
            meant = SHORT[name].files[:1]
        else:
            meant = [f"results/tables/{name}.csv"] if name in plan.catalogue.tables else []
            if has_figure(table_plan(plan, name)) if meant else name in plan.catalogue.figures:
                meant.append(f"results/figures/{name}.png")
        if not meant:
            known = [*plan.catalogue.tables, *plan.catalogue.figures, *SHORT]
            raise EncoreError(f"there is no table, figure or target {name!r}{nearest(name, known)}")
        for target in meant:
            check_target(plan, target)
        found |= dict.fromkeys(meant)
    return list(found)


def requested_products(plan: Plan, wanted: Iterable[str]) -> Iterator[tuple[Artifact, str]]:
    """Each target that is a product, as an artifact of what it reads, and its file."""
    for target in wanted:
        if (found := kind_of(plan, target)) is None:
            continue
        kind, name = found
        read = {each.folder: each for each in reads_of(plan, target)}
        yield Artifact(kind.rule, kind.named(kind.stem, name), {}, read), os.path.relpath(target)
