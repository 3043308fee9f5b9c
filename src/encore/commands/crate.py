"""Results as an RO-Crate, a folder that describes itself, by the Workflow Run profile.

It holds the workflow's files, the configuration, and tables, figures and claims with everything that they were built
from, so that ``encore audit FOLDER`` verifies it and finds the root of the original.
https://w3id.org/ro/crate/1.1 and https://w3id.org/ro/wfrun/workflow/0.5
"""

import argparse
import mimetypes
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from encore.commands.plan import plan_of
from encore.config.run_file import EXTENDS
from encore.config.validation import read_yaml
from encore.errors import EncoreError
from encore.products.targets import is_of_another_plan
from encore.storage import manifest
from encore.storage.files import appearing, read_object, sha256, write_json, writing
from encore.storage.program_files import PROGRAM
from encore.storage.release import __version__
from encore.storage.root import RESULTS, ROOT, SIGNATURE, manifests_behind, product_manifests

METADATA = "ro-crate-metadata.json"
WORKFLOW = "workflow/Snakefile"
SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
CONTEXT = ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"]
FORMATS = {".yaml": "application/yaml", ".smk": "text/x-python", ".tsv": "text/tab-separated-values"}
LICENSE = "https://spdx.org/licenses/Apache-2.0"
DAMAGED = "remove it, and run snakemake again"
CODE = ("LICENSE", "workflow", "config")
RUN_KEY = re.compile(rf"^(title|{EXTENDS}):", re.MULTILINE)  # of the catalogue's files none has them
Entity = dict[str, Any]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("folder", type=Path, help="a new folder; `encore audit FOLDER` verifies it")


def answer(arguments: argparse.Namespace) -> int:
    """The place of the crate, and how many files it has."""
    plan, products = plan_of(arguments), product_manifests()
    own = [place for place in products if not is_of_another_plan(plan, place)]
    files = write_crate(plan.config.title, arguments.config, own, arguments.folder)
    if len(own) < len(products):
        print(f"{len(products) - len(own)} of {len(products)} tables and figures are of other plans than this run's")
    print(f"{arguments.folder / METADATA} describes {files} files; verify them with `encore audit {arguments.folder}`")
    return 0


def write_crate(title: str, run: Path, own: Sequence[Path], folder: Path) -> int:
    """Fill a new folder with a crate of ``results/``, and return the number of its files.

    Files are linked on the same disk, and copied to another one. Products of other runs are parts of it, since the root
    is that of all, but no results of this run.

    Args:
        title: of the run.
        run: the run's file, within the repository.
        own: the manifests of the run's products.
    """
    products, run = product_manifests(), Path(os.path.relpath(run))
    if ".." in run.parts:
        raise EncoreError(f"{run} is not below this folder, of which the crate is made; put it into config/")
    if not own:
        raise EncoreError(
            f"no table, figure or claims of {run} are made yet; run snakemake first, or name another --config"
        )
    if RESULTS.resolve() in folder.resolve().parents:
        raise EncoreError(f"{folder} would be in {RESULTS}, of which the crate is made; name a folder elsewhere")
    places = dict.fromkeys([*_code(run), *_of_products(products), *_behind(products)])
    with writing(folder), appearing(folder) as made:
        for place in places:
            _put(place, made / place)
        graph = _graph(title, run, made, [*places], [str(path) for path in _of_products(own)])
        write_json(made / METADATA, {"@context": CONTEXT, "@graph": graph})
    return len(places)


def _code(run: Path) -> Iterator[Path]:
    """The workflow and its catalogue as in a clone; of a study its own files, and the program's besides.

    Of runs' files only the run's and that of the run which it extends, since others may be private.
    """
    yield run
    base = read_yaml(run).get(EXTENDS)
    is_clone = Path("workflow/rules").is_dir()
    for root in (Path(),) if is_clone else (Path(), PROGRAM):
        for name in CODE:
            for path in (root / name, *sorted((root / name).rglob("*"))):
                place = path.relative_to(root)
                if path.is_file() and "__pycache__" not in path.parts and (str(place) == base or not _is_run(path)):
                    yield place


def _is_run(path: Path) -> bool:
    """Whether a file of the configuration is a run's, and no part of the catalogue."""
    return path.parent.name == "config" and path.suffix in (".yaml", ".yml") and bool(RUN_KEY.search(path.read_text()))


def _of_products(products: Sequence[Path]) -> Iterator[Path]:
    """Tables, figures, claims and the report with their manifests, and the root digest with its signature."""
    for place in products:
        yield place
        yield from (place.with_name(name) for name in sorted(read_object(place, DAMAGED).get("outputs", ())))
    report = sorted((RESULTS / "report").glob("*")) if (RESULTS / "report").is_dir() else []
    yield from (path for path in [ROOT, SIGNATURE, *report] if path.is_file())


def _behind(products: list[Path]) -> Iterator[Path]:
    """Every file of every artifact behind products."""
    for name in manifests_behind(products):
        place = Path(name)
        if place not in products:
            outputs = manifest.read_manifest(place.parent)["outputs"] if place.name == manifest.MANIFEST else {}
            yield place
            yield from (place.parent / output for output in sorted(outputs))
            yield from (path for path in [place.parent / "run.json"] if path.is_file())


def _put(place: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link((place if place.exists() else PROGRAM / place).resolve(), target)
    except FileNotFoundError as error:
        raise EncoreError(f"{place} is missing; run `encore audit` to see which results need it") from error
    except OSError:  # another disk
        shutil.copy2(place if place.exists() else PROGRAM / place, target)


def _graph(title: str, run: Path, folder: Path, places: list[Path], results: list[str]) -> list[Entity]:
    """The crate's entities."""
    ended = max((folder / place).stat().st_mtime for place in results)
    when = datetime.fromtimestamp(ended, UTC).isoformat(timespec="seconds")
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Encore: {title}",
        "description": "Tables, figures and claims of a run of Encore, with everything that they were made from. "
        f"Its root is in {ROOT}; `encore audit` verifies it.",
        "datePublished": when,
        "license": _to(LICENSE),
        "conformsTo": [_to(name) for name in PROFILES],
        "hasPart": [_to(_id(place)) for place in places],
        "mainEntity": _to(WORKFLOW),
        "mentions": _to("#run"),
    }
    action = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"Run of {WORKFLOW} with {run}",
        "description": "Snakemake made the results from the configuration.",
        "endTime": when,
        "actionStatus": "http://schema.org/CompletedActionStatus",
        "instrument": _to(WORKFLOW),
        "object": _to(_id(run)),
        "result": [_to(_id(Path(name))) for name in results],
    }
    language = {
        "@id": SNAKEMAKE,
        "@type": "ComputerLanguage",
        "name": "Snakemake",
        "alternateName": "Snakemake",
        "identifier": _to("https://doi.org/10.1093/bioinformatics/bts480"),
        "url": _to("https://snakemake.readthedocs.io"),
        "version": version("snakemake"),
    }
    licence = {"@id": LICENSE, "@type": "CreativeWork", "name": "Apache License 2.0", "identifier": LICENSE}
    profiles = [
        {"@id": name, "@type": "CreativeWork", "name": called, "version": number}
        for name, (called, number) in PROFILES.items()
    ]
    descriptor = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": _to("./"),
        "conformsTo": [_to("https://w3id.org/ro/crate/1.1"), _to("https://w3id.org/workflowhub/workflow-ro-crate/1.0")],
    }
    return [descriptor, root, action, language, licence, *profiles, *(_file(folder, place) for place in places)]


def _file(folder: Path, place: Path) -> Entity:
    """A file of the crate; one of them is the workflow."""
    path, (kind, packed) = folder / place, mimetypes.guess_type(place.name)
    kind = "application/gzip" if packed else FORMATS.get(place.suffix, kind or "application/octet-stream")
    entity: Entity = {
        "@id": _id(place),
        "@type": "File",
        "name": str(place),
        "contentSize": str(path.stat().st_size),
        "sha256": sha256(path),
        "encodingFormat": kind,
    }
    if str(place) == WORKFLOW:
        entity["@type"] = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
        entity |= {"name": "Encore", "version": __version__, "encodingFormat": "text/x-python"}
        entity |= {"programmingLanguage": _to(SNAKEMAKE), "license": _to(LICENSE)}
    return entity


def _id(place: Path) -> str:
    """A file's place as a relative URI."""
    return quote(str(place))


def _to(name: str) -> Entity:
    return {"@id": name}
