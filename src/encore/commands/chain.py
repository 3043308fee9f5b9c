"""Every artifact behind a number, with what made it, of what, how and at what cost."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.commands.audit.findings import explained, problems
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.plan.published_counts import PublishedCount
from encore.products.slices import Read
from encore.storage import manifest

INDENT = "  "


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


def _links(plan: Plan, artifact: Artifact, role: str, depth: int, seen: set[str]) -> Iterator[ChainLink]:
    again = artifact.folder in seen
    seen.add(artifact.folder)
    published = tuple(plan.catalogue.counts_of(artifact))
    record = run = None
    with suppress(EncoreError):  # it is not made yet, or damaged
        record = manifest.read_manifest(Path(artifact.folder))
        run = manifest.read_run(Path(artifact.folder)) or None
    yield ChainLink(depth, role, artifact, record, run, again, published, bool(plan.config.proxy_data))
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
