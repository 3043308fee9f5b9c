"""``encore whatif``: what a change of the configuration would cost and change, without making it.

A change is ``steps.costa.temperature=0.05``: the first word names a file of the catalogue; any other path is one in the
run's own file, as is that of a dataset, backbone, source or system which the run's file adds. Values are YAML. What
other entries inherit from the changed one (``<<: *costa``) changes with it, as it would if the file were edited.
"""

import argparse
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from encore.commands.plan import plan_of
from encore.commands.preflight.forecast import Forecast, forecast
from encore.commands.preflight.forecast_text import size
from encore.commands.preflight.machines import find_machine
from encore.config.run_file import EXTENDS, read_run, run_content
from encore.config.validation import nearest, read_yaml, yaml_reason
from encore.errors import EncoreError
from encore.plan import index
from encore.plan.artifact import upstream
from encore.plan.catalogue import READERS, with_entries_of
from encore.plan.groups import names_of
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.products.claims.contrasts import Address
from encore.products.claims.entries import products_of, read_claims
from encore.products.claims.plan import cells_of, computed_from, run_shapes
from encore.products.declared import declared
from encore.products.kinds import BY_RULE, PRODUCTS, ProductKind, kinds_of
from encore.products.report.plan import REPORT, report_plan
from encore.products.targets import kind_of, reads_of
from encore.storage import typed
from encore.storage.program_files import CATALOGUE

SHOWN = 12  # rows of a table that are named before the rest is counted
MERGE = "<<"
EXPONENT = re.compile(r"[-+]?\d+[eE][-+]?\d+")  # of a number without a point


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore whatif``."""
    parser.add_argument("changes", nargs="+", metavar="PATH=VALUE", help="for example steps.costa.temperature=0.05")
    parser.add_argument("--machine", help="an entry of config/machines.yaml")
    parser.add_argument("--json", action="store_true", help="print JSON")


def answer(arguments: argparse.Namespace) -> int:
    """Print what the changes would do; nothing is changed and nothing runs."""
    plan, after = plan_of(arguments), _after(arguments.config, arguments.changes)
    known = find_machine(arguments.machine)
    found = compare_plans(plan, after, (forecast(plan, (), known), forecast(after, (), known)))
    found = replace(found, hidden=list(filter(None, map(partial(hidden_by, plan), arguments.changes))))
    if arguments.json:
        print(json.dumps(asdict(found), indent=1))
    else:
        print(change_text(found, known.name))
    return 0


@dataclass(frozen=True)
class PlanChange:
    """What a change does.

    ``jobs`` are those that only the change makes necessary, by rule; ``anyway`` counts those that are missing without
    it too. ``cells`` are the cells whose number would come from other artifacts, of tables that the run declares.
    ``asked``: of each product that the run has made, those jobs that none before it needs. ``hidden`` says of changes
    which other key wins.
    """

    jobs: dict[str, list[str]]
    anyway: int
    gpu_hours: float
    disk: float
    cells: list[Address]
    claims: list[str]
    asked: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)


def change_text(found: PlanChange, where: str) -> str:
    """A comparison as people read it."""
    asked = {(rule, name) for own in found.asked.values() for rule in own for name in own[rule]}
    others = {rule: [name for name in names if (rule, name) not in asked] for rule, names in found.jobs.items()}
    lines = [*found.hidden, *(f"{made}, which is made: {_told(jobs)}" for made, jobs in found.asked.items())]
    lines.append(("all else that the run names: " if asked else "") + _told(others))
    if found.anyway:
        lines.append(f"{found.anyway} more are missing without the change too")
    hours = f"{found.gpu_hours:,.2f} GPU-hours on {where} and " if found.gpu_hours else ""
    lines.append(f"{hours}{size(found.disk)} of disk for them, estimated")
    lines.append(f"{len(found.cells)} cells" + (":" if found.cells else ""))
    for table, rows in groupby(found.cells, lambda cell: cell.table):
        named = [
            f"{row}{f' [{setting}]' if setting else ''}: {', '.join(cell.column for cell in cells)}"
            for (setting, row), cells in groupby(rows, lambda cell: (cell.setting, cell.row))
        ]
        rest = [f"and {len(named) - SHOWN} rows more"] if len(named) > SHOWN else []
        lines += [f"  {table}", *(f"    {line}" for line in (*named[:SHOWN], *rest))]
    lines.append(f"{len(found.claims)} claims" + (f": {' '.join(found.claims)}" if found.claims else ""))
    return "\n".join(lines)


def _told(jobs: Mapping[str, Sequence[str]]) -> str:
    """How many jobs there are, then of each rule."""
    rules = ", ".join(f"{len(names)} {rule}" for rule, names in jobs.items() if names)
    count = sum(map(len, jobs.values()))
    return f"{count} job{'s' * (count != 1)}: {rules or 'nothing would run'}"


def hidden_by(plan: Plan, change: str) -> str | None:
    """Which key of the run's ``scale:`` wins over a changed one of the catalogue, and what to ask instead; or None."""
    place, _, value = change.partition("=")
    section, name, key = place.split(".") if place.count(".") == 2 else ("", "", "")
    config = read_run(plan.config.file)  # with keys as they are written
    scale, known = dict(config.scale), vars(plan.catalogue).get(section, {})
    if section not in READERS or section not in scale:
        return None
    given = {each: fields for each, fields in scale[section].items() if name in names_of(each, known)}
    if isinstance(other := given.get(name), str):  # a backbone, a dataset or an expansion
        wins, instead = f"scale.{section} has {other} in place of {name}", f"{section}.{other}"
    else:
        kind = [known[name]["kind"]] if section == "steps" and name in known else []
        layers = {f"scale.{each}": scale[each] for each in kind}
        layers |= {f"scale.{section}, {each}": given[each] for each in sorted(given, key=lambda each: each == name)}
        winners = [f"{where} sets {key} to {fields[key]}" for where, fields in layers.items() if key in fields]
        if not winners:
            return None
        wins, instead = f"{winners[-1]}, which wins", f"scale.{section}.{name}"
    ask = typed.encore("whatif", f"{instead}.{key}={value}", run=typed.called(config.file))
    return f"{change}: in {config.file}, {wins}; ask `{ask}`"


def _after(run: Path, changes: list[str]) -> Plan:
    """The plan of the changed configuration."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            catalogue, own = changed(CATALOGUE, run, changes, Path(folder))
            config = read_run(run, read_yaml(own))
            return Plan(config, with_entries_of(config, load_catalogue(catalogue)))
        except EncoreError as error:
            raise EncoreError(str(error).replace(f"{folder}/{run.name}", str(run)).replace(f"{folder}/", "")) from error


def changed(catalogue: Path, run: Path, changes: list[str], folder: Path) -> tuple[Path, Path]:
    """Copy a catalogue and a run's file into ``folder`` with the changes made; returns both places."""
    copied = folder / catalogue.name
    shutil.copytree(catalogue, copied)
    own = folder / run.name
    if EXTENDS in read_yaml(run):  # what it takes over can be changed too
        own.write_text(yaml.safe_dump(run_content(run), sort_keys=False), encoding="utf-8")
    else:
        shutil.copyfile(run, own)
    for change in changes:
        place, sign, value = change.partition("=")
        if not sign or not place or place != place.strip():
            raise EncoreError(f"{change!r} is not a change; write it like steps.costa.temperature=0.05")
        first, _, rest = place.partition(".")
        if first == EXTENDS:
            raise EncoreError(f"{change!r}: another run would change it all; edit the file and run `encore preflight`")
        entries = read_yaml(own).get(first) or {}  # of the run's own
        shared = first in READERS and rest and rest.partition(".")[0] not in entries
        path, inner = (copied / f"{first}.yaml", rest) if shared else (own, place)
        _change(path, inner.split("."), value, change)
    return copied, own


def _change(path: Path, keys: list[str], value: str, change: str) -> None:
    root: Any = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    node = root
    for depth, key in enumerate(keys[:-1]):
        node = _inner(node, key, ".".join(keys[: depth + 1]), change, path.name)
    try:
        new: Any = yaml.compose(value, Loader=yaml.SafeLoader) or yaml.compose("null", Loader=yaml.SafeLoader)
        if EXPONENT.fullmatch(value):
            new.tag = "tag:yaml.org,2002:float"  # as YAML 1.2 reads it, which in 1.1 is a text
        for place, (name, _) in enumerate(_pairs(node, change)):
            if name.value == keys[-1]:
                node.value[place] = (name, new)
                break
        else:
            node.value.append((yaml.ScalarNode("tag:yaml.org,2002:str", keys[-1]), new))
        content = yaml.SafeLoader("").construct_document(root)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise EncoreError(f"{change!r}: the value is not YAML: {yaml_reason(error)}") from error
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def _inner(node: Any, key: str, place: str, change: str, file: str) -> Any:
    """The mapping under a key, which is added if a run's file has none."""
    known = {each.value: value for each, value in _pairs(node, change)}
    if key in known:
        return known[key]
    if any(each.value == MERGE for each, _ in node.value):
        raise EncoreError(f"{change!r}: {place} is inherited; change it where {file} has it")
    if file.removesuffix(".yaml") in READERS:
        raise EncoreError(f"{change!r}: {file} has no {place}{nearest(key, known)}")
    empty = yaml.MappingNode("tag:yaml.org,2002:map", [])
    node.value.append((yaml.ScalarNode("tag:yaml.org,2002:str", key), empty))
    return empty


def _pairs(node: Any, change: str) -> list[Any]:
    if not isinstance(node, yaml.MappingNode):
        raise EncoreError(f"{change!r}: there are no keys below that; give the whole value instead")
    pairs: list[Any] = node.value
    return pairs


def compare_plans(before: Plan, after: Plan, forecasts: tuple[Forecast, Forecast]) -> PlanChange:
    """Compare two plans; ``forecasts`` are theirs, of all that they declare."""
    old, new = forecasts
    missing = {job.artifact.folder for job in old.missing if job.rule not in BY_RULE}
    added = [job for job in new.missing if job.artifact.folder not in missing and job.rule not in BY_RULE]
    needs = new.needs(added)
    slices = declared(before), declared(after)
    jobs: dict[str, list[str]] = {}
    for job in added:
        jobs.setdefault(job.rule, []).append(job.artifact.folder)
    for name in slices[1]:
        if slices[0].get(name) != slices[1][name]:
            for kind in kinds_of(name, slices[1][name]):
                if kind.exists(kind.typed(slices[1][name])):
                    jobs.setdefault(kind.rule, []).append(name)
    reports = [report_plan(plan).dumped() | {"run": ""} for plan in (before, after)]  # whatever their files are called
    if slices[0] != slices[1] or reports[0] != reports[1]:
        jobs[REPORT] = ["all"]
    return PlanChange(
        jobs=jobs,
        asked=asked_first(after, jobs),
        anyway=len(missing),
        gpu_hours=needs.gpu_hours,
        disk=needs.disk,
        cells=[cell for name in after.config.tables for cell in changed_cells(before, after, name)],
        claims=changed_claims(before, after),
    )


def asked_first(plan: Plan, jobs: Mapping[str, Sequence[str]]) -> dict[str, dict[str, list[str]]]:
    """Some jobs by the product that needs them: of those that the run has made, tables first, each job once."""
    run, known = typed.called(plan.config.file), index.read().products.items()
    records = [record for record, by in known if by == run and Path(record).is_file()]
    found: dict[str, dict[str, list[str]]] = {}
    left = {rule: list(names) for rule, names in jobs.items()}
    for kind, name in sorted(filter(None, map(partial(kind_of, plan), records)), key=_order):
        path = kind.named(kind.files[0], name)
        folders = {artifact.folder for artifact in upstream(reads_of(plan, path))}
        names = {kind.rule: {"all" if kind.rule == REPORT else name}}
        own = {rule: [job for job in left[rule] if job in names.get(rule, folders)] for rule in left}
        if any(own.values()):
            found[path] = {rule: needed for rule, needed in own.items() if needed}
            left = {rule: [job for job in left[rule] if job not in own[rule]] for rule in left}
    return found


def _order(product: tuple[ProductKind, str]) -> tuple[int, str]:
    return PRODUCTS.index(product[0]), product[1]


def changed_cells(before: Plan, after: Plan, product: str) -> list[Address]:
    """The cells of a table, or points of a figure, that read other artifacts; those of one plan only are among them."""
    reads = [_reads(plan, product) for plan in (before, after)]
    return [cell for cell in dict.fromkeys([*reads[1], *reads[0]]) if reads[0].get(cell) != reads[1].get(cell)]


def changed_claims(before: Plan, after: Plan) -> list[str]:
    """The claims that rest on a changed cell or point, of any table or figure of the papers."""
    cells: dict[str, set[Address]] = {}
    found, shapes = [], [run_shapes(plan) for plan in (before, after)]
    for name, (_, claim) in read_claims().items():
        for product in products_of(claim):
            if product not in cells:
                cells[product] = set(changed_cells(before, after, product))
        about = {cell for known in shapes for cell in cells_of(name, claim, known)}
        if any(about & cells[product] for product in products_of(claim)):
            found.append(name)
    return found


def _reads(plan: Plan, product: str) -> dict[Address, Any]:
    """What each cell of ours reads; nothing for a table or figure that the plan cannot have."""
    try:
        found = computed_from(plan, product)
    except EncoreError:
        return {}
    return {cell: [(part.reads, part.value) for part in parts] for cell, parts in found.items()}
