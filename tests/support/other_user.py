"""Commands as another user, if the tests run as root."""

from tests.support.clones import Clone, Done

NOBODY = 65534
BECOMING = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
READING = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")  # wherever the interpreter is


def as_nobody(clone: Clone, *command: str) -> Done:
    """Run a command as a user who may read everything and write only what is theirs."""
    return clone.run(*BECOMING, *READING, *command, env={"HOME": "/tmp"})
