"""The confounds: what differs between the rows of one setting besides what the table compares.

Every fact is taken from what the rows' numbers were made from, so a difference that nobody wrote down is listed too.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from encore.products.report.records import ArtifactRecords, RecordedArtifact
from encore.products.report.slice import ReportSlice
from encore.products.report.tables import ShownTable
from encore.products.tables.table import Row

NONE = "none"


@dataclass(frozen=True)
class RowOrigin:
    """What a row's numbers were made from, of its lowest seed; ``seeds`` are all of them."""

    artifacts: list[RecordedArtifact]
    seeds: list[int]
    site: ReportSlice

    def of(self, kind: str) -> list[RecordedArtifact]:
        """Those of a stage, whatever its objective."""
        return [each for each in self.artifacts if each.kind == kind]


@dataclass(frozen=True)
class Confound:
    """Something in which rows of one setting of a table differ: the labels of the rows that have each value."""

    table: ShownTable
    setting: str
    fact: str
    groups: dict[str, list[str]]


def find_confounds(tables: Iterable[ShownTable], records: ArtifactRecords, site: ReportSlice) -> list[Confound]:
    """What rows of one setting differ in, of every table that was made."""
    return [found for shown in tables if shown.made for found in _of_table(shown, records, site)]


def _of_table(shown: ShownTable, records: ArtifactRecords, site: ReportSlice) -> Iterator[Confound]:
    for setting, rows in shown.table.groups():
        made = {row.label: _made(row, records, site) for row in rows if _folders(row)}
        for name, fact in FACTS.items():
            groups: dict[str, list[str]] = {}
            for label, origin in made.items():
                if value := fact(origin):
                    groups.setdefault(value, []).append(label)
            if len(groups) > 1:
                yield Confound(shown, setting, name, groups)


def _folders(row: Row, seed: int | None = None) -> list[str]:
    reads = [read for cell in row.cells.values() for read in cell.request.reads if seed in (None, read.seed)]
    return list(dict.fromkeys(read.folder for read in reads))


def _made(row: Row, records: ArtifactRecords, site: ReportSlice) -> RowOrigin:
    reads = [read for cell in row.cells.values() for read in cell.request.reads]
    seeds = sorted({read.seed for read in reads if read.seed is not None})
    return RowOrigin(records.upstream(_folders(row, seeds[0] if seeds else None)), seeds, site)


def _listed(found: set[str]) -> str:
    return ", ".join(sorted(found))


def _models(made: RowOrigin) -> bool:
    """Whether anything in it was trained or started: nothing of a model differs from what has none."""
    return bool(made.of("start"))


def _of_models(fact: Callable[[RowOrigin], str]) -> Callable[[RowOrigin], str]:
    return lambda made: fact(made) if _models(made) else ""


def _operations(kind: str) -> Callable[[RowOrigin], str]:
    """Two digits: budgets are met to about a hundredth."""

    def total(made: RowOrigin) -> str:
        spent = sum(each.results.get("flops", 0) for each in made.of(kind))
        return f"{spent:.1e}" if spent else NONE

    return _of_models(total)


def _steps(kind: str, field: str) -> Callable[[RowOrigin], str]:
    """A field of every training step of a kind, in the order of the folders."""

    def listed(made: RowOrigin) -> str:
        found = [str(value) for each in made.of(kind) if (value := each.spec.get("step", {}).get(field)) is not None]
        return ", ".join(dict.fromkeys(found))

    return _of_models(listed)


def _texts(kind: str) -> Callable[[RowOrigin], str]:
    return _of_models(lambda made: _listed({_collection(each, made) for each in made.of(kind)} - {""}) or NONE)


def _collection(model: RecordedArtifact, made: RowOrigin) -> str:
    """The collection that a step learned from, known by the tokens that it read."""
    folders = {each.folder: each for each in made.artifacts}
    tokens = folders.get(model.inputs.get("tokens", ""))
    collection = folders.get(tokens.inputs.get("collection", "")) if tokens else None
    return collection.name if collection else ""


def _packing(step: dict[str, Any]) -> str:
    """How single texts are made of articles; nothing for pairs."""
    if "packing" not in step:
        return ""
    short = step.get("short_texts", 0)
    return str(step["packing"]) + (f", {short:.0%} of them shorter" if short else "")


def _masking(step: dict[str, Any]) -> str:
    """What a pre-training step masks; nothing where it has no loss of masked tokens."""
    if "mask_ratio" not in step or not step.get("mlm_weight", 1):
        return ""
    return f"{step['mask_ratio']:.0%} of {'whole words' if step.get('whole_word') else 'pieces'}"


def _searched(made: RowOrigin) -> str:
    searched = (each.inputs.get("collection", "") for each in made.of("evaluate"))
    return _listed({folder.rsplit("/", 1)[-1] for folder in searched if folder})


def _trials(made: RowOrigin) -> str:
    """How many values were tried for the steps of a row that any was tried for."""
    tried = []
    for each in [*made.of("pretrain"), *made.of("finetune")]:
        step = each.stem.rsplit("+", 1)[-1].partition("~")[0]
        tried += [f"{number} of {field}" for field, number in made.site.trials.get(step, {}).items()]
    return ", ".join(dict.fromkeys(tried)) or NONE


FACTS: dict[str, Callable[[RowOrigin], str]] = {
    "Seeds": _of_models(lambda made: str(len(made.seeds))),
    "Start": _of_models(lambda made: _listed({each.stem for each in made.of("start")})),
    "Texts of pre-training": _texts("pretrain"),
    "Packing of texts": _of_models(
        lambda made: _listed({_packing(each.spec["step"]) for each in made.of("pretrain")} - {""})
    ),
    "Masking of pre-training": _of_models(
        lambda made: _listed({_masking(each.spec["step"]) for each in made.of("pretrain")} - {""})
    ),
    "Operations of pre-training": _operations("pretrain"),
    "Texts of fine-tuning": _texts("finetune"),
    "Operations of fine-tuning": _operations("finetune"),
    "Batch of fine-tuning": _steps("finetune", "batch"),
    "Training queries": _steps("finetune", "queries"),
    "Negatives": _steps("finetune", "negatives"),
    "Trials of a step": _of_models(_trials),
    "Texts searched": _searched,
}
