"""Programs inside the process of a test: what a shell gets from them, without seconds of imports for each.

That each program starts as a process of its own, with all that it needs, is what the end-to-end tests show.
"""

import atexit
import contextlib
import hashlib
import io
import json
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PLANNED = Path(tempfile.mkdtemp(prefix="encore-planned-"))
atexit.register(shutil.rmtree, PLANNED, ignore_errors=True)
SCRIPTS = Path(__file__).resolve().parents[2] / "workflow" / "scripts"
Folders = Mapping[str, str | Path]


def planned(stage: str, fields: Mapping[str, Any], inputs: Folders, **others: Any) -> str:
    """A file as the plan writes one for a folder; its place.

    Args:
        stage: with a variant or without.
        fields: of its ``Spec``; an ``impl`` among them is left out, as the stage says it.
        inputs: folders by role.
        others: ``source`` and ``details``.
    """
    from encore import stages

    given = {name: value for name, value in fields.items() if name != "impl"}
    name, spec = stages.load(stage).planned(given, {role: Path(folder).name for role, folder in inputs.items()})
    folders = {role: str(folder) for role, folder in inputs.items()}
    text = json.dumps({"stage": name, "spec": spec, "inputs": folders, **others}, default=str)
    place = PLANNED / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    place.write_text(text)
    return str(place)


def making(stage: str, fields: Mapping[str, Any], inputs: Folders, output: str | Path, **others: Any) -> list[str]:
    """The words of ``make.py STAGE`` for a folder that is planned so, as its rule has them."""
    program = [str(SCRIPTS / "make.py"), stage.partition(".")[0]]
    return [*program, "--planned", planned(stage, fields, inputs, **others), "--output", str(output)]


def make(
    stage: str, fields: Mapping[str, Any], inputs: Folders, output: str | Path, cwd: Path | None = None, **others: Any
) -> "subprocess.CompletedProcess[str]":
    """``python workflow/scripts/make.py STAGE`` in a folder."""
    words = making(stage, fields, inputs, output, **others)
    return ended(words[0], tuple(words[1:]), cwd, lambda: runpy.run_path(words[0], run_name="__main__"))


def made(
    stage: str, fields: Mapping[str, Any], inputs: Folders, output: str | Path, cwd: Path | None = None, **others: Any
) -> str:
    """What is printed where a folder is made so, and nothing is wrong."""
    done = make(stage, fields, inputs, output, cwd, **others)
    assert done.returncode == 0, done.stderr
    return done.stdout


def script(name: str, *arguments: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """``python workflow/scripts/NAME.py ARGUMENTS`` in a folder."""
    path = str(SCRIPTS / f"{name}.py")
    return ended(path, arguments, cwd, lambda: runpy.run_path(path, run_name="__main__"))


def product(stage: str, plan: Path, folder: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """``make_product.py STAGE``, whose files are written to a folder."""
    return script("make_product", stage, "--plan", plan, *arguments, "--output", *files(stage, plan.stem, folder))


def files(stage: str, name: str, folder: Path) -> list[Path]:
    """The files of a product in a folder, the manifest last."""
    from encore.products.kinds import BY_RULE

    kind = BY_RULE[stage]
    return [folder / Path(kind.named(file, name)).name for file in kind.files]


def encore(*arguments: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """``encore ARGUMENTS`` in a folder."""
    from encore.commands.__main__ import main

    return ended("encore", arguments, cwd, main)


def ended(
    name: str, arguments: tuple[object, ...], cwd: Path | None, main: Callable[[], object]
) -> "subprocess.CompletedProcess[str]":
    """How a main ended, with both of its streams."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    before, code, command = signal.getsignal(signal.SIGINT), 0, [name, *map(str, arguments)]
    given, sys.argv = sys.argv, command
    try:
        with contextlib.chdir(cwd or "."), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as asked:
        code = asked.code if isinstance(asked.code, int) else int(asked.code is not None)
    finally:
        sys.argv = given
        signal.signal(signal.SIGINT, before)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(command, code, *texts)
