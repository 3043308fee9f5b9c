"""Make what a record of the pages has, and copy what a run made to docs/recorded/NAME; the program is docs/results.py.

A record has the tables, figures and claims of a run, byte for byte, and ``run.json``: the configuration and its digest,
seeds, claims, date, commit, machine, versions, hours, and a digest of every file; ``SHA256SUMS`` binds these. So that
docs/judge_again.py can judge it again, it has all cells by seed (``per_seed.csv``), what tests and claims compare by
query (``tables/NAME.queries.csv.gz``), the roles of rows (``run.json``) and the comparisons of claims
(``claims.tests.json``). ``trainings.csv`` has the rates and kept steps of each row's models.
"""

import gzip
import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from judge_again import judge
from judging.records import FORM, RECORDED, SUMS, digest

from encore.commands.audit import audit, recompute
from encore.commands.audit.findings import REPORT, Finding
from encore.config.validation import read_yaml
from encore.data.runs import RUN, TEXT
from encore.errors import EncoreError
from encore.plan.artifact import upstream
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.claims.contrasts import Address, Contrast, copied_from
from encore.products.claims.entries import FILE
from encore.products.claims.judging import EvaluatedTest, RunValues, judge_control_on_runs, judge_on_runs
from encore.products.claims.plan import ClaimsSlice
from encore.products.claims.run_claims import run_values
from encore.products.tables.compute import cell_values
from encore.products.tables.layout import Layout
from encore.products.tables.sources.base import CellValues
from encore.products.tables.unseen import with_unseen
from encore.storage import typed
from encore.storage.csv_rows import number, write_rows
from encore.storage.files import full_digest, sha256, write_json
from encore.storage.manifest import read_manifest, read_run

PAPERS = Path(__file__).resolve().parents[1] / "config/papers"
KEPT = (".csv", ".md", ".png")  # of a product's files; the others hold the same
RECORDINGS = {  # the records of the pages: the configuration of each, and what is made of it
    "demo": ("config/config.yaml", ["tables/table1.csv", "figures/table1.png"]),
    "ten-seeds": (
        "config/seeds.yaml",
        [
            *(f"tables/{name}.csv" for name in ("table1", "objectives", "pooling", "table2")),
            *(f"figures/{name}.png" for name in ("table1", "objectives")),
        ],
    ),
    "more-seeds": ("config/more-seeds.yaml", ["tables/table1.csv"]),
    "league": ("config/seeds.yaml", ["tables/league.csv", "figures/league.png"]),
    "five-seeds": (
        "config/five-seeds.yaml",
        [
            "claims.csv",
            *(f"tables/{name}.csv" for name in ("documents", "reqa-80", "representations")),
            "figures/label_efficiency.png",
        ],
    ),
    "real-zero-shot": ("config/real-dev.yaml", ["tables/real/zero-shot.csv"]),
    "labels": (
        "config/labels.yaml",
        ["claims.csv", "tables/real/labels.csv", "figures/real/labels.png", "figures/pretraining.png"],
    ),
    "labels-cls": ("config/labels-cls.yaml", ["claims.csv", "tables/real/labels-cls.csv"]),
    "real-two-tower": (
        "config/real-two-tower.yaml",
        ["claims.csv", *(f"tables/two_tower/table{number}.csv" for number in (3, 4, 5, 6))],
    ),
    "checks": ("config/checks/small.yaml", ["checks.csv", "tables/real/published-run.csv"]),
    "fp32": ("config/fp32.yaml", ["figures/pretraining.png"]),
    "bf16": ("config/bf16.yaml", ["tables/table1.csv", "figures/pretraining.png"]),
}
PER_SEED = ("table", "setting", "row", "column", "seed", "value")
TRAININGS = (
    "table",
    "setting",
    "row",
    "system",
    "seed",
    "model",
    "stage",
    "learning_rate",
    "steps",
    "kept_step",
    "equal",
)
QUERIES = ".queries.csv.gz"  # the end of the file with a table's values of queries
Values = Mapping[Address, CellValues]


def make(name: str) -> Path:
    """Have Snakemake make what a record of the pages has; the configuration that it is made of.

    Raises:
        EncoreError: no record of the pages has this name, or Snakemake fails.
    """
    if name not in RECORDINGS:
        raise EncoreError(f"no page shows a record {name!r}; name its run with --config, or one of {list(RECORDINGS)}")
    config, products = RECORDINGS[name]
    targets = [f"results/{product}" for product in products]
    if subprocess.run(["snakemake", *targets, "--profile", "local", "--configfile", config], check=False).returncode:
        raise EncoreError(f"Snakemake failed, so {name} is not recorded; fix what it says and repeat the command")
    return Path(config)


def record(name: str, config: Path, results: Path = Path("results"), into: Path = RECORDED) -> Path:
    """Copy what a run made into a record of that name, and say how it was made; the record's folder.

    The files of runs may have been removed once they were evaluated, as a disk may have no room for all; the record
    counts them.

    Raises:
        EncoreError: the audit finds anything bad, or nothing of this configuration was made.
    """
    plan = load_plan(config)
    report = audit.audit(plan, typed.called(config))
    report.findings, removed = without_removed_runs(report.findings)
    recompute.remake_products(report)
    recompute.remake_page(report)
    recompute.recompute_report(plan, report)
    if report.findings:
        raise EncoreError(f"{report.findings[0]}; only an intact run is recorded: see `encore audit --config {config}`")
    made = [path for product in report.products if product.place != REPORT for path in _files_of(product.place)]
    if not made:
        raise EncoreError(f"{results} has no table, figure or claims of {config}; run snakemake first")
    folder = into / name
    shutil.rmtree(folder, ignore_errors=True)
    for path in made:
        target = folder / path.relative_to(results)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    layouts = {each.name: Layout.model_validate(each.content) for each in report.products if each.kind.rule == "table"}
    claims = next((each.content for each in report.products if each.kind.rule == "claims"), None)
    tables = write_values(folder, layouts, None if claims is None else ClaimsSlice.model_validate(claims))
    write_rows(folder / "trainings.csv", TRAININGS, list(trainings(plan, layouts)))
    note = f"the files of {removed} runs were removed once they were evaluated, before the audit" if removed else ""
    said = {"note": note, "form": FORM, "tables": tables}
    write_json(folder / "run.json", _provenance(plan, config, folder) | said)
    bind(into, name)
    if found := judge(folder).differs:
        raise EncoreError(f"{folder} does not follow from itself: {found[0]}; see `python docs/judge_again.py {name}`")
    return folder


def bind(recorded: Path = RECORDED, name: str = "") -> None:
    """Write the digests of a record's files, or of all without a name, to ``SHA256SUMS`` as ``sha256sum`` reads it."""
    path = recorded / SUMS
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() and name else []
    known = {place: value for value, place in (line.split("  ", 1) for line in lines)}
    kept = {place: value for place, value in known.items() if place.partition("/")[0] != name}
    files = (file for file in [recorded / name, *(recorded / name).rglob("*")] if file.is_file() and file != path)
    kept |= {file.relative_to(recorded).as_posix(): digest(file) for file in files}
    path.write_text("".join(f"{kept[place]}  {place}\n" for place in sorted(kept)), encoding="utf-8")


def without_removed_runs(findings: list[Finding]) -> tuple[list[Finding], int]:
    """An audit's findings less those that a run's files are missing, and how many runs these are."""
    missing = {each for each in findings if each.reason in {f"{each.place}/{file} is missing" for file in (RUN, TEXT)}}
    return [each for each in findings if each not in missing], len({each.place for each in missing})


def write_values(folder: Path, layouts: Mapping[str, Layout], claims: ClaimsSlice | None) -> dict[str, Any]:
    """Write what tables and claims can be judged again by; what ``run.json`` says of each table for that."""
    values = values_of(layouts)
    tested = {at for at in values if at.column in primary(layouts[at.table])}
    if claims is not None:
        compared, tests = tests_of(claims)
        values, tested = values | compared, tested | compared.keys()
        write_json(folder / "claims.tests.json", tests)
    write_rows(folder / "per_seed.csv", PER_SEED, per_seed(values))
    write_queries(folder, {at: values[at] for at in values if at in tested})
    return {name: roles(layout) for name, layout in layouts.items()}


def values_of(layouts: Mapping[str, Layout]) -> dict[Address, CellValues]:
    """The values of all cells of some tables, those of unseen queries among them."""
    return {
        Address(name, *at): values
        for name, layout in layouts.items()
        for at, values in cell_values(with_unseen(layout)).items()
    }


def primary(layout: Layout) -> list[str]:
    """The columns of a table whose differences are tested and corrected."""
    return [column.id for column in layout.columns if column.primary] if layout.comparators() else []


def roles(layout: Layout) -> dict[str, Any]:
    """What of a table decides which rows are compared: primary columns, comparators, margin, and rows by setting."""
    rows: dict[str, dict[str, str]] = {setting: {} for setting in layout.settings()}
    for row in layout.rows:
        rows[row.setting][row.id] = row.role
    margin = {"margin": layout.margin} if layout.margin else {}
    return {"primary": primary(layout), "comparators": layout.comparators(), "roles": rows} | margin


def tests_of(claims: ClaimsSlice) -> tuple[dict[Address, CellValues], dict[str, Any]]:
    """The cells that judged claims compare, with their values, and each claim's comparisons."""
    runs, kept = run_values(claims), dict[Address, CellValues]()

    def told(evaluated: Iterable[EvaluatedTest], count: int) -> list[dict[str, Any]]:
        return [
            {"kind": one.kind, "needed": one.needed, "tau": one.tau, "of": count}
            | {"columns": len({each.terms[0][0].column for each in one.contrasts})}
            | {"contrasts": [_contrast(contrast, runs, kept) for contrast in one.contrasts]}
            for one in evaluated
        ]

    found = {}
    for name, each in claims.claims.items():
        claim = each.claim
        judged, control = judge_on_runs(claim, runs), judge_control_on_runs(claim, runs)
        found[name] = {
            "premise": told(judged.premise, len(claim.premise)),
            "tests": told(judged.tested, len(claim.tests)),
            "control": told(control.tested if control else (), len(claim.control)),
        }
    return kept, found


def _contrast(contrast: Contrast, runs: RunValues, kept: dict[Address, CellValues]) -> dict[str, Any]:
    """A comparison by the cells that it is computed from, whose values are kept."""
    fixed = contrast.against(lambda address: bool(copied_from(address, runs.tables)))
    terms = []
    for address, weight in fixed.terms:
        parts = list(runs.cells(address) or ())
        names = [f"{address.column} [{number}]" for number in range(len(parts))] if len(parts) > 1 else [address.column]
        places = [address._replace(column=name) for name in names]
        kept |= {at: part.values for at, part in zip(places, parts, strict=True)}
        own = [[part.weight, list(at)] for at, part in zip(places, parts, strict=True)]
        terms.append({"weight": weight, "parts": own})
    ours = {address for address, _ in fixed.terms}
    printed = [
        {"weight": weight, "value": runs.printed(at), "share": 0.0 if at in ours else runs.shares(at)}
        for at, weight in fixed.printed
    ]
    said = {"least": fixed.least, "or_equal": fixed.or_equal, "equivalence": fixed.equivalence}
    return {"name": str(contrast), "terms": terms, "printed": printed} | said


def per_seed(values: Values) -> list[list[str]]:
    """The value of every cell under each seed, in the columns of ``PER_SEED``."""
    return [
        [*at, "" if seed is None else str(seed), number(value)]
        for at, own in values.items()
        for seed, value in zip(own.seeds, own.means, strict=True)
    ]


def write_queries(folder: Path, values: Values) -> None:
    """Write the values of queries, a file a table or figure, a line a query: setting, row, column, seed as JSON."""
    scores: dict[str, dict[str, pd.Series]] = {}
    for at, own in values.items():
        if own.queries is None:
            continue
        index = pd.MultiIndex.from_arrays([own.queries.queries, own.queries.clusters], names=["query", "cluster"])
        for seed, one in zip(own.queries.seeds, own.queries.scored, strict=True):
            name = json.dumps([*at[1:], seed], ensure_ascii=False)
            scores.setdefault(at.table, {})[name] = pd.Series(one.values, index)
    for table, found in scores.items():
        path = folder / f"tables/{table}{QUERIES}"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = pd.DataFrame(found).to_csv(lineterminator="\n")
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


def trainings(plan: Plan, layouts: Mapping[str, Layout]) -> Iterator[Sequence[str]]:
    """The models behind each row of some tables, in the columns of ``TRAININGS``; all steps where none was chosen.

    ``equal`` is how many validations were as good as that of the kept step, which is the first of them.
    """
    done = set()
    for name, layout in layouts.items():
        cells = ((row, cell, read) for row in layout.rows for cell in row.cells.values() for read in cell.reads)
        for row, cell, read in cells:
            for made in reversed(upstream([plan.find(read.folder)])):
                place = (name, row.setting, row.id, cell.system, "" if read.seed is None else str(read.seed), made.name)
                if made.stage.partition(".")[0] not in ("pretrain", "finetune") or place in done:
                    continue
                done.add(place)
                results = read_manifest(Path(made.folder))["results"]
                kept = [
                    results["steps"],
                    results.get("best_step", results["steps"]),
                    results.get("equal_validations", ""),
                ]
                yield *place, made.stage, str(made.spec["step"]["learning_rate"]), *map(str, kept)


def _files_of(manifest: Path) -> list[Path]:
    """The files of a product that are kept."""
    stem = str(manifest).removesuffix(".manifest.json")
    return [path for ending in KEPT if (path := Path(f"{stem}{ending}")).exists()]


def _provenance(plan: Plan, config: Path, folder: Path) -> dict[str, Any]:
    """What ``run.json`` of a record says, from the ``run.json`` of every artifact behind it."""
    places = [Path(place) for place in plan.made if Path(place, "manifest.json").exists()]
    runs = [found for place in places if (found := read_run(place))]
    return {
        "title": plan.config.title,
        "config": str(config),
        "config_sha256": sha256(config),
        "seeds": list(plan.config.seeds),
        "claims": plan.config.claims,
        "date": datetime.fromtimestamp(max(place.stat().st_mtime for place in places), UTC).date().isoformat(),
        "commits": sorted({str(each.get("commit")) for each in runs}),
        "machines": sorted({f"{each.get('machine')}, {each.get('cores')} cores, {each['device']}" for each in runs}),
        "python": sorted({each["python"] for each in runs}),
        "packages": runs[0]["packages"],
        "artifacts": len(places),
        "job_hours": round(sum(each["seconds"] for each in runs) / 3600, 2),
        "cpu_hours": round(sum(each.get("cpu_seconds", 0.0) for each in runs) / 3600, 4),
        "files": {str(path.relative_to(folder)): sha256(path) for path in files_of_record(folder)},
    } | _judged_by(folder / "claims.csv")


def _judged_by(claims: Path) -> dict[str, Any]:
    """The digest of what each recorded claim was judged by, so that a page does not show it for later tests."""
    known = tests_of_claims()
    return {"tests": {name: known[name] for name in pd.read_csv(claims)["id"]}} if claims.exists() else {}


def tests_of_claims() -> dict[str, str]:
    """A digest of the premise and the tests of each claim, as they are written now."""
    entries = {name: entry for path in PAPERS.glob(f"*/{FILE}") for name, entry in read_yaml(path).items()}
    return {name: full_digest([entry.get("premise"), entry["tests"]])[:12] for name, entry in entries.items()}


def files_of_record(folder: Path) -> list[Path]:
    """The files of a record, but for what it says about itself."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "run.json")
