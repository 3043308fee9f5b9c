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
            said = THREADS.search(body)
            found[name] = _number(said[1], config) if said else 1
    return found


def _number(said: str, config: RunConfig) -> int:
    if said.isdigit():
        return int(said)
    if "processes" in said:
        return config.execution.processes
    return config.numerics.threads if "numerics.threads" in said else 1
