"""What the jobs of a run fetch, each file once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from encore.commands.preflight import downloads, shapes
from encore.commands.preflight.amounts import T5_BASE
from encore.commands.preflight.downloads import Download
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan


class Fetches:
    """What artifacts fetch; a file that several of them need counts for the first one alone."""

    def __init__(self, plan: Plan, known: dict[str, dict[str, Any]]) -> None:
        """``known``: the sizes of ir_datasets' files, by collection and file."""
        self.plan, self.known = plan, known
        self._found: dict[str, Download] = {}
        self._counted: set[tuple[str, str]] = set()

    def of(self, made: Artifact) -> Download:
        """What a ``fetch_*`` job downloads."""
        if made.folder not in self._found:
            self._found[made.folder] = self._new(made)
        return self._found[made.folder]

    def _new(self, made: Artifact) -> Download:
        match made.stage:
            case "fetch_source":
                return downloads.of_source(self.plan, made)
            case "fetch_checkpoint":
                return self._of_checkpoint(made)
        return self._of_ir_datasets(made)

    def _of_ir_datasets(self, made: Artifact) -> Download:
        entries = downloads.wanted(made.spec["ids"], self.known)
        own = {key: entry for key, entry in entries.items() if key not in self._counted}
        self._counted |= entries.keys()
        found = downloads.of_ir_datasets(self.plan, made, own)
        return found if entries else replace(found, bytes=None)

    def _of_checkpoint(self, made: Artifact) -> Download:
        """As large as the largest model that begins with it."""
        backbones = (each for each in self.plan.catalogue.backbones.values() if each.checkpoint == made.spec["id"])
        sizes = [float(shapes.parameters(shapes.shape_of_backbone(backbone))) for backbone in backbones]
        return downloads.of_checkpoint(self.plan, made, max(sizes, default=T5_BASE))
