"""Notes for a table's reader from its plan: which cells are empty and why, what is copied, and what replaces what."""

from collections.abc import Iterator

from encore.config import published
from encore.config.datasets import parse_measure
from encore.plan import lineage as naming
from encore.plan import tuning
from encore.plan.plan import Plan
from encore.plan.tuning import Trial, at_an_edge
from encore.products.tables.entries import RowEntry
from encore.products.tables.planned import FROM_RELEASED, PlannedCell, origin
from encore.products.tables.sources.base import lineage_of


def notes(plan: Plan, rows: list[RowEntry], cells: list[PlannedCell]) -> list[str]:
    """Sentences, each once, in the order of the table."""
    read = (plan.made[read.folder] for cell in cells for read in cell.request.reads)
    found = [*_copied(rows), *_released(plan, rows, cells), *_absent(plan, cells), *_empty(cells)]
    if plan.config.proxy_data == "own":
        found += _encoders(plan, cells)
    found += [*_beyond_runs(plan, cells), *_at_an_edge(plan, cells), *_unnamed_similarity(plan, cells)]
    found += plan.resolve.datasets.notes_behind(read)
    return list(dict.fromkeys(found))


def _copied(rows: list[RowEntry]) -> Iterator[str]:
    """Who printed the rows that were not run."""
    labels: dict[str, list[str]] = {}
    for row in (row for row in rows if row.reported_only):
        labels.setdefault(row.reported_only, []).append(row.label)
    if labels:
        yield "Copied, not run: " + "; ".join(f"{', '.join(own)} from {who}" for who, own in labels.items()) + "."


def _released(plan: Plan, rows: list[RowEntry], cells: list[PlannedCell]) -> Iterator[str]:
    """Which rows start from the weights that others released."""
    of_row = {id(row): [cell.request for cell in cells if cell.row is row] for row in rows}
    labels = dict.fromkeys(row.label for row in rows if origin(plan, row, of_row[id(row)]) == FROM_RELEASED)
    if labels:
        yield f"Run from released weights: {', '.join(labels)}."


def _encoders(plan: Plan, cells: list[PlannedCell]) -> Iterator[str]:
    """Which published encoders rows are, or start from: the checkpoint, and the digest that pins it."""
    lineages = [lineage_of(plan, cell.request) for cell in cells if cell.request.reads and cell.request.system]
    for backbone in dict.fromkeys(each.backbone for each in lineages if each):
        entry, name = plan.catalogue.backbones[backbone], published_name(plan, backbone)
        source = plan.catalogue.sources.get(entry.checkpoint or "")
        weights = (entry.sha256[file] for file in entry.sha256 if file.endswith((".safetensors", ".bin")))
        digests = (file.digest for file in source.files) if source else (f"sha256:{digest}" for digest in weights)
        pins = [*filter(None, digests), *([f"commit {entry.revision}"] if entry.revision else [])]
        if name:
            yield f"The encoder is {name} ({', '.join([f'backbone {backbone}', *pins])})."


def published_name(plan: Plan, backbone: str) -> str | None:
    """What people call the checkpoint that a backbone starts from: an id, a folder or an archive; or None."""
    checkpoint = plan.catalogue.backbones[backbone].checkpoint
    if checkpoint in plan.catalogue.sources:
        checkpoint = plan.catalogue.sources[checkpoint].files[0].file
    if checkpoint is None:
        return None
    is_path = "://" in checkpoint or checkpoint.startswith((".", "/"))
    return checkpoint.rstrip("/").rpartition("/")[2] if is_path else checkpoint


def _unnamed_similarity(plan: Plan, cells: list[PlannedCell]) -> Iterator[str]:
    """Which published encoders are compared by sentence-transformers' default."""
    lineages = [lineage_of(plan, cell.request) for cell in cells if cell.request.reads and cell.request.system]
    entries = {each.backbone: plan.catalogue.backbones[each.backbone] for each in lineages if each}
    if names := [name for name, entry in entries.items() if published.takes_default_similarity(entry)]:
        yield (
            f"{', '.join(names)}: the published encoder names no similarity; its vectors are compared by cosine, as "
            "sentence-transformers does (`similarity: dot` of the backbone, if it was trained for dot products)."
        )


def _absent(plan: Plan, cells: list[PlannedCell]) -> Iterator[str]:
    """Why cells are empty that the run's collections cannot have, by column; or whose backbone has no replacement."""
    labels: dict[str, dict[str, None]] = {}
    shown = {part: mean.label for mean in (cell.column for cell in cells) for part in mean.mean_of}
    for cell in cells:
        if cell.request.absent:
            label = shown.get(cell.column.id) if cell.column.hidden else None
            if cell.request.system and cell.request.absent == plan.resolve.missing_start(cell.request.system):
                label = cell.row.label
            labels.setdefault(cell.request.absent, {})[label or cell.column.label] = None
    for reason, columns in labels.items():
        yield f"{', '.join(columns)} {'are' if len(columns) > 1 else 'is'} not testable here: {reason}."


def _empty(cells: list[PlannedCell]) -> Iterator[str]:
    """Why cells are empty that a row cannot have, one sentence for a row and a reason."""
    columns: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        if reason := cell.row.not_applicable.get(cell.column.id):
            columns.setdefault((cell.row.label, reason), []).append(cell.column.label)
    for (row, reason), labels in columns.items():
        yield f"{row} has no {' and no '.join(labels)}: {reason}."


def _beyond_runs(plan: Plan, cells: list[PlannedCell]) -> Iterator[str]:
    """Which measures count further than runs go."""
    depth = plan.config.depth
    measures = {cell.request.value: cell.request.expression for cell in cells if cell.request.expression}
    if further := [name for name, measure in measures.items() if (parse_measure(measure).cutoff or 0) > depth]:
        yield f"Runs have {depth:,} ranks (`depth`), which is as far as {', '.join(further)} can count."


def _at_an_edge(plan: Plan, cells: list[PlannedCell]) -> Iterator[str]:
    """Which rows were trained with a value that is best at the edge of what was tried for it, from the same start."""
    edges = [trial for trials in tuning.recorded() for trial in at_an_edge(trials)]
    found: dict[str, None] = {}
    for cell in cells if edges else ():
        if cell.request.reads and cell.request.system:
            found |= dict.fromkeys(_edges_of(plan, cell, edges))
    if found:
        yield f"Best at the edge of what was tried, so a value beyond it may be better: {', '.join(found)}."


def _edges_of(plan: Plan, cell: PlannedCell, edges: list[Trial]) -> Iterator[str]:
    lineage = lineage_of(plan, cell.request)
    if lineage is None:
        return
    for trial in edges:
        alike = lineage.steps if naming.parse(trial.lineage).backbone == lineage.backbone else ()
        if trial.value in [getattr(plan.resolve.step(step), trial.field) for step in alike if step.name == trial.step]:
            shared = trial.recipe.startswith(f"{trial.step}~")
            yield f"{trial.step if shared else cell.row.label} ({trial.field} {naming.spelled(trial.value)})"
