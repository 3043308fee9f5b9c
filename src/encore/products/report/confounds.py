"""The confounds: what differs between the rows of one setting besides what the table compares.

Every fact is taken from what the rows' numbers were made from, so a difference that nobody wrote down is listed too.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from encore.products.report.records import ArtifactRecords, RecordedArtifact
from encore.products.report.slice import ReportSlice
from encore.products.report.tables import ShownTable
from encore.products.tables.grid import Row

NONE = "none"
SEARCHED = "Texts searched"


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
    found = []
    for shown in tables:
        for setting, rows in shown.table.groups() if shown.made else ():
            made = {row.label: origin for row in rows if (origin := _origin(row, records, site))}
            for name, fact in FACTS.items():
                groups: dict[str, list[str]] = {}
                for label, origin in made.items():
                    if (name == SEARCHED or origin.of("start")) and (value := fact(origin)):
                        groups.setdefault(value, []).append(label)
                if len(groups) > 1:
                    found.append(Confound(shown, setting, name, groups))
    return found


def _origin(row: Row, records: ArtifactRecords, site: ReportSlice) -> RowOrigin | None:
    """What a row's numbers were made from; None for one that reads nothing."""
    reads = [read for cell in row.cells.values() for read in cell.request.reads]
    seeds = sorted({read.seed for read in reads if read.seed is not None})
    folders = dict.fromkeys(read.folder for read in reads if not seeds or read.seed == seeds[0])
    return RowOrigin(records.upstream(folders), seeds, site) if reads else None


def _listed(found: Iterable[str]) -> str:
    return ", ".join(sorted(set(found) - {""}))


def _operations(made: RowOrigin, kind: str) -> str:
    """To two digits, since budgets are met to about a hundredth."""
    spent = math.fsum(each.results.get("flops", 0) for each in made.of(kind))
    return f"{spent:.1e}" if spent else NONE


def _finetunings(made: RowOrigin, field: str) -> str:
    """A field of every fine-tuning step, in the order of the folders."""
    found = [str(value) for each in made.of("finetune") if (value := each.spec.get("step", {}).get(field)) is not None]
    return ", ".join(dict.fromkeys(found))


def _texts(made: RowOrigin, kind: str) -> str:
    """The collections that steps learned from, known by the tokens that they read."""
    folders = {each.folder: each for each in made.artifacts}
    tokens = [folders.get(each.inputs.get("tokens", "")) for each in made.of(kind)]
    collections = [folders.get(each.inputs.get("collection", "")) for each in tokens if each]
    return _listed(each.name for each in collections if each) or NONE


def _packing(step: dict[str, Any]) -> str:
    """How single texts are cut from articles; empty for pairs."""
    if "packing" not in step:
        return ""
    short = step.get("short_texts", 0)
    return str(step["packing"]) + (f", {short:.0%} of them shorter" if short else "")


def _masking(step: dict[str, Any]) -> str:
    """What a pre-training step masks; nothing where it has no loss of masked tokens."""
    if "mask_ratio" not in step or not step.get("mlm_weight", 1):
        return ""
    return f"{step['mask_ratio']:.0%} of {'whole words' if step.get('whole_word') else 'pieces'}"


def _trials(made: RowOrigin) -> str:
    """How many values were tried for the steps of a row that any was tried for."""
    tried = []
    for each in [*made.of("pretrain"), *made.of("finetune")]:
        step = each.stem.rsplit("+", 1)[-1].partition("~")[0]
        tried += [f"{number} of {field}" for field, number in made.site.trials.get(step, {}).items()]
    return ", ".join(dict.fromkeys(tried)) or NONE


FACTS: dict[str, Callable[[RowOrigin], str]] = {  # all but the last are about models, and empty for a row without any
    "Seeds": lambda made: str(len(made.seeds)),
    "Start": lambda made: _listed(each.stem for each in made.of("start")),
    "Texts of pre-training": lambda made: _texts(made, "pretrain"),
    "Packing of texts": lambda made: _listed(_packing(each.spec["step"]) for each in made.of("pretrain")),
    "Masking of pre-training": lambda made: _listed(_masking(each.spec["step"]) for each in made.of("pretrain")),
    "Operations of pre-training": lambda made: _operations(made, "pretrain"),
    "Texts of fine-tuning": lambda made: _texts(made, "finetune"),
    "Operations of fine-tuning": lambda made: _operations(made, "finetune"),
    "Batch of fine-tuning": lambda made: _finetunings(made, "batch"),
    "Training queries": lambda made: _finetunings(made, "queries"),
    "Negatives": lambda made: _finetunings(made, "negatives"),
    "Trials of a step": _trials,
    SEARCHED: lambda made: _listed(
        each.inputs.get("collection", "").rsplit("/", 1)[-1] for each in made.of("evaluate")
    ),
}
