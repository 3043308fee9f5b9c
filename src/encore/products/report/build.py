"""Make the page and its manifest, after comparing what it shows with the manifests of that.

Times of jobs change while nothing else does, so what the page shows of them is written to another file: the page is a
function of ``results/``, and whoever renders it again gets the same bytes.
"""

import json
from pathlib import Path

from encore.errors import EncoreError
from encore.products.record import Builder
from encore.products.report.page import read_content, render_page
from encore.products.report.records import read_run
from encore.products.report.slice import ReportSlice
from encore.storage import manifest, typed
from encore.storage.files import sha256, write_json, write_text

PAGE, RUNS = "index.html", "index.runs.json"


def render_again(folder: Path) -> str:
    """The page of a folder made once more, of its slice of the plan, the records of jobs next to it and ``results/``.

    Raises:
        EncoreError: a product that it shows is missing or damaged.
        OSError: the manifest or the records are missing.
    """
    site = ReportSlice.model_validate(json.loads((folder / manifest.MANIFEST).read_text())["spec"])
    runs = json.loads((folder / RUNS).read_text())
    return render_page(read_content(site, lambda artifact: runs.get(artifact, {})))


def _verify(record: Path) -> None:
    """Compare a product's files with its manifest."""
    try:
        outputs = json.loads(record.read_text())["outputs"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoreError(f"{record} is not a manifest ({error}); remove it and run snakemake again") from error
    for name, expected in outputs.items():
        path = record.parent / name
        if not path.is_file() or sha256(path) != expected["sha256"]:
            fix = typed.encore("audit", "--prune")
            raise EncoreError(f"{path} is not what its manifest says; run `{fix}`, then snakemake again")


def _build(folder: Path, site: ReportSlice, products: Path) -> str:
    """Write the page, and the records of jobs that it shows.

    Raises:
        EncoreError: a product is missing or was altered.
    """
    for record in site.others(folder):
        _verify(record)
    page = read_content(site, read_run)
    write_json(folder / RUNS, page.records.runs())
    write_text(folder / PAGE, render_page(page))
    return f"report: {(folder / PAGE).stat().st_size / 2**20:.1f} MiB in {folder}"


BUILDER = Builder(ReportSlice.model_validate, _build)
