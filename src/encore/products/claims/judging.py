"""A claim on runs: the evidence on each of its tests, and the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from encore.evaluation.families import UNTESTED
from encore.evaluation.significance import SIGNIFICANT
from encore.products.claims import entries
from encore.products.claims.contrasts import Address, Contrast, Tables, copied_from, source_of
from encore.products.claims.estimates import Cells, Printed, Shares, estimate, unpaired
from encore.products.claims.verdict import (
    PREMISE,
    Estimate,
    Evidence,
    claim_verdict,
    of_inequalities,
    of_no_winner,
    of_orders,
)
from encore.products.slices import LEFT_OUT
from encore.products.tables.comparisons import ENOUGH_SEEDS, TOO_FEW

COMPARABLE = ("measure", "mean_of")  # sources whose values are of queries, and the same on every machine


@dataclass(frozen=True)
class RunValues:
    """The values that claims on runs are judged by.

    ``cells`` gives the values of a cell of ours, ``printed`` the paper's number, ``missing`` known reasons why cells
    have no value here, ``shares`` how far two systems differ on the queries of a copied cell (``estimates.py``).
    ``proxy_data``: the data are not the papers' own.
    """

    tables: Tables
    cells: Cells
    printed: Printed
    proxy_data: bool
    missing: Mapping[Address, str] = field(default_factory=dict)
    shares: Shares = unpaired


def weakness(compared: tuple[Contrast, Estimate]) -> tuple[float, float]:
    """What comparisons are ordered by: the one-sided p value, then the estimate, as where the error is infinite."""
    return compared[1].p_above, -compared[1].mean


@dataclass(frozen=True)
class EvaluatedTest:
    """A test on runs: its inequalities with their estimates, how many must hold, and the evidence.

    ``skipped`` are the reasons for those that were left out.
    """

    contrasts: tuple[Contrast, ...]
    estimates: tuple[Estimate, ...]
    needed: int
    evidence: Evidence
    skipped: tuple[str, ...] = ()
    kind: str = "above"
    tau: float = 0.0

    @property
    def held(self) -> int:
        """How many inequalities have an estimate on the claim's side."""
        return sum(one.holds for one in self.estimates)

    @property
    def weakest(self) -> tuple[Contrast, Estimate]:
        """The inequality that ``weakness`` puts last."""
        return max(zip(self.contrasts, self.estimates, strict=True), key=weakness)


@dataclass(frozen=True)
class Untestable:
    """A test that cannot be judged, and why; ``skippable``: the claim can be judged by its other tests."""

    why: str
    skippable: bool


@dataclass(frozen=True)
class Judgement:
    """A claim's verdict on runs; ``why`` is the reason where it could not be judged, or not on all comparisons."""

    verdict: str
    tested: tuple[EvaluatedTest, ...] = ()
    why: str = ""
    premise: tuple[EvaluatedTest, ...] = ()

    @property
    def detectable(self) -> float | None:
        """The largest minimum detectable effect of its inequalities, in the measure's unit.

        Two-sided level of 5 %, 80 % power; see ``evaluation.significance.Difference.detectable``.
        """
        known = [one.difference for tested in self.tested for one in tested.estimates]
        return max((one.detectable(SIGNIFICANT) for one in known), default=None)


def judge_on_runs(claim: entries.Claim, runs: RunValues) -> Judgement:
    """Judge a claim by what was run; ``verdict.py`` has the statistics and their sources."""
    if any(isinstance(test, entries.PictureTest) for test in claim.tests):
        return Judgement(UNTESTED, why="only a picture shows it")
    if stated := next((test for test in claim.tests if isinstance(test, entries.StatedTest)), None):
        return Judgement(UNTESTED, why=f"the paper prints no number of it, and nothing here measures {stated.needs}")
    amounts = () if claim.of_these_data else entries.number_tests(claim.tests)
    if runs.proxy_data and any(test.is_amount for test in amounts):
        return Judgement(UNTESTED, why="it is about an amount, which proxy data cannot test")
    premise = _tested(claim.premise, runs)
    tested = _tested(claim.tests, runs)
    if isinstance(tested, str) or isinstance(premise, str):
        return Judgement(UNTESTED, why=next(each for each in (tested, premise) if isinstance(each, str)))
    if _seeds([*premise, *tested]) < ENOUGH_SEEDS:
        return Judgement(TOO_FEW, tuple(tested), premise=tuple(premise))
    if any(one.evidence is not Evidence.SHOWN for one in premise):
        return Judgement(PREMISE, tuple(tested), _unmet(premise), tuple(premise))
    verdict = claim_verdict([one.evidence for one in tested], proxy_data=runs.proxy_data)
    return Judgement(verdict, tuple(tested), _skipped(claim, tested, runs), tuple(premise))


def _unmet(premise: Sequence[EvaluatedTest]) -> str:
    """Why a premise is not met: how much of it holds, and its weakest comparison."""
    one = next(each for each in premise if each.evidence is not Evidence.SHOWN)
    contrast, found = one.weakest
    held = f"{one.held} of {len(one.estimates)} comparisons of the premise hold, {one.needed} needed"
    return f"{held}; the weakest is {contrast}: {found.mean:.3g} (p {found.difference.p:.2g})"


def _skipped(claim: entries.Claim, tested: Sequence[EvaluatedTest], runs: RunValues) -> str:
    """How many comparisons of a claim were left out, and the first reason; nothing for none."""
    count = sum(len(test.contrasts(runs.tables)) for test in entries.number_tests(claim.tests))
    judged = sum(len(one.estimates) for one in tested)
    if judged == count:
        return ""
    reasons = [why for one in tested for why in one.skipped]
    return f"{count - judged} of {count} comparisons left out" + (f": {reasons[0]}" if reasons else "")


def judge_control_on_runs(claim: entries.Claim, runs: RunValues) -> Judgement | None:
    """Whether a gain survives the control; None where the claim names no test against it."""
    if not claim.control:
        return None
    return judge_on_runs(claim.model_copy(update={"tests": claim.control, "premise": []}), runs)


def _tested(tests: Sequence[entries.AnyTest], runs: RunValues) -> list[EvaluatedTest] | str:
    """The evidence on each test, or why they cannot be judged.

    On proxy data, comparisons without a value here are left out, and tests of which none is left, as long as others
    remain. A test of which too few are left for what it says makes the claim untestable.
    """
    found, untestable = [], ""
    for test in entries.number_tests(tests):
        one = _one(test, runs, len(tests))
        if isinstance(one, EvaluatedTest):
            found.append(one)
        elif not one.skippable:
            return one.why
        else:
            untestable = untestable or one.why
    if untestable and found:
        found[0] = replace(found[0], skipped=(*found[0].skipped, untestable))
    return untestable if untestable and not found else found


def _one(test: entries.NumberTest, runs: RunValues, tests: int) -> EvaluatedTest | Untestable:
    inequalities, known, skipped = [], [], []
    for each in test.contrasts(runs.tables):
        fixed = each.against(lambda address: bool(copied_from(address, runs.tables)))
        why = _unfit(each, fixed, runs)
        one = None if why else estimate(fixed, runs.cells, runs.printed, runs.shares)
        if one is not None:
            inequalities.append(each)
            known.append(one)
            continue
        if not _may_skip(test, each, runs):
            return Untestable(why or _without_value(each, fixed, runs), skippable=False)
        skipped.append(why or _without_value(each, fixed, runs))
    count = test.needed(len(known))
    if not known:
        return Untestable(skipped[0], skippable=True)
    if count > len(known):
        total = len(known) + len(skipped)
        why = f"{len(known)} of {total} comparisons have values here, and {count} must hold: {skipped[0]}"
        return Untestable(why, skippable=False)
    evidence = _evidence(test, known, count, runs, tests)
    return EvaluatedTest(
        tuple(inequalities), tuple(known), count, evidence, tuple(skipped), test.kind, getattr(test, "tau", 0.0)
    )


def _may_skip(test: entries.NumberTest, contrast: Contrast, runs: RunValues) -> bool:
    """Whether a comparison can be left out: on proxy data, where a cell has no data here or was copied."""
    return (runs.proxy_data and test.by_comparison) and any(
        copied_from(address, runs.tables) or runs.missing.get(address) not in (None, *LEFT_OUT)
        for address, _ in contrast.terms
    )


def _unfit(contrast: Contrast, fixed: Contrast, runs: RunValues) -> str:
    """Why an inequality cannot be judged on these runs though it has values; nothing where it can.

    A copied number was measured on the paper's data and machines, and is comparable only there. Of queries that are
    nearly all one cluster nothing is known about the spread.
    """
    for address, _ in fixed.terms:
        measured = (part.values.queries for part in runs.cells(address) or ())
        if any(queries is not None and not queries.can_be_tested for queries in measured):
            return f"{address}: nearly all of its queries are one cluster, so nothing can be tested"
    copied = [address for address, _ in contrast.terms if copied_from(address, runs.tables)]
    if not copied:
        return ""
    who = f"{copied[0]} is copied from {copied_from(copied[0], runs.tables)}"
    if runs.proxy_data:
        return f"{who}, on other data than this run's"
    if not fixed.terms:
        return f"{who}, and so is what it is compared with: neither is run here"
    if source_of(copied[0], runs.tables) not in COMPARABLE:
        return f"{who}: a cost measured on another machine"
    return ""


def _without_value(contrast: Contrast, fixed: Contrast, runs: RunValues) -> str:
    for address, _ in fixed.terms:
        if why := runs.missing.get(address):
            return f"{address} has no value here: {why}"
    if any(runs.printed(address) is None for address, _ in fixed.printed):
        return f"{contrast}: the paper prints no number to compare with"
    return f"{contrast} has no value here"


def _evidence(
    test: entries.NumberTest, estimates: Sequence[Estimate], count: int, runs: RunValues, tests: int
) -> Evidence:
    if isinstance(test, entries.NoWinnerTest):
        return of_no_winner(estimates, tests)
    if isinstance(test, entries.AlikeTest):
        size = len(estimates) // (2 * len(test.columns_in(runs.tables)))  # pairs of a setting under a column
        halves = [estimates[start : start + size] for start in range(0, len(estimates), size)]
        return of_orders(list(zip(halves[::2], halves[1::2], strict=True)), tests, test.tau)
    return of_inequalities(estimates, count, tests)


def _seeds(tested: Sequence[EvaluatedTest]) -> int:
    """The fewest seeds that any inequality rests on; enough where nothing has chance in it."""
    counts = [one.seeds for each in tested for one in each.estimates if one.seeds is not None]
    return min(counts, default=ENOUGH_SEEDS)
