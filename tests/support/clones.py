"""The repository as a newcomer has it: a copy of its tracked files, and the commands that a user types in it."""

import compileall
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from encore.storage.files import sha256
from tests.support import forks, inside

REPOSITORY = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
LARGE = 500_000  # bytes
TELL_TIMES = ("logs", "benchmarks", "report")  # folders of results
REMEMBERED = ("plan/index.json", "plan/digests.json")
NANO = ("--profile", "local", "--configfile", "config/nano.yaml")

# Snakemake announces each job, planned or started, with its rule and, four blanks in, its wildcards.
_JOB = re.compile(r"^(?:local)?rule (\w+):\n((?: {4}.*\n)*)", re.MULTILINE)
_WILDCARDS = re.compile(r"^ {4}wildcards: (.*)$", re.MULTILINE)
_DIGEST = re.compile(r"-[0-9a-f]{8}\b")


def jobs(output: str) -> set[str]:
    """Every job that Snakemake announced, as ``rule wildcard wildcard``, without digests; ``all`` makes nothing."""
    return {_DIGEST.sub("", job) for job in exact_jobs(output)}


def exact_jobs(output: str) -> set[str]:
    """Every job that Snakemake announced, with the digests in its folders' names."""
    found = set()
    for rule, details in _JOB.findall(output):
        wildcards = _WILDCARDS.search(details)
        values = [pair.split("=", 1)[1] for pair in wildcards[1].split(", ")] if wildcards else []
        found.add(" ".join([rule, *values]))
    return found - {"all"}


class Clone:
    """A folder with the repository's tracked files, and whatever was made in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def fresh(cls, root: Path) -> "Clone":
        """What ``git clone`` of the working tree would give, and its library as Python compiles it."""
        root.mkdir(parents=True)
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True, text=True)
        for name in filter(None, listed.stdout.split("\0")):
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, target, follow_symlinks=False)
        for path in _compiled():
            target = root / path.relative_to(REPOSITORY)
            target.parent.mkdir(exist_ok=True)
            shutil.copy2(path, target)
        return cls(root)

    def copy(self, root: Path) -> "Clone":
        """A clone in the same state, modification times included; large files, which are only replaced, are linked."""
        shutil.copytree(self.root, root, symlinks=True, copy_function=_link_large)
        return Clone(root)

    def run(self, *command: str, env: dict[str, str] | None = None, timeout: float = 900, **options: Any) -> "Done":
        """Run a command in the clone's root, both streams together, for ``timeout`` seconds at most."""
        done = subprocess.run(
            command,
            cwd=self.root,
            env=environment() | (env or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout,
            **options,
        )
        return Done(done.returncode, done.stdout)

    def snakemake(self, *arguments: str, env: dict[str, str] | None = None, timeout: float = 900) -> "Done":
        """Run the environment's Snakemake and its jobs, without the seconds that each of them would import for."""
        return self.program(forks.SNAKEMAKE, *arguments, env=env, timeout=timeout)

    def program(self, *command: str, env: dict[str, str] | None = None, timeout: float = 900) -> "Done":
        """Run a program of the clone, as a job of that Snakemake runs it."""
        variables = forks.environment() | {"PYTHONPATH": str(self.root / "src")} | (env or {})
        return self.run(sys.executable, forks.JOB, *command, env=variables, timeout=timeout)

    def nano(self, *arguments: str, **options: Any) -> "Done":
        """Run Snakemake with the nano configuration."""
        return self.snakemake(*arguments, *NANO, **options)

    def nano_as_typed(self, *arguments: str) -> "Done":
        """The same as a newcomer has it."""
        return self.run(str(BIN / "snakemake"), *NANO, *arguments)

    def planned(self, *arguments: str) -> set[str]:
        """The jobs that a dry run of nano plans."""
        return jobs(self.nano("-n", *arguments).succeeded())

    def built(self, *arguments: str) -> set[str]:
        """The jobs that a real run of nano carries out."""
        return jobs(self.nano(*arguments).succeeded())

    def encore(self, *arguments: str) -> "Done":
        """What ``encore`` says in the clone; of the repository's library, in this process."""
        done = inside.encore(*arguments, cwd=self.root)
        return Done(done.returncode, done.stdout + done.stderr)

    def start_nano(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start nano as a process group of its own, as a terminal does; its output is read line by line."""
        return subprocess.Popen(
            [str(BIN / "snakemake"), *arguments, *NANO],
            cwd=self.root,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def replace(self, name: str, old: str, new: str) -> None:
        """Edit one place of a file."""
        path = self.root / name
        text = path.read_text()
        assert text.count(old) == 1, f"{name} has {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new))

    def folder(self, kind: str, name: str) -> Path:
        """The one folder of results of that kind and name, whatever its digest."""
        (found,) = (path for path in (self.root / "results" / kind).iterdir() if _DIGEST.sub("", path.name) == name)
        return found

    def table(self) -> bytes:
        return (self.root / "results/tables/table1.csv").read_bytes()

    def manifests(self) -> dict[str, bytes]:
        """Every manifest by its place; not the report's, which shows how long each job took."""
        paths = sorted((self.root / "results").rglob("*manifest.json"))
        return {str(path.relative_to(self.root)): path.read_bytes() for path in paths if path.parent.name != "report"}

    def files(self) -> dict[str, str]:
        """The digest of every file of results by its place, but not of those that differ between equal runs.

        These are logs, benchmarks, ``run.json``, the report, which show times, and what planning remembers.
        """
        results, found = self.root / "results", {}
        for path in filter(Path.is_file, results.rglob("*")):
            place = path.relative_to(results)
            if place.parts[0] not in TELL_TIMES and path.name != "run.json" and str(place) not in REMEMBERED:
                found[str(place)] = sha256(path)
        return dict(sorted(found.items()))


class Done:
    """How a command ended, and all that it printed."""

    def __init__(self, code: int, output: str) -> None:
        self.code = code
        self.output = output

    def succeeded(self) -> str:
        """The output of a command that must have succeeded."""
        assert self.code == 0, self.output
        return self.output

    def error(self) -> str:
        """The one ``error:`` line of a command that must have failed, and without a traceback."""
        assert self.code != 0, self.output
        assert "Traceback" not in self.output, self.output
        lines = {line.strip() for line in self.output.splitlines() if line.strip().startswith("error: ")}
        assert len(lines) == 1, self.output
        return lines.pop()


@cache
def _compiled() -> list[Path]:
    """What Python has compiled of the library, so that not every clone does it again."""
    compileall.compile_dir(REPOSITORY / "src", quiet=1)
    packages = [path.parent for path in (REPOSITORY / "src").rglob("__init__.py")]
    compiled = (path for package in packages for path in package.glob("__pycache__/*"))
    return [path for path in compiled if path.suffix == ".pyc"]


def _link_large(source: str, target: str) -> None:
    path = Path(source)
    if path.is_file() and not path.is_symlink() and path.stat().st_size > LARGE:
        Path(target).hardlink_to(path)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def environment() -> dict[str, str]:
    """A newcomer's environment: none of the tests' own settings of Python and SLURM."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST", "SLURM"))}
    return kept | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
