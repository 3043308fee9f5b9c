"""What ``encore audit --prune`` removes, so that the ordinary command repairs."""

import os
import shutil
import sys
from pathlib import Path

from encore.commands.audit import audit
from encore.commands.audit.findings import REPORT, AuditReport
from encore.commands.audit.products import cells_behind, files_of, places_of
from encore.plan.plan import Plan
from encore.storage import manifest, typed


def to_prune(plan: Plan, report: AuditReport) -> list[str]:
    """Exactly what is bad and what was made from it: folders of artifacts, then files of products.

    Products that another run made are none of it.
    """
    bad = {finding.place for finding in report.findings}
    for folder, artifact in plan.made.items():
        if any(parent.folder in bad for parent in artifact.inputs.values()):
            bad.add(folder)
    removed = sorted(folder for folder in bad if folder in plan.made and os.path.lexists(folder))
    slices = audit.published_products(plan)
    affected = cells_behind(plan, slices)
    names = {cell.split(":")[0] for folder in bad for cell in affected.get(folder, [])}
    products = [place for name in sorted(names) for place in places_of(name, slices[name])]
    products += [Path(place) for place in sorted(bad) if place.endswith(manifest.MANIFEST)]
    for record in dict.fromkeys([*products, *([REPORT] if products else [])]):
        removed += sorted(map(str, files_of(record))) if str(record) not in report.others else []
    return removed


def agree_and_prune(places: list[str], run: str, *, yes: bool) -> int:
    """Remove what ``to_prune`` gave if a person at a terminal agrees to it, or has already; 1 if not."""
    if not places:
        print("nothing to prune")
        return 0
    print("\n".join(f"{'removed' if yes else 'to be removed:'} {place}" for place in places), flush=True)
    question = f"remove these {len(places)}? [y/N] "
    if not yes and not (sys.stdin.isatty() and input(question).strip().lower() in ("y", "yes")):
        print(f"nothing was removed; `{typed.encore('audit', '--prune', '--yes', run=run)}` removes it")
        return 1
    prune(places)
    print(f"pruned; `{typed.snakemake(run=run)}` makes it again")
    return 0


def prune(places: list[str]) -> None:
    """Remove files and folders, so that the ordinary command repairs."""
    for place in places:
        is_folder = Path(place).is_dir() and not Path(place).is_symlink()
        shutil.rmtree(place) if is_folder else Path(place).unlink()
