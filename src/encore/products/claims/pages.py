"""The claims on runs as Markdown for people: one table a paper."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from encore.products.claims.verdict import AGREE
from encore.products.tables.aligned_text import plain

Line = Mapping[str, str]  # of ``claims.csv``, by column

RUNS = {
    "id": "id",
    "claim": "claim",
    "place": "where",
    "verdict": "verdict",
    "survives_control": "survives control",
    "held": "hold",
    "chance": "chance",
    "weakest": "weakest",
    "estimate": "estimate",
    "p": "p",
    "why": "why",
}
ABOUT_RUNS = """# The claims on the runs

The weakest comparison of each, with its estimate. *Survives control*: whether the gain also holds over more
fine-tuning with the same number of operations. *Chance*: the probability that as many comparisons hold in the estimates
if all systems are equally good.
"""


def of_runs(lines: Sequence[Line]) -> str:
    """The page of ``claims.csv``."""
    text = ABOUT_RUNS + agreement(lines)
    for paper in dict.fromkeys(line["paper"] for line in lines):
        own = [line for line in lines if line["paper"] == paper]
        counts = Counter(entry["verdict"] for entry in own)
        rows = [list(RUNS.values()), ["---"] * len(RUNS)]
        rows += [[_shown(name, each) for name in RUNS] for each in own]
        text += f"\n## {paper}\n\n{counted(counts)}\n\n"
        text += "".join("| " + " | ".join(row) + " |\n" for row in rows)
    return text


def agreement(lines: Sequence[Line]) -> str:
    """How many claims agree with the estimates, and how many would by chance; nothing without a claim with a chance."""
    known = [(line["verdict"] in AGREE, float(line["chance"])) for line in lines if line["chance"]]
    agree, expected = sum(agrees for agrees, _ in known), math.fsum(rate for _, rate in known)
    text = f"\nOf {len(known)} claims with a chance {agree} agree with the estimates; {expected:.1f} would by chance.\n"
    return text if known else ""


def _shown(name: str, entry: Line) -> str:
    text = entry[name]
    if name == "held" and text:
        text += f" of {entry['inequalities']}"
        text += f" ({entry['needed']} needed)" if entry["needed"] != entry["inequalities"] else ""
        left_out = re.match(r"(\d+) of \d+ comparisons left out", entry.get("why", ""))
        text += f", {left_out[1]} left out" if left_out else ""
    elif re.fullmatch(r"-?\d*\.\d+(e-?\d+)?", text):
        text = f"{float(text):.3g}"
    return plain(text)


def counted(verdicts: Mapping[str, int]) -> str:
    """How often each verdict was given, in a line."""
    return ", ".join(f"{verdict}: {count}" for verdict, count in verdicts.items())
