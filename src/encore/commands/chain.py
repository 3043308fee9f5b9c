"""From a cell to bytes: every artifact behind a number, with what made it, of what, how and at what cost."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore.commands.audit.findings import explained, problems
from encore.config.published_counts import PublishedCount
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.plan.published_counts import published_counts
from encore.products.slices import Read
from encore.products.tables.grid import PlannedRow
from encore.products.tables.layout import Layout, of_unseen
from encore.products.tables.plan import table_plan
from encore.storage import manifest
from encore.storage.csv_rows import read_rows
from encore.storage.files import sha256

TABLES = "results/tables/"
INDENT = "  "
SHOWN = {"ours": "reproduced", "sd": "sd", "seeds": "seeds", "paper's": "reported"}  # columns of the CSV


@dataclass
class Explanation:
    """What a person asked about: its name, what there is to say of it, and what it reads."""

    title: str
    lines: list[str] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    address: dict[str, Any] = field(default_factory=dict)  # of a cell: its table, row, setting, column and records

    def data(self, links: Iterable["ChainLink"]) -> dict[str, Any]:
        """The same with its chain, for a program."""
        return (self.address or {"about": self.title, "says": self.lines}) | {"chain": chain_json(links)}


@dataclass(frozen=True)
class ChainLink:
    """An artifact of a chain: how far from the cell, as what it is read, and what its records say.

    ``record`` and ``run`` are None if it is not made yet; ``again`` is one that was listed above. ``published``:
    counts of such a training, whose data are others under ``proxy_data``.
    """

    depth: int
    role: str
    artifact: Artifact
    record: dict[str, Any] | None
    run: dict[str, Any] | None
    again: bool
    published: tuple[PublishedCount, ...] = ()
    proxy_data: bool = False

    @property
    def digest(self) -> str | None:
        """The sha256 of its manifest, which has those of all its files."""
        return manifest.describe(Path(self.artifact.manifest))["sha256"] if self.record else None

    @property
    def size(self) -> int | None:
        """Bytes of all its files."""
        return sum(file["bytes"] for file in self.record["outputs"].values()) if self.record else None

    @property
    def counts(self) -> list[dict[str, Any]]:
        """Counts of its manifest next to published ones; ``ours`` is None if it is not made yet."""
        results = self.record["results"] if self.record else {}
        return [
            {
                "count": each.count,
                "ours": results.get(each.count),
                "published": each.published,
                "place": each.place,
                "proxy_data": self.proxy_data,
            }
            for each in self.published
        ]


def table_named(plan: Plan, table: str) -> str:
    """The name of a table that a person means by its name or by one of its files."""
    name = table.removeprefix("./").removeprefix(TABLES)
    name = name.rsplit(".", 1)[0] if name.endswith((".csv", ".json", ".md", ".tex", ".html")) else name
    if name not in plan.catalogue.tables:
        raise EncoreError(f"there is no table {name!r}{nearest(name, plan.catalogue.tables)}")
    return name


def find_cells(plan: Plan, table: str, row: str, column: str, setting: str | None = None) -> list[Explanation]:
    """The cells that a person names, by ids or by labels: one for each setting of the row.

    Args:
        table: the target (``results/tables/costa/table1.csv``) or the name (``costa/table1``).
    """
    name = table_named(plan, table)
    layout = table_plan(plan, name)
    columns = {(each.id, each.label): each.id for each in layout.columns}
    columns |= {of_unseen(*names): planned for names, planned in columns.items()}  # which read as the planned ones
    chosen_columns = [names for names in columns if column in names]
    rows = [each for each in layout.rows if row.lower() in (each.id.lower(), each.label.lower())]
    for kind, wanted, found, known in (
        ("column", column, chosen_columns, layout.columns),
        ("row", row, rows, layout.rows),
    ):
        if not found:
            names = [each for one in known for each in (one.id, one.label)]
            raise EncoreError(f"table {name!r} has no {kind} {wanted!r}{nearest(wanted, names)}")
    chosen = [each for each in rows if setting in (None, each.setting)]
    if not chosen:
        settings = ", ".join(repr(each.setting) for each in rows)
        raise EncoreError(f"{row!r} of table {name!r} is under {settings}, not under {setting!r}")
    shown = chosen_columns[0]
    return [_cell(layout, name, each, shown, columns[shown]) for each in chosen]


def _cell(layout: Layout, table: str, row: PlannedRow, shown: tuple[str, str], planned: str) -> Explanation:
    """A cell of a table's plan, which reads what those read that it is computed from."""
    column, label = shown
    upstream = layout.upstream(row.setting, row.id, planned).values()
    records = [cell.record for cell in upstream if cell.record]  # of measurements that no job of the run makes
    reads = [read for cell in upstream for read in cell.reads]
    numbers = shown_in(table, row.setting, row.id, column)
    lines = [f"shows {numbers}"] if numbers else []
    if row.reported_only:
        lines.append(f"copied from {row.reported_only}: nothing was run")
    elif not reads and not records:
        lines.append("the cell has no number of ours")
    lines += [f"recorded in {path}, sha256 {sha256(Path(path))}: no job of the run makes it" for path in records]
    setting = f" [{row.setting}]" if row.setting else ""
    address = {"table": table, "row": row.id, "setting": row.setting, "column": column, "records": records}
    return Explanation(f"{table}: {row.label}{setting}, {label}", lines, reads, address)


def of_reads(plan: Plan, reads: Iterable[Read]) -> Iterator[ChainLink]:
    """What is read, each folder once, and all that is behind it."""
    seen: set[str] = set()
    for read in {read.folder: read for read in reads}.values():
        role = "reads" if read.seed is None else f"reads, seed {read.seed}"
        yield from _links(plan, plan.find(read.folder), role, 0, seen)


def chain_tree(links: Iterable[ChainLink]) -> list[str]:
    """What was built from what, a line for each stage: its folders, their bytes, and whether they are as recorded.

    Each artifact is counted once, below the first that reads it.
    """
    own = {link.artifact.folder: link for link in links if not link.again}
    if not own:
        return []
    lines = _tree([link.artifact for link in own.values() if link.depth == 0], 0, own, set())
    total = sum(link.size or 0 for link in own.values())
    return [*lines, f"{len(own)} folders, {total:,} bytes; settings, machine and command of each: --long"]


def _tree(read: Iterable[Artifact], depth: int, own: dict[str, ChainLink], seen: set[str]) -> Iterator[str]:
    stages: dict[str, list[Artifact]] = {}
    for artifact in read:
        if artifact.folder not in seen:
            seen.add(artifact.folder)
            stages.setdefault(artifact.stage, []).append(artifact)
    for stage, found in stages.items():
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        made = [own[each.folder] for each in found if own[each.folder].record]
        wrong = [reason for link in made for reason in explained(link.artifact.manifest, problems(link.artifact))]
        says = [f"{sum(link.size or 0 for link in made):,} bytes", f"NOT VERIFIED: {wrong[0]}" if wrong else "verified"]
        says = says if made else []
        says += [f"{len(found) - len(made)} not made yet"] if len(made) < len(found) else []
        yield f"{INDENT * depth}{stage}: {found[0].folder}{more} ({', '.join(says)})"
        yield from _tree((parent for each in found for parent in each.inputs.values()), depth + 1, own, seen)


def chain_text(links: Iterable[ChainLink]) -> list[str]:
    """All that is recorded of a chain, line by line."""
    return [line for link in links for line in _lines(link)]


def chain_json(links: Iterable[ChainLink]) -> list[dict[str, Any]]:
    """A chain as data, each artifact once."""
    return [
        {
            "depth": link.depth,
            "role": link.role,
            "folder": link.artifact.folder,
            "stage": link.artifact.stage,
            "spec": link.artifact.spec,
            "manifest_sha256": link.digest,
            "bytes": link.size,
            "run": link.run,
            "counts": link.counts,
        }
        for link in links
        if not link.again
    ]


def shown_in(table: str, setting: str, row: str, column: str) -> str:
    """What the table's CSV has of a cell, reported and reproduced, or nothing if the table is not made."""
    path = Path(f"{TABLES}{table}.csv")
    lines = read_rows(path, "setting", "row", "column", *SHOWN.values()) if path.is_file() else []
    found = [line for line in lines if (line["setting"], line["row"], line["column"]) == (setting, row, column)]
    return ", ".join(f"{name} {line[each]}" for line in found for name, each in SHOWN.items() if line[each])


def _links(plan: Plan, artifact: Artifact, role: str, depth: int, seen: set[str]) -> Iterator[ChainLink]:
    again = artifact.folder in seen
    seen.add(artifact.folder)
    published = tuple(published_counts(plan.catalogue, artifact))
    record = run = None
    with suppress(EncoreError):  # it is not made yet, or damaged
        record = manifest.read_manifest(Path(artifact.folder))
        run = manifest.read_run(Path(artifact.folder)) or None
    yield ChainLink(depth, role, artifact, record, run, again, published, plan.config.proxy_data)
    for inner, parent in {} if again else artifact.inputs.items():
        yield from _links(plan, parent, inner, depth + 1, seen)


def _lines(link: ChainLink) -> Iterator[str]:
    margin = INDENT * link.depth
    head = f"{margin}{link.role}: {link.artifact.folder}"
    if link.again:
        yield f"{head} (above)"
        return
    yield head
    inner = margin + INDENT
    made = "not made yet"
    if link.record:
        files = len(link.record["outputs"])
        made = f"{files} file{'s' if files != 1 else ''}, {link.size:,} bytes, manifest sha256 {link.digest}"
    yield f"{inner}stage {link.artifact.stage}, {made}"
    if parameters := _parameters(link.artifact):
        yield f"{inner}with {parameters}"
    for each in link.counts:
        where = "here, on other data" if each["proxy_data"] else "here"
        ours = "not counted yet" if each["ours"] is None else f"{each['ours']:,} {where}"
        yield f"{inner}{each['count']}: {ours}; {each['published']:,.10g} published ({each['place']})"
    if link.run:
        yield f"{inner}{_how(link.run)}"
        yield f"{inner}$ {' '.join(link.run.get('command', []))[:300]}"


def _parameters(artifact: Artifact) -> str:
    """What a spec says besides the artifacts that it names, in one line."""
    names = {parent.name for parent in artifact.inputs.values()}
    own = {key: value for key, value in artifact.spec.items() if not (isinstance(value, str) and value in names)}
    return json.dumps(own, sort_keys=True, ensure_ascii=False)[:600] if own else ""


def _how(run: dict[str, Any]) -> str:
    """The environment and the cost of a job, from its ``run.json``."""
    packages = ", ".join(f"{name} {version}" for name, version in run.get("packages", {}).items())
    where = f"commit {run.get('commit')}; Python {run.get('python')} ({packages})"
    cost = f"{run.get('seconds')} s, {run.get('peak_memory_mb')} MB"
    return f"{where}; on {run.get('device')}, {run.get('cores')} cores; {cost}"
