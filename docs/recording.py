"""Make what a record of the pages has, and copy what a run made to docs/recorded/NAME; the program is docs/results.py.

A record has the tables, figures and claims of a run, byte for byte, and ``run.json``: the configuration and its digest,
seeds, claims, date, commit, machine, versions, hours, and a digest of every file. ``per_seed.csv`` has the values of
tables by seed, ``tables/table1.queries.csv.gz`` the scores of table 1 by query, so that a p value can be judged again.
"""

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from encore.commands.audit import audit, recompute
from encore.commands.audit.findings import REPORT, Finding
from encore.config.validation import read_yaml
from encore.data.runs import RUN, TEXT
from encore.errors import EncoreError
from encore.evaluation.significance import Difference, clustered
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.claims.entries import FILE
from encore.products.tables.compute import cell_values
from encore.products.tables.layout import Layout
from encore.storage import typed
from encore.storage.csv_rows import number, write_rows
from encore.storage.files import full_digest, sha256, write_json
from encore.storage.manifest import read_run

RECORDED = Path(__file__).resolve().parent / "recorded"
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
    "real": (
        "config/real-dev.yaml",
        [
            "claims.csv",
            *(f"tables/real/{name}.csv" for name in ("reqa", "transfer")),
            "figures/real/reqa.png",
        ],
    ),
    "real-two-tower": (
        "config/real-two-tower.yaml",
        ["claims.csv", *(f"tables/two_tower/table{number}.csv" for number in (3, 4, 5, 6))],
    ),
    "checks": ("config/checks/small.yaml", ["checks.csv"]),
    "fp32": ("config/fp32.yaml", ["figures/pretraining.png"]),
    "bf16": ("config/bf16.yaml", ["tables/table1.csv", "figures/pretraining.png"]),
}
PER_SEED = ("table", "setting", "row", "column", "seed", "value")
QUERIED, QUERIES = "table1", ".queries.csv.gz"  # the table whose scores of each query are kept, and in which file


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
    layouts = [Layout.model_validate(each.content) for each in report.products if each.kind.rule == "table"]
    write_rows(folder / "per_seed.csv", PER_SEED, per_seed(layouts))
    for layout in layouts:
        if layout.name == QUERIED:
            write_queries(folder / f"tables/{QUERIED}{QUERIES}", layout)
    note = f"the files of {removed} runs were removed once they were evaluated, before the audit" if removed else ""
    write_json(folder / "run.json", _provenance(plan, config, folder) | {"note": note})
    return folder


def without_removed_runs(findings: list[Finding]) -> tuple[list[Finding], int]:
    """An audit's findings less those that a run's files are missing, and how many runs these are."""
    missing = {each for each in findings if each.reason in {f"{each.place}/{file} is missing" for file in (RUN, TEXT)}}
    return [each for each in findings if each not in missing], len({each.place for each in missing})


def per_seed(layouts: list[Layout]) -> list[list[str]]:
    """The value of every cell of some tables under each seed, in the columns of ``PER_SEED``."""
    return [
        [layout.name, *address, "" if seed is None else str(seed), number(value)]
        for layout in layouts
        for address, values in cell_values(layout).items()
        for seed, value in zip(values.seeds, values.means, strict=True)
    ]


def write_queries(path: Path, layout: Layout) -> None:
    """Write the scores of a table's primary columns, a line a query: then setting, row, column and seed as JSON."""
    primary = {column.id for column in layout.columns if column.primary}
    scores = {}
    for (*row, column), values in cell_values(layout).items():
        found = values.queries
        for seed, one in zip(found.seeds, found.scored, strict=True) if found and column in primary else ():
            index = pd.MultiIndex.from_arrays([found.queries, found.clusters], names=["query", "cluster"])
            name = json.dumps([*row, column, seed], ensure_ascii=False)
            scores[name] = pd.Series(one.values, index)
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(scores).to_csv(path, compression={"method": "gzip", "mtime": 0}, lineterminator="\n")


def judged_again(path: Path, setting: str, row: str, other: str, column: str) -> Difference:
    """The difference of two rows, by the test of the protocol, from the recorded scores of each query."""
    scores = pd.read_csv(path, index_col=["query", "cluster"], float_precision="round_trip")
    places = {tuple(json.loads(name)): name for name in scores}
    seeds = [seed for *place, seed in places if place == [setting, row, column]]
    pairs = [[places[setting, one, column, seed] for one in (row, other)] for seed in seeds]
    apart = np.stack([scores[ours] - scores[theirs] for ours, theirs in pairs], axis=1)
    keep = ~np.isnan(apart).any(axis=1)
    return clustered(apart[keep], list(scores.index.get_level_values("cluster")[keep]))


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
