"""Looks at the file of one of Encore's runs before Snakemake does; it logs nothing.

Snakemake tells mistakes in a file of ``--configfile`` without its name and line, and executes Python that stands in one
which says ``__use_yte__``. Both happen before the Snakefile is read. What comes earlier still is that Snakemake imports
its plugins: every package with a name such as this one's. Each Snakemake of this environment does so; nothing is done
unless the Snakefile is Encore's.
"""

import argparse
import sys
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase

TEMPLATES = "__use_yte__"
SNAKEFILES = ("Snakefile", "snakefile", "workflow/Snakefile", "workflow/snakefile")  # in the order of Snakemake


class LogHandler(LogHandlerBase):
    """What a package of this kind has to have; nobody asks for it."""

    writes_to_stream = writes_to_file = has_filter = has_formatter = needs_rulegraph = False


def run_files(words: list[str]) -> list[Path]:
    """The files that a command line of Snakemake's gives as configuration; none where it runs another workflow."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--configfile", "--configfiles", nargs="*", type=Path, default=[], action="extend")
    parser.add_argument("--snakefile", "-s", type=Path)
    try:
        given = parser.parse_known_args(words)[0]
    except argparse.ArgumentError:
        return []  # which is for Snakemake to say
    snakefile = given.snakefile or next((path for path in map(Path, SNAKEFILES) if path.is_file()), None)
    return given.configfile if snakefile is not None and is_ours(snakefile) else []


def is_ours(snakefile: Path) -> bool:
    """Whether a Snakefile is Encore's: in a clone next to the library, or in the installed package."""
    program = snakefile.resolve().parents[1]
    return (program / "src/encore").is_dir() or (program.name, program.parent.name) == ("program", "encore")


def refuse(path: Path) -> None:
    """Refuse what is no run's file, or has code in it.

    Raises:
        EncoreError: with the file and, where there is one, the line.
    """
    from encore.config.validation import read_yaml
    from encore.errors import EncoreError

    if not path.exists():
        raise EncoreError(f"--configfile {path}: there is no such file; name a run's, and targets before it")
    if TEMPLATES in read_yaml(path):
        raise EncoreError(f"{path}: {TEMPLATES} would have Snakemake execute what stands in the file; remove that key")


def main() -> None:
    """Look at the files of this process's command line; end it with one line where one is wrong.

    What it imports of the library for that is forgotten: the Snakefile imports that of its own clone.
    """
    files, known = run_files(sys.argv[1:]), set(sys.modules)
    if not files:
        return
    from encore.errors import EncoreError

    try:
        for path in files:
            refuse(path)
    except EncoreError as error:
        sys.exit(f"error: {error}")
    for name in set(sys.modules) - known:
        if name.partition(".")[0] == "encore":
            del sys.modules[name]


if Path(sys.argv[0]).name == "snakemake" or Path(sys.argv[0]).parent.name == "snakemake":
    main()
