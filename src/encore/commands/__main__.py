"""``encore``: inspect, check and plan runs, a module for each command. Snakemake (``workflow/``) makes the files.

A module has ``answer``, from the parsed command line to the exit status, and ``add_flags`` if the command takes any.
Only the command that was typed is imported.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

from encore.storage.program import run

from encore.errors import EncoreError
from encore.storage import environment
from encore.storage.release import __version__

COMMANDS = {
    "targets": "print the targets of a lineage, a system, a source or a dataset",
    "audit": "verify tables, figures, claims, the report and all that they were made from",
    "crate": "copy what was made, with all that it was made from, as an RO-Crate",
    "show": "print a finished table and the paths of its files, or the measures of a lineage",
    "explain": "show how a number was computed, down to the raw text",
    "claims": "print what each claim of the papers says of their own numbers",
    "flops": "print the floating-point operations that each row of a table spent",
    "show-config": "print each value of a lineage's steps, and where it comes from",
    "new": "write a run's file for a collection of your own: config/NAME.yaml",
    "convert": "write files in other forms as a folder in BEIR's layout, and say what was taken for what",
    "preflight": "print what a run needs and what is missing, before it starts",
    "whatif": "print the jobs, cells and claims that a change would change",
    "compare": "compare runs of any program with a baseline: differences, intervals, corrected tests",
    "clean": "remove from results what can be made again, and say first how much that is",
    "export": "write runs as TREC's text, which those over reported queries have already",
    "schema": "print the JSON schema of a run's configuration",
}
ASKS = ("show", "explain", "flops")  # commands about a table or figure, which know the run that made it
OF_NO_RUN = ("compare", "convert", "clean", "export", "schema")  # commands that need no run's configuration


def main() -> None:
    """Parse the command line and answer; ``ENCORE_TRACEBACK=1`` shows where an unexpected error came from."""
    run(lambda: answer_words(sys.argv[1:]), traceback=bool(environment.text(environment.TRACEBACK)))


def answer_words(words: list[str]) -> int:
    """The exit status of a command line."""
    parser = argparse.ArgumentParser(prog="encore", description="Inspect, check and plan runs of Encore.")
    parser.add_argument("--version", action="version", version=f"encore {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, does in COMMANDS.items():
        command = commands.add_parser(name, help=does, description=does)
        if words[:1] == [name]:
            _add(command, name)
    arguments = parser.parse_args(words)
    if (name := words[0]) not in OF_NO_RUN:
        if arguments.config and not arguments.config.exists():
            raise EncoreError(f"--config {arguments.config}: the file is missing; name a run's file")
        arguments.config = arguments.config or _run_behind(arguments, name)
    return int(arguments.answer(arguments))


def _add(command: argparse.ArgumentParser, name: str) -> None:
    """Import a command, and give it its flags."""
    made = " (default: that of the run that made the table or figure, else config/config.yaml)"
    if name not in OF_NO_RUN:
        command.add_argument("--config", type=Path, help=f"the run's configuration{made if name in ASKS else ''}")
    module = import_module(f"encore.commands.{name.replace('-', '_')}")
    command.set_defaults(answer=module.answer)
    if hasattr(module, "add_flags"):
        module.add_flags(command)


def _run_behind(arguments: argparse.Namespace, name: str) -> Path:
    """The run that made the table or figure that a command is about, or the default one."""
    from encore.plan import index
    from encore.storage.program_files import CATALOGUE
    from encore.storage.typed import DEFAULT_RUN

    if name not in ASKS:
        return DEFAULT_RUN if DEFAULT_RUN.exists() else CATALOGUE / DEFAULT_RUN.name
    if index.is_damaged():
        raise EncoreError(f"{index.INDEX} is damaged, which says what run made a table; name that with --config")
    run = index.read().run_of(arguments.table)
    if not run and not DEFAULT_RUN.exists():  # in a study's folder
        raise EncoreError(f"no run has made {arguments.table} here yet; build it, or name the run's file with --config")
    return run or DEFAULT_RUN


if __name__ == "__main__":
    main()
