"""The one exception that a user is meant to read."""

SHOWN = 80  # characters of an unexpected text that a message repeats


class EncoreError(Exception):
    """Bad input or a damaged artifact, in one line: what is wrong, where, and how to fix it.

    Every public function may raise it, so docstrings do not say so. Programs catch it at the top, print
    ``error: <message>`` and exit with 1; of anything else they print its type and its place too.
    """


def quoted(found: object) -> str:
    """What was found, as Python writes it and short enough for a line."""
    text = repr(found if not isinstance(found, str) else found[:SHOWN])
    cut = len(text) > SHOWN + 2 or (isinstance(found, str) and len(found) > SHOWN)
    return f"{text[: SHOWN + 2]}…" if cut else text
