"""The measures that a split may name, in ir-measures' own spelling: ``RR@10``, ``R(rel=3)@100``, ``nDCG@10``."""

import re
from dataclasses import dataclass

from encore.config.validation import nearest
from encore.errors import EncoreError

NAMES = ("RR", "R", "nDCG", "AP", "P", "Success")
NEEDS_CUTOFF = frozenset({"R", "P", "Success"})
ALIASES = {"mrr": "RR", "recall": "R", "map": "AP", "precision": "P", **{name.lower(): name for name in NAMES}}

_EXPRESSION = re.compile(r"(?P<name>[A-Za-z]+)(?:\(rel=(?P<rel>[1-9]\d*)\))?(?:@(?P<cutoff>[1-9]\d*))?")


@dataclass(frozen=True)
class Measure:
    """A measure, the lowest grade that counts as relevant, and the number of ranks looked at (None: all)."""

    name: str
    rel: int = 1
    cutoff: int | None = None

    def __str__(self) -> str:
        threshold = f"(rel={self.rel})" if self.rel != 1 else ""
        return f"{self.name}{threshold}" + (f"@{self.cutoff}" if self.cutoff else "")


def parse_measure(expression: str) -> Measure:
    """The measure that an expression names, in ir-measures' spelling: ``R(rel=3)@100``."""
    match = _EXPRESSION.fullmatch(expression)
    if not match:
        raise EncoreError(f"measure {expression!r} is unknown; write one of {', '.join(NAMES)}, as in R(rel=2)@100")
    if match["name"].lower() not in ALIASES:
        raise EncoreError(f"measure {expression!r} is unknown{nearest(match['name'], NAMES)}")
    measure = Measure(
        ALIASES[match["name"].lower()], int(match["rel"] or 1), int(match["cutoff"]) if match["cutoff"] else None
    )
    if measure.name in NEEDS_CUTOFF and measure.cutoff is None:
        raise EncoreError(f"measure {expression!r} needs a number of ranks, as in {measure}@10")
    if measure.name == "nDCG" and measure.rel != 1:
        raise EncoreError(f"measure {expression!r}: nDCG takes the grades as gains and has no threshold; leave rel out")
    if str(measure) != expression.replace("(rel=1)", ""):  # which may be written out
        raise EncoreError(f"measure {expression!r} is spelt {str(measure)!r} here")
    return measure
