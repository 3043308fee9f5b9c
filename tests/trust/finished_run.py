"""A finished run whose files are changed one at a time: what stands behind what, and the way back."""

import json
import re
import shutil
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from encore.commands.audit import audit, recompute
from encore.commands.audit.findings import AuditReport
from encore.plan.plan import Plan
from tests.support.clones import NANO, Clone

MANIFEST = "manifest.json"
CONFIG = Path(NANO[-1])
Json = dict[str, Any]


class FinishedRun:
    """A copy of a finished run in which every file is a hard link, so that the next trial costs what the last changed.

    What is changed here is never written in place. What descends from what is read from the manifests and the plan's
    slices as they were before any change, and by no code of the audit's.
    """

    def __init__(self, pristine: Clone, root: Path) -> None:
        self.pristine, self.root = pristine.root / "results", root
        shutil.copytree(pristine.root, root, symlinks=True, copy_function=_link)
        self.results = root / "results"

    def restore(self) -> None:
        """Results and configuration as they were before the first change."""
        for part in ("results", "config"):
            self._restore(self.pristine.parent / part, self.root / part)

    def _restore(self, before: Path, now: Path) -> None:
        for path in sorted(now.rglob("*"), reverse=True):
            was, is_folder = before / path.relative_to(now), path.is_dir() and not path.is_symlink()
            if not (is_folder if was.is_dir() else _same(path, was)):
                shutil.rmtree(path) if is_folder else path.unlink()
        for was in sorted(before.rglob("*")):
            path = now / was.relative_to(before)
            if was.is_dir():
                path.mkdir(exist_ok=True)
            elif not path.exists():
                path.hardlink_to(was)

    def write(self, place: str, content: bytes | str) -> None:
        """Another file in the place of one, or a new one."""
        path = self.root / place
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def edit(self, place: str, change: Any) -> None:
        """Change the JSON of a file."""
        content = json.loads((self.root / place).read_text())
        change(content)
        self.write(place, json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False) + "\n")

    def audit(self, plan: Plan, until: Collection[str] = ()) -> AuditReport:
        """What ``encore audit`` says, in this process, which must work in the clone's root.

        Args:
            until: places: once one of them is found bad, products are not made again for the others' sake.
        """
        report = audit.audit(plan, str(CONFIG))
        if {finding.place for finding in report.findings}.isdisjoint(until):
            recompute.remake_products(report)
            recompute.remake_page(report)
        if {finding.place for finding in report.findings}.isdisjoint(until):
            recompute.recompute_report(plan, report)
        return report

    @cached_property
    def manifests(self) -> dict[str, Json]:
        """Of every artifact behind a product, by folder; folders are named as manifests name them."""
        found: dict[str, Json] = {}
        waiting = [folder for product in self.products.values() for folder in _folders_read(product)]
        while waiting:
            if (folder := waiting.pop()) not in found:
                found[folder] = json.loads((self.pristine.parent / folder / MANIFEST).read_text())
                waiting += _folders_read(found[folder])
        return dict(sorted(found.items()))

    @cached_property
    def products(self) -> dict[str, Json]:
        """The manifests of tables, figures and claims, by their places."""
        results = self.pristine
        places = [*results.glob(f"*.{MANIFEST}"), *(results / "tables").rglob(f"*.{MANIFEST}")]
        places += (results / "figures").rglob(f"*.{MANIFEST}")
        return {str(path.relative_to(results.parent)): json.loads(path.read_text()) for path in sorted(places)}

    def rows(self, folder: str) -> set[str]:
        """The rows that an artifact stands behind: ``table1: ICT [BM25 negatives]``."""
        return {row for row, behind in self._behind.items() if folder in behind}

    def consumers(self, folder: str) -> set[str]:
        """What an artifact is an input of: folders, and products' manifests."""
        named = {**self.manifests, **self.products}
        return {place for place, record in named.items() if f"{folder}/{MANIFEST}" in record["inputs"]}

    @cached_property
    def _behind(self) -> dict[str, set[str]]:
        """All artifacts behind each row of each table, and of each figure that has rows."""
        found = {}
        for place, record in self.products.items():
            name = re.sub("^results/((tables|figures)/)?", "", place).removesuffix(f".{MANIFEST}")
            for row in record["spec"].get("rows", []):
                setting = f" [{row['setting']}]" if row.get("setting") else ""
                read = [text for text in _texts(row) if text in self.manifests]
                found[f"{name}: {row['label']}{setting}"] = set(self._upstream(read))
        return found

    def _upstream(self, folders: list[str]) -> Iterator[str]:
        for folder in folders:
            yield folder
            yield from self._upstream(_folders_read(self.manifests[folder]))


def _folders_read(record: Json) -> list[str]:
    return [name.removesuffix(f"/{MANIFEST}") for name in record["inputs"] if name.endswith(f"/{MANIFEST}")]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


def _same(path: Path, before: Path) -> bool:
    return path.is_file() and not path.is_symlink() and before.is_file() and path.samefile(before)
