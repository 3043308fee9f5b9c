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
from collections.abc import Callable
from pathlib import Path

SPECS = Path(tempfile.mkdtemp(prefix="encore-specs-"))
atexit.register(shutil.rmtree, SPECS, ignore_errors=True)
SCRIPTS = Path(__file__).resolve().parents[2] / "workflow" / "scripts"


def spec(content: object) -> str:
    """A file with a spec, as the workflow writes one for each program; its place."""
    text = content if isinstance(content, str) else json.dumps(content)
    place = SPECS / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    place.write_text(text)
    return str(place)


def script(name: str, *arguments: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """``python workflow/scripts/NAME.py ARGUMENTS`` in a folder; a spec that is given as JSON is put into a file."""
    path = str(SCRIPTS / f"{name}.py")
    given = [*arguments]
    if "--spec" in given and "--plan" not in given and str(given[(at := given.index("--spec") + 1)]).startswith("{"):
        given[at] = spec(given[at])
    return ended(path, tuple(given), cwd, lambda: runpy.run_path(path, run_name="__main__"))


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
