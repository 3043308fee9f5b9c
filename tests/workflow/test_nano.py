"""One nano run from raw text to the page of results, which other suites copy."""

import re

from tests.support.clones import Clone
from tests.support.nano_jobs import CONFIG


def test_a_finished_run_is_finished(nano: Clone) -> None:
    """The second run has nothing to do, and the audit nothing to complain of."""
    assert "Nothing to be done" in nano.nano().succeeded()
    assert re.search(r"audit: \d\d artifacts verified, 0 bad", nano.encore("audit", *CONFIG).succeeded())
