"""``encore.new_run``: ``encore new`` for notebooks."""

import contextlib
import io
from typing import Any

from encore.commands.__main__ import answer_words
from encore.errors import EncoreError


def new_run(name: str, **flags: Any) -> list[str]:
    """Write ``config/NAME.yaml`` as ``encore new NAME`` does, print what it prints, and return the commands to type.

    Args:
        flags: those of the command, with underscores: ``beir="data/own"``, ``zero_shot=True``, ``from_="files"``,
            ``config="config/small.yaml"``. A collection of ``from_dataframes`` can be given in place of its folder.
    """
    words = ["new", name]
    for flag, value in flags.items():
        if value not in (None, False):
            words.append(f"--{flag.strip('_').replace('_', '-')}")
            words += [] if value is True else [str(getattr(value, "folder", value))]
    printed, refused = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(refused):
            answer_words(words)
    except SystemExit as error:  # of a flag that is none
        raise EncoreError(refused.getvalue().strip().rpartition("error: ")[2]) from error
    print(printed.getvalue(), end="")
    return [line.strip() for line in printed.getvalue().partition("Now:\n")[2].splitlines()]
