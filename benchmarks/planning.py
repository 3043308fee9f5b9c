"""A dry run of everything that a configuration declares, next to bare Snakemake with the same jobs; see README.md."""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from encore.storage.program import run

from harness import figures, machine, record

from encore.errors import EncoreError
from encore.plan.artifact import upstream
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.targets import everything_declared, reads_of

HERE = Path(__file__).parent
ROOT = HERE.parent
LINKED = ("workflow", "config", "profiles", "local", "src", "benchmarks")
OURS, BARE = "Encore", "bare Snakemake"
MOST = 4.0  # seconds of the processor for a thousand jobs
PRODUCTS = ("results/tables/", "results/figures/", "results/claims", "results/report/")
TOTAL = re.compile(r"^total +(\d+)$", re.MULTILINE)
# The same jobs and files between them, and nothing else: no params, no resources, no functions of the library.
SNAKEFILE = """
import json
from pathlib import Path

INPUTS = json.loads(Path("inputs.json").read_text())


rule all:
    input:
        INPUTS.pop("all"),


rule make:
    input:
        lambda wildcards: INPUTS[wildcards.made],
    output:
        "made/{made}",
    shell:
        "touch {output}"
"""


def main() -> None:
    options = _options()
    before = machine.load()
    with tempfile.TemporaryDirectory() as place:
        ours, bare = Path(place) / "ours", Path(place) / "bare"
        for folder in (ours, bare):
            folder.mkdir()
        for name in LINKED:
            (ours / name).symlink_to(ROOT / name)
        (bare / "Snakefile").write_text(SNAKEFILE)
        (bare / "inputs.json").write_text(json.dumps(inputs(load_plan(options.run))))
        words = {OURS: ["--profile", "local", "--configfile", str(options.run)], BARE: ["--cores", "all"]}
        folders = {OURS: ours, BARE: bare}
        seconds: dict[str, list[float]] = {name: [] for name in words}
        jobs: dict[str, int] = {}
        for turn in range(options.turns):
            for name, folder in folders.items():
                print(f"turn {turn + 1}/{options.turns}  {name}", flush=True)
                jobs[name], took = dry_run(folder, words[name])
                seconds[name].append(took)
    rows = [
        {
            "way": name,
            "jobs": jobs[name],
            "cpu_seconds": figures.rounded(min(its)),
            "cpu_seconds_per_1000_jobs": figures.rounded(1000 * min(its) / jobs[name]),
        }
        for name, its in seconds.items()
    ]
    each, alone = (figures.rounded(1000 * min(its) / jobs[name]) for name, its in seconds.items())
    contents = {
        "setting": {"run": str(options.run), "turns": options.turns},
        "agreement": "bare Snakemake plans the same artifacts, tables and figures, with the same files between them",
        "rows": rows,
        "ratio": figures.rounded(each / alone),
        "goals": [figures.goal("dry run, seconds of the processor for 1,000 jobs", each, MOST, most=True)],
    }
    record.write(options.output, options.name, contents, before, ("snakemake",))
    print("\n".join(record.table(rows)))


def inputs(plan: Plan) -> dict[str, list[str]]:
    """The files of what everything that is declared is made from, and, under ``all``, those of all of it.

    An artifact or product is a file here, and its name a number.
    """
    products = {target: reads_of(plan, target) for target in everything_declared(plan)}
    made = upstream([artifact for reads in products.values() for artifact in reads])
    number = {artifact.folder: str(place) for place, artifact in enumerate(made)}
    found = {number[each.folder]: [f"made/{number[part.folder]}" for part in each.inputs.values()] for each in made}
    for target, reads in products.items():
        if target.startswith(PRODUCTS):
            found[str(len(found))] = list(dict.fromkeys(f"made/{number[each.folder]}" for each in reads))
    return found | {"all": [f"made/{name}" for name in found]}


def dry_run(folder: Path, words: Sequence[str]) -> tuple[int, float]:
    """The jobs that Snakemake plans in a folder where nothing is made, and the seconds of the processor that it takes.

    Raises:
        EncoreError: it fails.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "rules", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = TOTAL.search(done.stdout)
    if done.returncode or not total:
        raise EncoreError(f"the dry run failed: {(done.stderr.splitlines() or ['without a word'])[-1]}")
    return int(total[1]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("config/paper.yaml"), help="a run's configuration")
    parser.add_argument("--turns", type=int, default=3, help="of which the best counts")
    record.add_flags(parser, "planning")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
