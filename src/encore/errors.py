"""The one exception that a user is meant to read."""


class EncoreError(Exception):
    """Bad input or a damaged artifact, said in one line: what is wrong, where, and the mend.

    Programs catch it at the top, print ``error: <message>`` and exit with 1; anything else is a bug and keeps its
    traceback.
    """
