"""The audit of results from elsewhere: by what they say of themselves, by this checkout, and by nothing else.

What a copy says decides nothing of what is compared: its folders are named by the digests of their specs, printed
numbers are this checkout's, and what its tables call a score is compared with the score's folder. Only a paper of a
study's own, which this checkout does not have, is as the copy prints it, and the audit says so.
"""

import re
from collections.abc import Iterator, Mapping
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
from encore.products.slices import paper_of
from encore.products.tables.layout import Layout
from encore.stages.evaluate import Evaluate
from encore.storage import program_files
from encore.storage.files import readable_object, sha256
from encore.storage.manifest import read_manifest
from encore.storage.program_files import CATALOGUE, PAPERS
from encore.storage.root import RESULTS, compare_root, manifests_behind, product_manifests

EMBEDDED = "{embedded}"  # begins the path of the texts that come with Encore, which are nobody's paper's
KNOWN = "compared with no configuration; the papers' printed numbers are this checkout's"
OF_CRATE = "; of its run's file, workflow and metadata only that they agree: no root covers them"


def known_of(folder: Path) -> str:
    """What a copy was compared with, in words."""
    own = ", ".join(sorted(own_papers(folder)))
    return KNOWN + (f", and {own}'s are the copy's own" if own else "") + OF_CRATE * (folder / METADATA).is_file()


def own_papers(folder: Path) -> dict[str, Path]:
    """The folders of the papers that a copied study has and this checkout does not, by name."""
    found = {each.name: each.resolve() for each in sorted(folder.glob("config/papers/*")) if each.is_dir()}
    inside, ours = folder.resolve(), _our_papers()
    return {name: each for name, each in found.items() if each.is_relative_to(inside) and name not in ours}


def _our_papers() -> dict[str, Path]:
    """The folders of the program's papers, and of a study's in which the audit is called, by name."""
    return {each.name: each.resolve() for papers in (PAPERS, Path("config/papers")) for each in papers.glob("*")}


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
    ours, own = _our_papers(), own_papers(folder)
    with _inside(folder, ours | own):
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
            said = explained(str(place), _of_product(content, place, ours, own))
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
def _inside(folder: Path, papers: Mapping[str, Path]) -> Iterator[None]:
    """Work in a folder whose ``results`` is that one, as manifests name their inputs, and whose ``config`` is ours."""
    own = folder / "results"
    targets = {f"{CATALOGUE.name}/{each.name}": each for each in CATALOGUE.glob("*") if each.name != PAPERS.name}
    targets |= {f"{CATALOGUE.name}/{PAPERS.name}/{name}": each for name, each in papers.items()}
    targets |= {"results": own if own.is_dir() else folder}
    with TemporaryDirectory() as place:
        Path(place, CATALOGUE.name, PAPERS.name).mkdir(parents=True)
        for name, target in targets.items():
            Path(place, name).symlink_to(target.resolve())
        with chdir(place):
            yield


def _of_product(content: Any, place: Path, ours: Mapping[str, Path], own: Mapping[str, Path]) -> Iterator[str]:
    """What a product says that is not so: numbers that are printed nowhere, labels of other scores, other data.

    Args:
        ours: the folders of this checkout's papers, by name.
        own: those of the copy's own papers, each of which has the printed numbers of its tables alone.
    """
    found = kind_of_record(place, content)
    for key, file, said in _named_files(content):
        path = program_files.found(file).resolve()
        paper = paper_of(found[1]) if found and found[0].wildcard else said
        papers = [*ours.values(), *(own[name] for name in own if name == paper)]
        allowed = papers if key == "reported" else [CATALOGUE.parent.resolve()]
        if not any(map(path.is_relative_to, allowed)) or path.is_relative_to(RESULTS.resolve()):
            where = "which is no file of this checkout or of the table's own paper"
            yield f"{place} takes numbers from {quoted(file)}, {where}"
    if isinstance(content, dict) and content.get("proxy_data") is False:
        for each in manifests_behind([place]):
            if EMBEDDED in str(readable_object(Path(each)).get("spec", {}).get("path")):
                yield f"{place} says that its data are the papers', and {Path(each).parent} is the embedded text"
    if found and found[0].rule in ("table", "figure"):
        yield from _labels(Layout.model_validate(content), place)


def _named_files(content: Any) -> Iterator[tuple[str, str, str]]:
    """Each file of numbers that a slice of the plan names: its key, the file, and the table's paper."""
    if isinstance(content, list):
        for each in content:
            yield from _named_files(each)
    if isinstance(content, dict):
        for key, value in content.items():
            if key in ("reported", "record") and isinstance(value, str) and value:
                yield key, value, str(content.get("paper"))
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
