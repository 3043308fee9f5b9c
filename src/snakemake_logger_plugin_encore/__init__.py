"""Looks at the file of one of Encore's runs before Snakemake does; it logs nothing.

Snakemake tells mistakes in a file of ``--configfile`` without its name and line, and executes Python that stands in one
which says ``__use_yte__``. Both happen before the Snakefile is read. What comes earlier still is that Snakemake imports
its plugins: every package with a name such as this one's. Each Snakemake of this environment does so; nothing is done
unless the Snakefile is Encore's.
"""

import argparse
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase

TEMPLATES = "__use_yte__"
SNAKEFILES = ("Snakefile", "snakefile", "workflow/Snakefile", "workflow/snakefile")  # in the order of Snakemake
ENDINGS = (".yaml", ".yml", ".json")  # of a run's file
BUILT_IN = ("local", "dryrun", "touch")
GPU = re.compile(r"""^__variables__:\n(?:  .*\n)*?  gpu: *(["']?)(.*?)\1 *(?:#.*)?$""", re.MULTILINE)
FORMS = re.compile(r"gres=gpu(:\S+)?|gpus(=\S+)?")  # of that line of profiles/slurm: how a job requests a GPU
CLOUDS = ("kubernetes", "aws-batch", "azure-batch", "googlebatch", "tes")  # whose jobs share no files


class LogHandler(LogHandlerBase):
    """What a package of this kind has to have; nobody asks for it."""

    writes_to_stream = writes_to_file = has_filter = has_formatter = needs_rulegraph = False


def given(words: list[str]) -> argparse.Namespace | None:
    """The configuration, profile and executor of a command line of Snakemake's; None where it runs another workflow."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="*", type=Path, default=[], action="extend")
    parser.add_argument("--snakefile", "-s", type=Path)
    parser.add_argument("--profile", type=Path)
    parser.add_argument("--executor", "-e")
    try:
        found = parser.parse_known_args(words)[0]
    except argparse.ArgumentError:
        return None  # which is for Snakemake to say
    snakefile = found.snakefile or next((path for path in map(Path, SNAKEFILES) if path.is_file()), None)
    return found if snakefile is not None and is_ours(snakefile) else None


def is_ours(snakefile: Path) -> bool:
    """Whether a Snakefile is Encore's: in a clone next to the library, or in the installed package."""
    program = snakefile.resolve().parents[1]
    return (program / "src/encore").is_dir() or (program.name, program.parent.name) == ("program", "encore")


def refuse(path: Path) -> None:
    """Refuse what is no run's file, or has code in it."""
    from encore.config.validation import read_yaml
    from encore.errors import EncoreError

    if not path.exists():
        raise EncoreError(f"--configfile {path}: there is no such file; name a run's, and targets before it")
    try:
        content = read_yaml(path)
    except EncoreError as error:
        if path.suffix in ENDINGS:
            raise
        raise EncoreError(f"--configfile {path}: this is no run's file; name a run's, and targets before it") from error
    if TEMPLATES in content:
        raise EncoreError(f"{path}: {TEMPLATES} would have Snakemake execute what stands in the file; remove that key")


def refuse_executor(executor: str | None, profile: Path | None) -> None:
    """Refuse an executor, or that of a profile, which is not installed or has no files that its jobs share.

    It also refuses an unknown form of the line ``gpu:`` in SLURM's profile, which says how a GPU is requested.
    """
    from encore.errors import EncoreError

    lines = profile / "config.yaml" if profile else None
    if lines is not None and lines.is_file():
        text = lines.read_text(encoding="utf-8", errors="replace")
        named = re.search(r"^executor: *([\w-]+)", text, re.MULTILINE)
        executor = executor or (named[1] if named else None)
        asked = GPU.search(text)
        if asked and not FORMS.fullmatch(asked[2]):
            raise EncoreError(
                f"{lines}: gpu: {asked[2]} is none of gres=gpu, gres=gpu:TYPE, gpus, gpus=TYPE; correct it"
            )
    if executor in CLOUDS:
        raise EncoreError(
            f"--executor {executor}: Encore's jobs share files, and there they share none; take --profile local, slurm "
            "or profiles/cluster-generic on machines with a shared file system"
        )
    package = f"snakemake_executor_plugin_{(executor or '').replace('-', '_')}"
    if executor and executor not in BUILT_IN and find_spec(package) is None:
        raise EncoreError(f"--executor {executor} needs a package: pip install snakemake-executor-plugin-{executor}")


def main() -> None:
    """Look at the files of this process's command line; end it with one line where one is wrong.

    What it imports of the library for that is forgotten: the Snakefile imports that of its own clone.
    """
    words, known = given(sys.argv[1:]), set(sys.modules)
    if words is None:
        return
    from encore.errors import EncoreError

    try:
        refuse_executor(words.executor, words.profile)
        for path in words.configfile:
            refuse(path)
    except EncoreError as error:
        sys.exit(f"error: {error}")
    for name in set(sys.modules) - known:
        if name.partition(".")[0] == "encore":
            del sys.modules[name]


if Path(sys.argv[0]).name == "snakemake" or Path(sys.argv[0]).parent.name == "snakemake":
    main()
