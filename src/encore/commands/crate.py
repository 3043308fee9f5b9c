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
from encore.storage.files import appearing, read_object, sha256, write_json, writing
from encore.storage.program_files import PROGRAM
from encore.storage.release import __version__
from encore.storage.root import RESULTS, ROOT, SIGNATURE, manifests_behind, product_manifests

METADATA = "ro-crate-metadata.json"
WORKFLOW = "workflow/Snakefile"
SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
CRATE, HUB = "https://w3id.org/ro/crate/1.1", "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    HUB: "Workflow RO-Crate",
}
CONTEXT = [f"{CRATE}/context", "https://w3id.org/ro/terms/workflow-run/context"]
FORMATS = {".yaml": "application/yaml", ".smk": "text/x-python", ".tsv": "text/tab-separated-values"}
LICENSE = "https://spdx.org/licenses/Apache-2.0"
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
        raise EncoreError(f"no table, figure or claims of {run} are made yet; run snakemake, or name another --config")
    if RESULTS.resolve() in folder.resolve().parents:
        raise EncoreError(f"{folder} would be in {RESULTS}, of which the crate is made; name a folder elsewhere")
    report = [path for path in [ROOT, SIGNATURE, *sorted((RESULTS / "report").glob("*"))] if path.is_file()]
    behind = sorted({*map(Path, manifests_behind(products))} - {*products})
    places = [*dict.fromkeys([*_code(run), *_files_of(products), *report, *_files_of(behind)])]
    with writing(folder), appearing(folder) as made:
        for place in places:
            _put(place, made / place)
        about = _about(title, run, made, places, [*_files_of(own), *report])
        write_json(made / METADATA, {"@context": CONTEXT, "@graph": [*about, *(_file(made, each) for each in places)]})
    return len(places)


def _code(run: Path) -> Iterator[Path]:
    """The workflow and its catalogue as in a clone; of a study its own files and the program's.

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
    """Whether a file of the configuration is a run's and not a part of the catalogue."""
    return path.parent.name == "config" and path.suffix in (".yaml", ".yml") and bool(RUN_KEY.search(path.read_text()))


def _files_of(manifests: Sequence[Path]) -> Iterator[Path]:
    """Manifests and what they describe, with what was recorded of each job."""
    for place in manifests:
        outputs = read_object(place, "remove it, and run snakemake again").get("outputs", ())
        yield place
        yield from (place.parent / name for name in sorted(outputs))
        yield from (path for path in [place.with_name("run.json")] if path.is_file())


def _put(place: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link((place if place.exists() else PROGRAM / place).resolve(), target)
    except FileNotFoundError as error:
        raise EncoreError(f"{place} is missing; run `encore audit` to see which results need it") from error
    except OSError:  # another disk
        shutil.copy2(place if place.exists() else PROGRAM / place, target)


def _about(title: str, run: Path, folder: Path, places: Sequence[Path], results: Sequence[Path]) -> list[Entity]:
    """The crate's entities but for its files."""
    ended = max((folder / place).stat().st_mtime for place in results)
    when = datetime.fromtimestamp(ended, UTC).isoformat(timespec="seconds")
    return [
        _entity(METADATA, "CreativeWork", about=_to("./"), conformsTo=[_to(CRATE), _to(HUB)]),
        _entity(
            "./",
            "Dataset",
            name=f"Encore: {title}",
            description="Tables, figures and claims of a run of Encore, with everything that they were made from. "
            f"Its root is in {ROOT}; `encore audit` verifies it.",
            datePublished=when,
            license=_to(LICENSE),
            conformsTo=[_to(name) for name in PROFILES],
            hasPart=[_to(_id(place)) for place in places],
            mainEntity=_to(WORKFLOW),
            mentions=_to("#run"),
        ),
        _entity(
            "#run",
            "CreateAction",
            name=f"Run of {WORKFLOW} with {run}",
            endTime=when,
            actionStatus="http://schema.org/CompletedActionStatus",
            instrument=_to(WORKFLOW),
            object=_to(_id(run)),
            result=[_to(_id(place)) for place in results],
        ),
        _entity(
            SNAKEMAKE,
            "ComputerLanguage",
            name="Snakemake",
            identifier=_to("https://doi.org/10.1093/bioinformatics/bts480"),
            url=_to("https://snakemake.readthedocs.io"),
            version=version("snakemake"),
        ),
        _entity(LICENSE, "CreativeWork", name="Apache License 2.0", identifier=LICENSE),
        *(_entity(name, "CreativeWork", name=text, version=name.split("/")[-1]) for name, text in PROFILES.items()),
    ]


def _file(folder: Path, place: Path) -> Entity:
    """A file of the crate; one of them is the workflow."""
    path, (kind, packed) = folder / place, mimetypes.guess_type(place.name)
    kind = "application/gzip" if packed else FORMATS.get(place.suffix, kind or "application/octet-stream")
    size, digest = str(path.stat().st_size), sha256(path)
    entity = _entity(_id(place), "File", name=str(place), contentSize=size, sha256=digest, encodingFormat=kind)
    if str(place) == WORKFLOW:
        entity |= {"@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"], "encodingFormat": "text/x-python"}
        entity |= {"name": "Encore", "version": __version__}
        entity |= {"programmingLanguage": _to(SNAKEMAKE), "license": _to(LICENSE)}
    return entity


def _entity(name: str, kind: str, /, **fields: Any) -> Entity:
    return {"@id": name, "@type": kind, **fields}


def _id(place: Path) -> str:
    """A file's place as a relative URI."""
    return quote(str(place))


def _to(name: str) -> Entity:
    return {"@id": name}
