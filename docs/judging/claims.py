"""Recorded claims, judged again, by the rules of docs/claims.md."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judging.records import OPEN, TOO_FEW, UNTESTED, Judged, Record
from judging.statistics import ENOUGH_SEEDS, LEVEL, Part, Tested, clustered

DUST = 1e-9
PREMISE = "premise not met"


@dataclass
class Compared:
    """A comparison of a claim: the difference less its bound, which is above 0 where it holds."""

    name: str
    tested: Tested
    seeds: int | None
    or_equal: bool
    equivalence: bool

    @property
    def holds(self) -> bool:
        """Whether it holds of the estimate."""
        return self.tested.mean > 0 or (self.or_equal and abs(self.tested.mean) < DUST)

    @property
    def above(self) -> float:
        """One-sided p of its not holding, for 2.5 %; that of an equivalence, for 5 %, is halved."""
        if self.tested.error == 0:
            return 0.0 if self.holds else 1.0
        half = self.tested.p / 2
        return (half if self.tested.mean > 0 else 1 - half) / (2 if self.equivalence else 1)

    @property
    def below(self) -> float:
        """One-sided p of its holding."""
        if self.tested.error == 0:
            return 0.0 if self.tested.mean < 0 and not self.holds else 1.0
        half = self.tested.p / 2
        return half if self.tested.mean < 0 else 1 - half


class ClaimAgain:
    """A claim that is judged again: its comparisons as they are recorded, on the recorded values.

    ``compared`` has the tests of ``premise``, ``tests`` and ``control``, each with its comparisons.
    """

    def __init__(self, record: Record, said: dict[str, Any]) -> None:
        self.record = record
        self.compared: dict[str, list[tuple[dict[str, Any], list[Compared]]]] = {
            part: [(test, [self._one(each) for each in test["contrasts"]]) for test in tests]
            for part, tests in said.items()
        }

    def verdict(self, part: str, proxy: bool) -> str:
        """The verdict on ``tests`` or on ``control``."""
        premise = self.compared["premise"] if part == "tests" else []
        tested = self.compared[part]
        seeds = [one.seeds for _, own in (*premise, *tested) for one in own if one.seeds is not None]
        if min(seeds, default=ENOUGH_SEEDS) < ENOUGH_SEEDS:
            return TOO_FEW
        if any(evidence(test, own) != "shown" for test, own in premise):
            return PREMISE
        found = [evidence(test, own) for test, own in tested]
        if "refuted" in found:
            return "fails here" if proxy else "contradicted"
        if all(one == "shown" for one in found):
            return "holds here" if proxy else "reproduced"
        return next((word for word in ("opposite direction", OPEN) if word in found), "same direction")

    def _one(self, said: dict[str, Any]) -> Compared:
        """A comparison: over queries where all of its cells have values of queries, otherwise over seeds."""
        parts = [(term["weight"] * weight, tuple(key)) for term in said["terms"] for weight, key in term["parts"]]
        of_seeds = [self.record.by_seed[key] for _, key in parts]
        seeded = [[*each] for each in of_seeds if [*each] != [""]]
        seeds = [seed for seed in (seeded[0] if seeded else []) if all(seed in each for each in seeded)]
        totals = sum(
            weight * np.array([each.get("", each.get(seed, math.nan)) for seed in seeds or [""]])
            for (weight, _), each in zip(parts, of_seeds, strict=True)
        )
        spread = float(np.var(totals, ddof=1)) if len(totals) > 1 else math.inf
        has_queries = all(key in self.record.queries for _, key in parts)
        mean, bound = float(np.mean(totals)), sum(each["weight"] * each["value"] for each in said["printed"])
        if said["printed"]:
            found = self._against_print(said, parts, len(seeds), spread)
        elif has_queries:
            found = clustered(self._by_queries(parts, seeds))
            mean = found.mean
        else:
            found = Tested(mean, (Part(spread / len(totals), max(len(totals) - 1, 1)),))
        shifted = Tested(mean + bound - said["least"], found.parts, found.least_p)
        return Compared(said["name"], shifted, len(seeds) or None, said["or_equal"], said["equivalence"])

    def _by_queries(
        self, parts: Sequence[tuple[float, Any]], seeds: Sequence[str]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weighted sums over the cells of the same queries, and the clusters of these queries."""
        sums: dict[tuple[str, ...], pd.DataFrame] = {}
        for weight, key in parts:
            own = self.record.queries[key]
            values = weight * pd.concat([own[""] if "" in own else own[seed] for seed in seeds or [""]], axis=1)
            values.columns = pd.RangeIndex(values.shape[1])
            same = tuple(values.index.get_level_values("query"))
            sums[same] = sums[same] + values if same in sums else values
        return [(each.to_numpy(), each.index.get_level_values("cluster").to_numpy()) for each in sums.values()]

    def _against_print(
        self, said: dict[str, Any], parts: Sequence[tuple[float, Any]], seeds: int, spread: float
    ) -> Tested:
        """The variances of a difference to printed numbers, each of one training."""
        ratio = sum(each["weight"] ** 2 for each in said["printed"]) / sum(
            each["weight"] ** 2 for each in said["terms"]
        )
        found = [Part((1 / seeds + ratio) * spread, max(seeds - 1, 1))] if seeds else []
        share = max(each["share"] for each in said["printed"])
        if share and all(key in self.record.queries for _, key in parts):
            own = []
            for weight, key in parts:
                values = pd.concat(list(self.record.queries[key].values()), axis=1).mean(axis=1)
                clusters = values.index.get_level_values("cluster").to_numpy()
                part = clustered([(values.to_numpy()[:, None], clusters)]).parts[0]
                own.append(Part(weight**2 * part.variance, part.freedom))
            variance = share * (1 + ratio) * sum(part.variance for part in own)
            found.append(Part(variance, min(part.freedom for part in own)))
        return Tested(0.0, tuple(found) or (Part(0.0, 1),))


def evidence(test: dict[str, Any], own: Sequence[Compared]) -> str:
    """What the comparisons say of a test, by the rules of ``docs/claims.md``."""
    level, tests = LEVEL / 2, test["of"]
    above, beneath = ([getattr(one, side) for one in own] for side in ("above", "below"))
    if test["kind"] == "no-winner":
        if min(max(above), max(beneath)) <= level / (2 * tests):
            return "refuted"
        if len(own) * max(min(above), min(beneath)) <= level:
            return "shown"
        return "same direction" if len({one.tested.mean > 0 for one in own}) == 2 else OPEN
    if test["kind"] == "alike":
        return _alike(test, own)
    needed = test["needed"]
    if (len(own) - needed + 1) * sorted(above)[needed - 1] <= level:
        return "shown"
    if needed * sorted(beneath)[len(own) - needed] <= level / tests:
        return "refuted"
    if sum(one.holds for one in own) >= needed:
        return "same direction"
    certain = all(one.seeds is None and math.isinf(one.tested.error) for one in own)
    return "opposite direction" if certain else OPEN


def _alike(test: dict[str, Any], own: Sequence[Compared]) -> str:
    """Whether two settings order systems alike under every column, by Kendall's tau."""
    size = len(own) // (2 * test["columns"])
    halves = [own[start : start + size] for start in range(0, len(own), size)]
    found = []
    for first, second in zip(halves[::2], halves[1::2], strict=True):
        pairs = list(zip(first, second, strict=True))
        most = int(len(pairs) * (1 + test["tau"]) / 2) + 1
        rest = len(pairs) - most + 1
        agree = sorted(min(max(x.above, y.above), max(x.below, y.below)) for x, y in pairs)[most - 1]
        oppose = sorted(min(max(x.above, y.below), max(x.below, y.above)) for x, y in pairs)[rest - 1]
        signs = sum(np.sign(x.tested.mean) * np.sign(y.tested.mean) for x, y in pairs)
        found.append((rest * agree, most * oppose, signs > test["tau"] * len(pairs)))
    if all(agree <= LEVEL / 2 for agree, _, _ in found):
        return "shown"
    if any(oppose <= LEVEL / 2 / (test["of"] * len(found)) for _, oppose, _ in found):
        return "refuted"
    return "same direction" if all(alike for _, _, alike in found) else OPEN


def judge_claim(record: Record, said: dict[str, Any], line: dict[str, str], judged: Judged) -> None:
    """Compare a line of ``claims.csv``."""
    name, proxy = line["id"], line["proxy_data"] == "yes"
    if not said.get("tests"):
        judged.word(f"{name}: verdict", line["verdict"], UNTESTED)
        return
    again = ClaimAgain(record, said)
    tested, control = again.compared["tests"], again.compared["control"]
    every = [one for _, compared in tested for one in compared]
    judged.word(f"{name}: verdict", line["verdict"], again.verdict("tests", proxy))
    judged.number(f"{name}: held", line["held"], float(sum(one.holds for one in every)))
    judged.number(f"{name}: needed", line["needed"], float(sum(test["needed"] for test, _ in tested)))
    judged.number(f"{name}: inequalities", line["inequalities"], float(len(every)))
    seeds = [float(one.seeds) for one in every if one.seeds is not None]
    judged.number(f"{name}: seeds", line["seeds"], min(seeds, default=None))
    weakest = weakest_of(every, line["weakest"])
    judged.word(f"{name}: weakest", line["weakest"], weakest.name)
    judged.number(f"{name}: estimate", line["estimate"], weakest.tested.mean, 1e-6)
    judged.p(f"{name}: p", line["p"], weakest.tested)
    for end in ("interval_low", "interval_high"):
        judged.end(f"{name}: {end}", line[end], weakest.tested)
    over = weakest_of([one for _, compared in control for one in compared]) if control else None
    judged.number(f"{name}: control_estimate", line["control_estimate"], over.tested.mean if over else None, 1e-6)
    judged.p(f"{name}: control_p", line["control_p"], over.tested if over else None)
    untested = "" if line["survives_control"] == "" else UNTESTED
    judged.word(
        f"{name}: survives_control",
        line["survives_control"],
        again.verdict("control", proxy) if control else untested,
    )


def weakest_of(every: Sequence[Compared], named: str = "") -> Compared:
    """The comparison with the largest one-sided p, then the smallest estimate; of equal ones that of a name."""
    last = max(every, key=lambda one: (one.above, -one.tested.mean))
    equal = [one for one in every if math.isclose(one.above, last.above, rel_tol=1e-9) and one.name == named]
    return next((one for one in equal if math.isclose(one.tested.mean, last.tested.mean, rel_tol=1e-9)), last)
