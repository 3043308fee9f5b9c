"""A wrong target, lineage or configuration: one line that says what, where and how to fix it, before any job."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products import targets
from encore.products.catalogue import load_plan
from tests.support.clones import Clone, exact_jobs

TARGETS = {
    "tabel1": ("target 'tabel1' is not a file of results/", "results/tables/table1.csv"),
    "results/foo": ("target 'results/foo' is not a file of results/",),
    "results/tables/table7.csv": ("there is no table 'table7'; did you mean table2 or table1 or ",),
    "results/tables/table1.doc": ("tables are written as .csv, .json, .md, .tex, .html, .manifest.json",),
    "results/tables/pretraining.csv": ("there is no table 'pretraining'",),
    "results/figures/pretraining.pdf": ("figures are written as .png, .svg, .csv, .manifest.json",),
    "results/models/tiny+itc+marco-bm25-s0-01234567/manifest.json": ("unknown step 'itc'; did you mean tct or ict?",),
    "results/models/tyni+ict-s0-01234567/manifest.json": ("unknown backbone 'tyni'; did you mean tiny",),
    "results/models/tiny+ict~temprature=0.1-s0-01234567/manifest.json": ("'temprature'; did you mean temperature?",),
    "results/models/tiny+ict~temperature=0.10-s0-01234567/manifest.json": ("spelled 'tiny+ict~temperature=0.1'",),
    "results/models/tiny+ict~temperature=0.05-s0-01234567/manifest.json": ("its value already; leave it out",),
    "results/models/tiny+ict-s0-01234567/manifest.json": ("was made by another configuration", "tiny+ict-s0-"),
    "results/logs/audit.log": ("is not a target",),
}
CONFIGURATIONS = {
    "misspelt key": ("seeds: [0]", "seedz: [0]", ("nano.yaml", "seedz: unknown key; did you mean seeds")),
    "misspelt key inside": ("execution: {shards", "execution: {shrads", ("nano.yaml", "shrads", "shards")),
    "wrong type": ("seeds: [0]", "seeds: [zero]", ("nano.yaml", "seeds.0", "'zero'")),
    "no seed": ("seeds: [0]", "seeds: []", ("nano.yaml", "seeds")),
    "unknown dataset": (
        "msmarco-passage: pydocs-stdlib",
        "msmarco-passage: pydocs-stdlb",
        ("'pydocs-stdlb'; did you mean pydocs-stdlib",),
    ),
    "unknown backbone": ("bert-base: tiny,", "bert-base: tinny,", ("unknown name 'tinny'; did you mean tiny",)),
    "unknown step": ("ict: {temperature", "itc: {temperature", ("unknown name 'itc'; did you mean tct or ict?",)),
    "unknown field": ("ict: {temperature", "ict: {temprature", ("'ict'", "temprature", "temperature")),
    "unknown row": ("[bm25, none,", "[bm52, none,", ("tables.table1: no row 'bm52'; did you mean bm25?",)),
    "unknown table": ("tables: {table1:", "tables: {tabel1:", ("tables.tabel1", "did you mean table1 or table2 or ")),
}
LINEAGES = {
    "bert-base+itc+marco-bm25": ("unknown step 'itc'; did you mean tct or ict?",),
    "bert-base+ict~length=64~batch=8": ("must be spelled 'bert-base+ict~batch=8~length=64'",),
    "bert-base+ict~temperature=0.05": ("its value already; leave it out",),
    "bert-base+ICT": ("'ICT' is not `step` or `step~key=value`",),
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone.fresh(tmp_path_factory.mktemp("pristine") / "a clone")


@pytest.fixture(scope="module")
def plan(pristine: Clone) -> Plan:
    """What nano plans."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(pristine.root)
        return planned()


def planned() -> Plan:
    """What Snakemake does before it looks at its targets."""
    plan = load_plan(Path("config/nano.yaml"))
    targets.everything_declared(plan)
    return plan


@contextmanager
def edited(clone: Clone, name: str, old: str, new: str) -> Iterator[None]:
    """One place of a file as it should not be, for as long as this lasts."""
    path = clone.root / name
    text = path.read_text()
    clone.replace(name, old, new)
    try:
        yield
    finally:
        path.write_text(text)


@contextmanager
def one_line(parts: Iterable[str]) -> Iterator[None]:
    """What the library refuses in one line with these parts; Snakemake and ``encore`` print it."""
    with pytest.raises(EncoreError) as refused:
        yield
    assert "\n" not in str(refused.value)
    assert all(part in str(refused.value) for part in parts), refused.value


@pytest.mark.parametrize("target", TARGETS)
def test_a_wrong_target(plan: Plan, target: str) -> None:
    with one_line(TARGETS[target]):
        targets.check_target(plan, target)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("results/models/tyni+ict-s0-01234567/manifest.json", ["unknown backbone 'tyni'; did you mean tiny"]),
        ("results/tables/tabel1.csv", ["tables.tabel1: no such table", "did you mean table1"]),
        ("results/negatives/bm25-01234567/x-01234567/manifest.json", ["is nothing that this configuration makes"]),
    ],
)
def test_snakemake_prints_what_is_wrong_with_a_target(pristine: Clone, target: str, says: list[str]) -> None:
    error = pristine.nano(target).error()
    assert all(part in error for part in says), error


def test_a_target_that_no_rule_makes_is_refused_by_snakemake_itself(pristine: Clone) -> None:
    done = pristine.nano("tabel1")
    assert done.code != 0
    assert "No rule to produce tabel1" in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("mistake", CONFIGURATIONS)
def test_a_wrong_configuration(pristine: Clone, monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    old, new, parts = CONFIGURATIONS[mistake]
    monkeypatch.chdir(pristine.root)
    with edited(pristine, "config/nano.yaml", old, new), one_line(parts):
        planned()


def test_snakemake_prints_what_is_wrong_with_a_configuration(clone: Clone) -> None:
    old, new, parts = CONFIGURATIONS["unknown row"]
    clone.replace("config/nano.yaml", old, new)
    error = clone.nano("-n").error()
    assert all(part in error for part in parts), error


@pytest.mark.parametrize("lineage", LINEAGES)
def test_a_wrong_lineage(plan: Plan, lineage: str) -> None:
    with one_line(LINEAGES[lineage]):
        targets.lineage_targets(plan, lineage)


def test_a_wrong_lineage_is_printed_by_both_programs(clone: Clone) -> None:
    """In the configuration, and on ``encore targets``'s command line."""
    lineage, parts = next(iter(LINEAGES.items()))
    asked = clone.encore("targets", lineage, "--config", "config/nano.yaml").error()
    with (clone.root / "config/nano.yaml").open("a") as file:
        file.write(f"lineages: ['{lineage}']\n")
    declared = clone.nano("-n").error()
    assert all(part in asked and part in declared for part in parts)


def test_the_catalogue_is_checked_with_file_and_place(pristine: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pristine.root)
    with edited(pristine, "config/systems.yaml", "k1: 0.9", "kl: 0.9"), one_line(["config/systems.yaml: bm25"]):
        planned()


def test_a_configuration_that_is_not_yaml(clone: Clone) -> None:
    """It is looked at before Snakemake reads it, which would not say where."""
    clone.replace("config/nano.yaml", "seeds: [0]", "seeds: [0")
    assert "config/nano.yaml is not YAML: while parsing a flow sequence" in clone.nano("-n").error()


MEASURES = ", ".join(f'"{name}": "{name}"' for name in ("RR@10", "R@100", "R@1000", "nDCG@10"))
BROKEN = f"""
datasets:
  mine:
    kind: beir
    path: data/mine
    splits:
      test: {{role: test, measures: {{{MEASURES}}}}}
      graded: {{role: test, file: qrels/test.tsv, measures: {{{MEASURES}}}}}
"""


def test_a_broken_folder_of_the_users_is_one_line_in_the_log_and_leaves_nothing(clone: Clone) -> None:
    """Lines may end as Windows has them; the fourth document is no UTF-8, and no judgment is read before it."""
    folder = clone.root / "data/mine"
    (folder / "qrels").mkdir(parents=True)
    rows = [f'{{"_id": "d{number}", "title": "", "text": "a text of café {number}"}}' for number in range(6)]
    encoded = [row.encode("latin-1" if number == 3 else "utf-8") for number, row in enumerate(rows)]
    (folder / "corpus.jsonl").write_bytes(b"".join(line + b"\r\n" for line in encoded))
    (folder / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "a text"}\r\n')
    (folder / "qrels/test.tsv").write_bytes(b"query-id\tcorpus-id\tscore\r\nq1\tnobody\t1\r\n")
    with (clone.root / "config/nano.yaml").open("a") as file:
        file.write(BROKEN)
    clone.replace("config/nano.yaml", "titles: pydocs-stdlib", "titles: mine")
    clone.replace("config/nano.yaml", '[bm25, none, "BM25 negatives: control", ict]', "[bm25]")
    (name,) = (job.split()[1] for job in exact_jobs(clone.nano("-n").succeeded()) if job.startswith("collection mine"))
    done = clone.nano(f"results/collections/{name}/manifest.json")
    assert done.code != 0
    (log,) = (clone.root / "results/logs/collection").glob("mine-*.log")
    (line,) = [line for line in log.read_text().splitlines() if line.startswith("error: ")]
    assert "data/mine/corpus.jsonl, line 4: not UTF-8" in line
    assert line in done.output
    assert "Traceback" not in log.read_text()
    assert not list((clone.root / "results/collections").rglob("*.json*"))


def without_slurm(folder: Path) -> str:
    """A PATH that has everything of the machine but SLURM's client programs."""
    folder.mkdir()
    for source in map(Path, os.environ["PATH"].split(":")):
        for program in source.iterdir() if source.is_dir() else []:
            link = folder / program.name
            if program.name not in ("sbatch", "scontrol", "squeue", "srun") and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def test_slurm_without_sbatch_is_refused_at_the_start(clone: Clone, tmp_path: Path) -> None:
    path = without_slurm(tmp_path / "bin")
    target = "results/tables/table1.csv"
    done = clone.snakemake(target, "--profile", "slurm", env={"PATH": path})
    assert "needs SLURM's sbatch, which is not on this machine; use a login node" in done.error()
    assert "Execute" not in done.output, "a job was submitted"
    assert clone.planned(target), "it must leave no lock behind"


def test_slurm_that_does_not_answer_is_refused_at_the_start(clone: Clone, tmp_path: Path) -> None:
    bin_folder = Path(without_slurm(tmp_path / "bin"))
    for name, code in (("sbatch", 0), ("scontrol", 1)):
        (bin_folder / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (bin_folder / name).chmod(0o755)
    done = clone.snakemake("--profile", "slurm", env={"PATH": str(bin_folder)})
    assert "no SLURM answers `scontrol ping`" in done.error()
