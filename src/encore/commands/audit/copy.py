"""The audit of results that came from elsewhere: without a configuration, by what they say of themselves.

Every file is compared with its manifest, every manifest with those that name it as an input, and every product is made
again. A copy cannot tell whether a configuration would have planned the same; compare its root for that.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from encore.commands.audit.audit import check_copy
from encore.commands.audit.findings import AuditReport
from encore.commands.audit.recompute import remake_products
from encore.errors import EncoreError
from encore.products.catalogue import CATALOGUE, load_catalogue
from encore.storage.root import compare_root, product_manifests


def audit_copy(folder: Path, expected: str | None, queries: int | None = None) -> tuple[AuditReport, str | None, str]:
    """Audit a results folder, or the folder that holds one.

    Args:
        expected: the beginning of a root that was written down elsewhere.
        queries: how many of each run are searched again by ``deep.check_deeply``; None for a quick audit.

    Returns:
        The audit's report, and what ``compare_root`` says.

    Raises:
        EncoreError: it has no product's manifest.
    """
    catalogue, report = load_catalogue(CATALOGUE), AuditReport()
    with _inside(folder):
        if not product_manifests():
            raise EncoreError(f"{folder} has no manifest of a table, a figure or claims; give a results folder")
        check_copy(report)
        remake_products(catalogue, report)
        if queries is not None:
            from encore.commands.audit.deep import check_deeply

            check_deeply(report, queries)
        return report, *compare_root(expected)


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work in a folder whose ``results`` is that one, as manifests name their inputs, and whose ``config`` is ours."""
    own = folder / "results"
    before, links = Path.cwd(), {"results": own if own.is_dir() else folder, CATALOGUE.name: CATALOGUE}
    with TemporaryDirectory() as place:
        for name, target in links.items():
            (Path(place) / name).symlink_to(target.resolve())
        os.chdir(place)
        try:
            yield
        finally:
            os.chdir(before)
