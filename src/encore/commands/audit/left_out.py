"""What an audit leaves out and why: products of other runs and plans; and files among products that are none.

The run that a page belongs to is named by its own manifest. A table, a figure or claims are of another run only where
their own manifest has another plan than this run's; which run that was, ``results/plan/index.json`` then says, which
nothing seals: it decides over the words, and over whether such a product is bad or left to somebody else.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from encore.commands.audit.findings import REPORT, AuditReport, Finding
from encore.commands.audit.products import files_of
from encore.errors import quoted
from encore.plan import index
from encore.storage import typed
from encore.storage.files import readable_object
from encore.storage.manifest import MANIFEST, added
from encore.storage.root import RESULTS, ROOT, SIGNATURE


class OtherRuns:
    """Which runs other than the audited one have made what is in results, as the last plans wrote it down."""

    def __init__(self, run: str) -> None:
        self._run, self._made_by = run, index.read().products

    def made(self, place: Path) -> bool:
        """True if another run is said to have made a product."""
        return self._made_by.get(str(place), self._run) != self._run

    def reason(self, place: Path) -> str:
        """Why a product with another plan is not audited."""
        return reason_of(self._made_by[str(place)]) if self.made(place) else "built from no plan of this run"


def reason_of(run: Any) -> str:
    """Why a product of another run is not audited; the name comes from a file that anybody may have edited."""
    if isinstance(run, str) and os.path.isfile(run or typed.DEFAULT_RUN):  # noqa: PTH113  # False for any odd name
        return f"of another run: `{typed.encore('audit', run=run)}` looks at it"
    return f"of a run whose file is not here: {quoted(run)}"


def run_of_page() -> str | None:
    """The run of the page, by its own manifest; None where that is missing or damaged."""
    match readable_object(REPORT):
        case {"spec": {"run": str(run)}}:
            return run
    return None


def added_files(report: AuditReport) -> Iterator[Finding]:
    """Each file among the products that no product's manifest lists, unless that product is bad already."""
    bad = [Path(finding.place) for finding in report.findings if finding.place.endswith(MANIFEST)]
    for folder in (RESULTS, RESULTS / "tables", RESULTS / "figures", REPORT.parent):
        # The files of claims and checks are in results itself, next to the folders of all else.
        depth = "" if folder == RESULTS else "**/"
        records = [REPORT] if folder == REPORT.parent else sorted(folder.glob(f"{depth}*.{MANIFEST}"))
        listed = {path for record in records for path in (record, *_outputs(record))}
        listed |= {ROOT, SIGNATURE, RESULTS / ".gitignore"}
        listed |= {path for record in bad for path in files_of(record)}
        names = [str(path.relative_to(folder)) for path in listed if path.is_relative_to(folder)]
        for path in added(folder, names, f"{depth}*"):
            if folder == RESULTS and path.is_dir():
                continue  # a folder that somebody keeps elsewhere, behind a link; what it holds is looked at
            yield Finding(str(path), f"{path} was added: no product's manifest lists it")


def _outputs(record: Path) -> Iterator[Path]:
    """The files that a product's manifest lists; none that lie elsewhere, nor any of a damaged one."""
    outputs = readable_object(record).get("outputs")
    names = map(str, outputs) if isinstance(outputs, dict | list) else ()
    yield from (record.parent / name for name in names if "/" not in name)
