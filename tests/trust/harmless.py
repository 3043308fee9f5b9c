"""Changes that an audit must not complain of: what happens to folders, and what configuration leaves open."""

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import yaml
from changes import ODD_JSON
from finished_run import CONFIG, FinishedRun

Change = Callable[[FinishedRun, random.Random], None]
LITTER = (".run.swp", "a~", ".DS_Store", ".nfs0000001", "x.tmp", ".index.host.17.tmp")
RUN = str(CONFIG)


def some_files(run: FinishedRun, chance: random.Random) -> list[Path]:
    files = sorted(path for path in run.results.rglob("*") if path.is_file())
    return chance.sample(files, 10)


def another_time(run: FinishedRun, chance: random.Random) -> None:
    """Of copies, since a link's time is that of all its names."""
    when = chance.choice([0, 86_400, 4_102_444_800, chance.randrange(2**31)])
    for path in some_files(run, chance):
        run.write(str(path.relative_to(run.root)), path.read_bytes())
        os.utime(path, (when, when))


def other_modes(run: FinishedRun, chance: random.Random) -> None:
    mode = chance.choice([0o400, 0o444, 0o600, 0o755, 0o777])
    for path in some_files(run, chance):
        run.write(str(path.relative_to(run.root)), path.read_bytes())
        path.chmod(mode)


def editors_litter(run: FinishedRun, chance: random.Random) -> None:
    folder = chance.choice([*run.manifests])
    run.write(f"{folder}/{chance.choice(LITTER)}", chance.randbytes(chance.randrange(100)))


def a_state_left(run: FinishedRun, chance: random.Random) -> None:
    run.write(f"results/state/{chance.randrange(99)}/step-000000001.pt", chance.randbytes(99))


def no_logs(run: FinishedRun, chance: random.Random) -> None:
    shutil.rmtree(run.results / "logs")


def copied(run: FinishedRun, chance: random.Random) -> None:
    """The files of one kind of artifact copied, as ``cp`` does; or all of them packed and unpacked."""
    if chance.random() < 0.5:
        folder = run.results / chance.choice([each.name for each in run.results.iterdir() if each.is_dir()])
        shutil.copytree(folder, run.root / "copy", copy_function=chance.choice([shutil.copy, shutil.copy2]))
        shutil.rmtree(folder)
        (run.root / "copy").rename(folder)
        return
    packed = run.root / "results.tar"
    subprocess.run(["tar", "-cf", packed, "results"], cwd=run.root, check=True)
    shutil.rmtree(run.results)
    subprocess.run(["tar", "-xf", packed], cwd=run.root, check=True)
    packed.unlink()


def behind_a_link(run: FinishedRun, chance: random.Random) -> None:
    """Results on another disk, whatever it is called."""
    folder = run.results / chance.choice([each.name for each in run.results.iterdir() if each.is_dir()])
    other = run.results / chance.choice(["a blank", "é", "disk-2"])
    folder.rename(other)
    folder.symlink_to(other.name)


def edit_run(run: FinishedRun, change: Callable[[dict[str, object]], object]) -> None:
    content = yaml.safe_load((run.root / RUN).read_text())
    change(content)
    run.write(RUN, yaml.safe_dump(content, sort_keys=False))


def shuffled_keys(run: FinishedRun, chance: random.Random) -> None:
    """Every mapping in another order, in flow or in blocks."""

    def shuffled(value: object) -> object:
        if isinstance(value, dict):
            return {key: shuffled(value[key]) for key in chance.sample([*value], len(value))}
        return value

    content = yaml.safe_load((run.root / RUN).read_text())
    rows = content["scale"]["steps"]  # of which a later pattern counts more
    content = shuffled(content)
    content["scale"]["steps"] = rows  # type: ignore[index]
    run.write(RUN, yaml.safe_dump(content, sort_keys=False, default_flow_style=chance.choice([None, True, False])))


def comments(run: FinishedRun, chance: random.Random) -> None:
    name = chance.choice([RUN, "config/systems.yaml", "config/steps.yaml", "config/datasets.yaml"])
    lines = (run.root / name).read_text().splitlines()
    for place in sorted(chance.sample(range(len(lines)), 3), reverse=True):
        if lines[place] and not lines[place].startswith((" ", "-", "#")):
            lines.insert(place, f"# {chance.random()}")
    ending = chance.choice(["\n", "\r\n"])
    run.write(name, ending.join(lines) + ending)


def execution(run: FinishedRun, chance: random.Random) -> None:
    """How a run is carried out, in any way."""
    chosen = {
        "shards": chance.choice([1, 2, 7, {"pydocs-stdlib": 3}]),
        "processes": chance.randint(1, 8),
        "checkpoint_seconds": chance.randint(1, 999),
        "java_memory_mb": chance.randint(256, 9999),
        "data_root": chance.choice(["data", "/somewhere/else", "a b"]),
    }
    kept = chance.sample([*chosen], chance.randint(1, len(chosen)))
    edit_run(run, lambda content: content.update(execution={key: chosen[key] for key in kept}))


def limits(run: FinishedRun, chance: random.Random) -> None:
    edit_run(run, lambda content: content.update(limits={"disk_gb": chance.randint(1, 9), "gpu_hours": 0.5}))


def another_title(run: FinishedRun, chance: random.Random) -> None:
    edit_run(run, lambda content: content.update(title=f"Run {chance.random()}"))


def more_to_make(run: FinishedRun, chance: random.Random) -> None:
    """A table or a lineage that is not made yet; one has a step of pre-training that a figure would show."""
    more = chance.choice(
        [
            lambda content: content.update(lineages=["bert-base+mlm+marco-bm25"]),
            lambda content: content["tables"].update(table2=["bm25"]),
            lambda content: content["tables"].update(objectives=["simcse"]),
        ]
    )
    edit_run(run, more)


def other_settings(run: FinishedRun, chance: random.Random) -> None:
    """Fields of steps, systems and datasets that nothing made reads."""
    name = chance.choice(["costa", "mlm", "bow"])
    edit_run(run, lambda content: content["scale"]["steps"].update({name: {"steps": chance.randint(5, 99)}}))


def run_json(run: FinishedRun, chance: random.Random) -> None:
    """It tells times, and nothing depends on it, whatever happens to it."""
    place = f"{chance.choice([*run.manifests])}/run.json"
    texts = ["", "[]", "{", '{"seconds": 1}', '{"seconds": 1e999, "packages": []}', "\0", "[" * 100_000]
    run.write(place, chance.choice([*texts, b"\xff\xfe"]))


def a_lost_run_json(run: FinishedRun, chance: random.Random) -> None:
    (run.root / chance.choice([*run.manifests]) / "run.json").unlink()


def the_plan(run: FinishedRun, chance: random.Random) -> None:
    """What Snakemake writes whenever a run begins."""
    path = chance.choice(sorted((run.results / "plan").rglob("*.json")))
    run.write(str(path.relative_to(run.root)), chance.choice([*ODD_JSON, path.read_text() + " "]))


def the_root_file(run: FinishedRun, chance: random.Random) -> None:
    run.write("results/root.json", chance.choice([*ODD_JSON, '{"root": "0"}']))


HARMLESS: dict[str, Change] = {
    "other times": another_time,
    "other modes": other_modes,
    "what editors and file systems leave": editors_litter,
    "a state that was left": a_state_left,
    "no logs": no_logs,
    "copied or packed": copied,
    "results behind a link": behind_a_link,
    "keys in another order": shuffled_keys,
    "comments and line ends": comments,
    "execution": execution,
    "limits": limits,
    "another title": another_title,
    "more to make": more_to_make,
    "fields of what is not made": other_settings,
    "run.json": run_json,
    "no run.json": a_lost_run_json,
    "slices of the plan": the_plan,
    "the root's file": the_root_file,
}
