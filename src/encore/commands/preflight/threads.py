"""How many threads a rule is given: what the rules themselves say."""

from __future__ import annotations

import re
from pathlib import Path

from encore.config.run import RunConfig

RULES = Path("workflow/rules")
RULE = re.compile(r"^rule (\w+):$(.*?)(?=^rule |\Z)", re.MULTILINE | re.DOTALL)
THREADS = re.compile(r"^    threads: (.+?)(?:  #.*)?$", re.MULTILINE)


def rule_threads(config: RunConfig, folder: Path = RULES) -> dict[str, int]:
    """Threads by rule, where a rule says a number, or one that the run's configuration has."""
    found = {}
    for path in sorted(folder.glob("*.smk")):
        for name, body in RULE.findall(path.read_text(encoding="utf-8")):
            given = THREADS.search(body)
            found[name] = _number(given[1], config) if given else 1
    return found


def _number(given: str, config: RunConfig) -> int:
    if given.isdigit():
        return int(given)
    if "preprocessing_cores" in given:
        return config.execution.preprocessing_cores
    if "processes" in given:
        return config.execution.processes
    return config.numerics.threads if "NUMERICS.threads" in given else 1
