"""Jobs killed at any moment, trainings above all: no half file, and the same job again ends with the same bytes."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import Job, outputs
from trials import SEED, Count
from whole_runs import finished_files, kill_in, planned_jobs, processes_of, unlock

from encore.storage import manifest
from tests.support.clones import Clone

TRAININGS = (
    "tiny+ict-s0",
    "tiny+control-s0",
    "tiny+marco-bm25-s0",
    "tiny+ict+marco-bm25-s0",
    "tiny+marco-bm25+marco-hn",
)
OTHERS = ("collections/", "tokenizers/", "tokens/", "indexes/lucene/", "indexes/tiny+ict+", "models/tiny-s0-")
OTHERS += ("runs/bm25-", "runs/tiny+control", "negatives/tiny+ict+", "scores/bm25-")
WHOLE = [*((name, 5) for name in TRAININGS), *((name, 3) for name in OTHERS)]
SIZES = [pytest.param(name, 2, id=f"sample {name}") for name in ("tiny+ict-s0", "negatives/tiny+ict+")]
SIZES += [pytest.param(name, times, id=name, marks=pytest.mark.everything) for name, times in WHOLE]
ROUNDS = 3  # of a kill in each stage: more than fifty


def at_work(chance: random.Random, folder: Path) -> Callable[[], bool]:
    """Some time after a job has begun to make its folder."""
    return after(folder.is_dir, chance.choice([0.01, 0.1, 1.0]) * chance.random())


def in_training(chance: random.Random, state: Path, steps: int) -> Callable[[], bool]:
    """Some milliseconds after the checkpoint of some step, or while the next one is written; each step has one."""
    step = chance.randrange(max(1, steps - 4))
    if chance.random() < 0.4:
        return after(lambda: last_step(state) >= step, chance.random() * 0.05)
    return lambda: last_step(state) >= step and (any(state.glob(".step-*.tmp")) or last_step(state) > step + 2)


def after(begun: Callable[[], bool], seconds: float) -> Callable[[], bool]:
    """Whether so many seconds have passed since something began."""
    seen: list[float] = []

    def come() -> bool:
        if not seen and begun():
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() > seen[0] + seconds

    return come


def last_step(state: Path) -> int:
    """Of the newest checkpoint; 0 where there is none."""
    names = os.listdir(state) if state.is_dir() else []  # noqa: PTH208  # the fastest look
    return max((int(name[5:-3]) for name in names if name.startswith("step-")), default=0)


def what_was_hit(job: Job) -> str:
    """The moment at which a job was killed, by what it has left."""
    if not job.trains:
        return "another job"
    if any(job.state.glob(".step-*.tmp")):
        return "a training, while a checkpoint was written"
    return f"a training, {'between' if last_step(job.state) else 'before the first of its'} checkpoints"


@pytest.mark.parametrize(("name", "times"), SIZES)
def test_a_killed_job_ends_with_the_same_bytes(nano: Clone, name: str, times: int, count: Count) -> None:
    kind = name if "/" in name else f"models/{name}"
    (folder, *_) = (path.parent for path in sorted((nano.root / "results").glob(f"{kind}*/**/{manifest.MANIFEST}")))
    job = Job(nano, str(folder.relative_to(nano.root / "results")))
    chance, hit = random.Random(f"{SEED} {name}"), []
    while len(hit) < times:
        moment = in_training(chance, job.state, job.steps) if job.trains else at_work(chance, job.folder)
        if not job.kill(moment):
            shutil.rmtree(job.folder, ignore_errors=True)  # it was faster: again
            continue
        assert job.half_files() == []
        hit.append(what_was_hit(job))
    assert job.finish() == ""
    assert {path: path.read_bytes() for path in outputs(job.folder)} == {
        job.folder / path.relative_to(job.before): path.read_bytes() for path in outputs(job.before)
    }
    assert not [path for path in (nano.root / "results").rglob("*.tmp") if path.is_file()]
    assert not [path for path in (nano.root / "results/state").rglob("*") if path.is_file()]
    for kind in hit:
        count("kills", kind, 1, 1)


AGAIN = ["evaluate", *(pytest.param(rule, marks=pytest.mark.everything) for rule in ("finetune", "tokens"))]


@pytest.mark.parametrize("rule", AGAIN)
def test_what_was_killed_while_it_was_made_again_is_missed(
    finished: Clone, nano: Clone, rule: str, count: Count
) -> None:
    """Snakemake has removed the job's outputs by then; what was made from them is still there."""
    (job, *_) = (job for job in planned_jobs(nano) if job.rule == rule)
    chance = random.Random(f"{SEED} {rule} again")
    while not kill_in(nano, [job], chance.random() * 0.3, "--forcerun", job.manifest, "--until", rule):
        pass  # it was faster: again
    unlock(nano)
    assert not (nano.root / job.manifest).exists()
    nano.nano().succeeded()
    assert nano.files() == finished.files()
    count("kills", "a job that made a folder again", 1, 1)


def test_what_somebody_removed_is_not_made_again_for_what_is_there(nano: Clone) -> None:
    shutil.rmtree(nano.folder("models", "tiny+ict-s0"))
    assert nano.planned() == set()


def test_jobs_whose_server_was_killed_start_by_themselves(nano: Clone, same: Callable[[], bool], count: Count) -> None:
    """Nobody answers at its socket; a job that it has begun is one line, and the same command goes on."""
    for kind in ("scores", "tables", "figures"):  # ten jobs, of which a server makes forks
        shutil.rmtree(nano.root / "results" / kind)
    run, servers = nano.start_nano(), list[tuple[int, Path]]()
    while not (servers and servers[0][1].exists()):
        assert run.poll() is None
        found = ((number, command.split(b"\0")) for number, command in processes_of(run) if b"server.py\0" in command)
        servers = [(number, Path(os.fsdecode(words[-2]))) for number, words in found]
        time.sleep(0.01)
    ((number, address),) = servers
    time.sleep(random.Random(f"{SEED} server").random())
    os.kill(number, signal.SIGKILL)
    said, _ = run.communicate()
    assert "Traceback" not in said, said
    assert not address.parent.exists()
    if run.returncode:
        assert "error: the process that starts jobs was killed, perhaps out of memory; repeat the command" in said
        nano.nano().succeeded()
    assert same()
    count("kills", "the process that starts jobs", 1, 1)


@pytest.mark.everything
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_run_that_is_killed_in_every_stage_ends_with_the_same_bytes(
    finished: Clone, nano: Clone, count: Count, round_: int
) -> None:
    """From nothing: the same command continues after each kill, until it is killed in the next stage.

    A stage that was too fast for a kill is done again, with all that was made from it.
    """
    chance, jobs, expected = random.Random(f"{SEED} stages {round_}"), planned_jobs(nano), finished.files()
    for path in (nano.root / "results").glob("[!.]*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    hit = []
    for rule in dict.fromkeys(job.rule for job in jobs):
        killed, delay = None, chance.random() * chance.choice([0.1, 1, 3])
        mine = [job for job in jobs if job.rule == rule]
        while killed is None:
            if all((nano.root / job.manifest).exists() for job in mine):
                (nano.root / mine[-1].manifest).unlink()
            killed = kill_in(nano, mine, delay)
            delay /= 2
            unlock(nano)
        present = finished_files(nano)
        assert present == {name: expected.get(name) for name in present}, f"after a kill in {killed.manifest}"
        hit.append(killed.rule)
    nano.nano_as_typed().succeeded()
    assert nano.files() == expected
    assert len(hit) == len({job.rule for job in jobs}) > 15
    for rule in hit:
        count("kills", f"a whole run, in {rule}", 1, 1)
