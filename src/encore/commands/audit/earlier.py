"""What lies in results from an earlier version of Encore, which named folders by other specs.

This version writes the spec of a folder to ``results/plan/specs/`` before it makes the folder; earlier ones did not.
So a finished folder that is not planned and has no such file is an earlier version's.
"""

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.plan.index import INDEX, spec_file
from encore.plan.plan import Plan
from encore.storage import manifest

RESULTS = Path("results")
REPORT = RESULTS / "report"
OLD_KEY = "stand_in"  # what slices of tables and figures called `proxy_data`


class EarlierResults:
    """The folders and products of earlier versions that lie in results, which this version neither uses nor removes."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @cached_property
    def folders(self) -> list[str]:
        """The finished folders that no plan of this version has made, in order."""
        return sorted(str(folder) for folder in _finished() if self._is_earlier(str(folder)))

    def has_made(self, record: Path) -> bool:
        """Whether a product's manifest is an earlier version's: it has an old key, or reads folders of that version.

        One that reads nothing counts as such where there are such folders, or no index: this version writes that first.
        To be called for products whose slice is not the plan's.
        """
        try:
            content = json.loads(record.read_text())
            spec, inputs = content["spec"], [str(Path(name).parent) for name in content["inputs"]]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False
        if isinstance(spec, dict) and OLD_KEY in spec:
            return True
        return any(map(self._is_earlier, inputs)) if inputs else bool(self.folders) or not INDEX.is_file()

    def note(self) -> str | None:
        """What there is to say of them, in one line; None where there are none."""
        if not self.folders:
            return None
        holds = f"{len(self.folders)} folder{'s' if len(self.folders) > 1 else ''}"
        return (
            f"results/ holds {holds} of an earlier version of Encore, whose names were made otherwise; "
            "they stay as they are, this version makes its own (see CHANGELOG.md)"
        )

    def _is_earlier(self, folder: str) -> bool:
        made = _manifest(Path(folder))
        return made is not None and folder not in self._plan.made and not spec_file(folder).is_file()


def _finished() -> Iterator[Path]:
    """Every folder of results with a manifest, but for the report, which is a product."""
    for path in RESULTS.rglob(manifest.MANIFEST):
        if path.parent != REPORT and _manifest(path.parent) is not None:
            yield path.parent


def _manifest(folder: Path) -> dict[str, Any] | None:
    """A folder's manifest; None where it has none, or a file of that name that is something else."""
    try:
        return manifest.read_manifest(folder)
    except EncoreError:
        return None
