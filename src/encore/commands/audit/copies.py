"""The audit of results from elsewhere: by what they say of themselves, by this checkout, and by nothing else.

What a copy says decides nothing of what is compared: its folders are named by the digests of their specs, printed
numbers are this checkout's, and what its tables call a score is compared with the score's folder.
"""

import re
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

from encore.commands.audit.audit import Progress, added_files, refuse_endless_records, without_vectors
from encore.commands.audit.findings import (
    REPORT,
    AuditReport,
    Finding,
    check_product,
    explained,
    problems_without_plan,
)
from encore.commands.audit.recompute import remake_page, remake_products
from encore.commands.crate import METADATA
from encore.errors import EncoreError, quoted
from encore.products.kinds import kind_of_record
from encore.products.tables.layout import Layout
from encore.stages.evaluate import Evaluate
from encore.storage import program_files
from encore.storage.files import readable_object, sha256
from encore.storage.manifest import read_manifest
from encore.storage.program_files import CATALOGUE
from encore.storage.root import RESULTS, compare_root, manifests_behind, product_manifests

EMBEDDED = "{embedded}"  # begins the path of the texts that come with Encore, which are nobody's paper's
KNOWN = "compared with no configuration; the papers' printed numbers are this checkout's"
OF_CRATE = "; of its run's file, workflow and metadata only that they agree: no root covers them"


def known_of(folder: Path) -> str:
    """What a copy was compared with, in words."""
    return KNOWN + OF_CRATE * (folder / METADATA).is_file()


def audit_copy(folder: Path, expected: str | None, queries: int | None = None) -> tuple[AuditReport, str | None, str]:
    """Audit a results folder, or the folder that holds one, that came from elsewhere: by what it says of itself.

    Every file is compared with its manifest, every manifest with those that name it as an input, and every product is
    made again. A copy cannot tell whether a configuration would have planned the same; compare its root for that.

    Args:
        expected: the beginning of a root that was written down elsewhere.
        queries: how many of each run are searched again by ``deep.check_deeply``; None for a quick audit.

    Returns:
        The audit's report, and what ``compare_root`` says.
    """
    report = AuditReport()
    if (folder / METADATA).is_file():
        report.findings += [Finding(METADATA, reason) for reason in explained(METADATA, _of_crate(folder))]
    with _inside(folder):
        refuse_endless_records()
        products = product_manifests()
        if not products:
            if (RESULTS / "run.json").is_file():
                raise EncoreError(f"{folder} is a record, which `python docs/judge_again.py {folder}` judges again")
            raise EncoreError(f"{folder} has no manifest of a table, a figure or claims; give a results folder")
        made = {str(Path(found).parent): found for found in manifests_behind(products) if Path(found) not in products}
        report.left_out |= dict.fromkeys(without_vectors(made), "removed: a copy cannot tell whether that was meant")
        progress = Progress(made)
        for artifact, found in made.items():
            reasons = list(explained(found, problems_without_plan(artifact)))
            report.findings += [Finding(artifact, reason) for reason in reasons]
            report.verified += not reasons
            progress.add(artifact)
        for place in products:
            content = readable_object(place).get("spec")
            check_product(content, place, report)  # which says if it has none
            said = explained(str(place), _of_product(content, place))
            report.findings += [Finding(str(place), reason) for reason in said]
        check_product(None, REPORT, report)
        report.findings += added_files(report)
        remake_products(report)
        remake_page(report)
        if queries is not None:
            from encore.commands.audit.deep import check_deeply

            check_deeply(report, queries)
        return report, *compare_root(expected)


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work in a folder whose ``results`` is that one, as manifests name their inputs, and whose ``config`` is ours."""
    own = folder / "results"
    with TemporaryDirectory() as place:
        for name, target in {"results": own if own.is_dir() else folder, CATALOGUE.name: CATALOGUE}.items():
            (Path(place) / name).symlink_to(target.resolve())
        with chdir(place):
            yield


def _of_product(content: Any, place: Path) -> Iterator[str]:
    """What a product says that is not so: numbers that are printed nowhere, labels of other scores, other data."""
    for key, file in _named_files(content):
        path = program_files.found(file).resolve()
        allowed = CATALOGUE / "papers" if key == "reported" else CATALOGUE.parent
        if not path.is_relative_to(allowed.resolve()) or path.is_relative_to(RESULTS.resolve()):
            yield f"{place} takes numbers from {quoted(file)}, which is no file of this checkout"
    found = kind_of_record(place, content)
    if isinstance(content, dict) and content.get("proxy_data") is False:
        for each in manifests_behind([place]):
            if EMBEDDED in str(readable_object(Path(each)).get("spec", {}).get("path")):
                yield f"{place} says that its data are the papers', and {Path(each).parent} is the embedded text"
    if found and found[0].rule in ("table", "figure"):
        yield from _labels(Layout.model_validate(content), place)


def _named_files(content: Any) -> Iterator[tuple[str, str]]:
    """Each file of numbers that a slice of the plan names, with its key."""
    if isinstance(content, list):
        for each in content:
            yield from _named_files(each)
    if isinstance(content, dict):
        for key, value in content.items():
            if key in ("reported", "record") and isinstance(value, str) and value:
                yield key, value
            else:
                yield from _named_files(value)


def _labels(table: Layout, place: Path) -> Iterator[str]:
    """What a table's cells call their scores, against the scores' own specs and names."""
    for row in table.rows:
        for column in table.own("measure"):
            cell = row.cells[column.id]
            for read in cell.reads:
                spec = read_manifest(Path(read.folder))["spec"]
                system = re.sub(r"(-s\d+)?-[0-9a-f]{8}(?=@|$)", "", read.folder.split("/")[2], count=1)
                measures = Evaluate.spec_of(spec, Evaluate.roles.model_fields, read.folder).splits.get(cell.split, {})
                label = table.dataset_labels.get(cell.dataset, "")
                said = [cell.system, cell.collection, cell.expression, label]
                right = [system, spec["collection"], measures.get(cell.value), cell.collection.rpartition("-")[0]]
                for one, other in zip(said, right, strict=True):
                    if one != other:
                        what = f"{quoted(one)}, and {read.folder} is of {quoted(other)}"
                        yield f"{place}: {row.label}, {column.label}: {what}"


def _of_crate(folder: Path) -> Iterator[str]:
    """What of an RO-Crate's workflow and configuration is not what its list of files says; that list has no root."""
    entities = readable_object(folder / METADATA).get("@graph", [])
    listed = {unquote(each["@id"]): each["sha256"] for each in entities if "sha256" in each}
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}
    for name in sorted(each for each in {*listed, *there} - {METADATA} if not each.startswith("results/")):
        path = folder / name
        if name not in listed:
            yield f"{path} was added: {METADATA} does not list it"
        elif not path.is_file() or sha256(path) != listed[name]:
            yield f"{path} is not the file that {METADATA} lists"
