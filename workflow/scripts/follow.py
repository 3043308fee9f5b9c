"""Show Snakemake's progress as a line a step; what is no routine message passes through unchanged.

snakemake ... 2>&1 | python workflow/scripts/follow.py
"""

import argparse
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator

_ROUTINE = re.compile(
    r"\[\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\]|(local)?rule \w+:|Select jobs to execute\.\.\.|Execute \d+ jobs\.\.\.|"
    r"SNAKEMAKE|=+|  [A-Z][A-Za-z5 ()]+: .*|Conda environments: ignored|Complete log.*|"
    r"(Assuming unrestricted|Building DAG|Using shell|Using workflow specific|Provided cores|Rules claiming).*"
)
_FINISHED = re.compile(r"Finished jobid: (\d+) \(Rule: (\w+)\)")
_STEPS = re.compile(r"(\d+) of (\d+) steps \(\d+%\) done")
_DIGEST = re.compile(r"-[0-9a-f]{8}\b")


def steps(lines: Iterable[str], started: float) -> Iterator[str]:
    """A line for each finished step: its number, minutes since ``started``, rule, and what it was about."""
    about: dict[str, str] = {}  # of each job
    job, finished, inside = "", "", False
    for line in lines:
        if inside and line.startswith("    "):
            key, _, value = line.strip().partition(": ")
            job = value if key == "jobid" else job
            if key == "wildcards":
                about[job] = _readable(value)
            continue
        inside = bool(re.match(r"(local)?rule \w+:$", line))
        if match := _FINISHED.fullmatch(line):
            finished = f"{match[2]:<14} {about.get(match[1], '')}"
        elif match := _STEPS.fullmatch(line):
            minutes, seconds = divmod(round(time.monotonic() - started), 60)
            yield f"{int(match[1]):>4} of {match[2]}  {minutes:>3}:{seconds:02}  {finished}".rstrip()
        elif line and not _ROUTINE.fullmatch(line):
            yield line


def _readable(wildcards: str) -> str:
    """``model=tiny-s0-01234567, topics=pydocs.test-89abcdef`` as ``tiny-s0 pydocs.test``."""
    return " ".join(_DIGEST.sub("", pair.partition("=")[2]) for pair in wildcards.split(", "))


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is Snakemake's, whose last words are still to be shown
    for step in steps((line.rstrip("\n") for line in sys.stdin), time.monotonic()):
        print(step, flush=True)


if __name__ == "__main__":
    main()
