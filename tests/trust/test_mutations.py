"""Whatever is changed behind Snakemake's back is found, and exactly the rows that it stands behind are named."""

import random

import pytest
from changes import Expected
from finished_run import CONFIG, FinishedRun
from forgeries import PAGE_MANIFEST, a_forged_number, a_forged_page, forge_throughout, left_to_another_run
from mutations import MUTATIONS
from trials import SEED, Count

from encore.commands.audit import audit
from encore.commands.audit.findings import AuditReport
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.storage.root import compare_root, compute_root
from tests.support import inside

OF_EACH_CLASS = 13  # in all; `make test-all` draws some classes, once each
SAMPLE = random.Random(SEED).sample(sorted(MUTATIONS), 12)
SIZES = [pytest.param(SAMPLE, 1, id="sample")]
SIZES += [pytest.param([kind], OF_EACH_CLASS, id=kind, marks=pytest.mark.everything) for kind in MUTATIONS]


@pytest.fixture(scope="module")
def plan(run: FinishedRun) -> Plan:
    return load_plan(CONFIG)


def test_nothing_is_said_of_a_run_that_nobody_changed(run: FinishedRun, plan: Plan) -> None:
    report = run.audit(plan)
    assert (report.findings, report.notes) == ([], [])
    assert report.verified == len(run.manifests) + len(run.products) + 1  # and the page


@pytest.mark.parametrize(("kinds", "times"), SIZES)
def test_every_change_is_found_with_its_rows(
    run: FinishedRun, plan: Plan, kinds: list[str], times: int, count: Count
) -> None:
    missed = []
    for kind in kinds:
        failures = [text for trial in range(times) if (text := tried(run, plan, kind, trial))]
        count("mutations", kind, times, times - len(failures))
        missed += failures
    assert not missed, "\n".join(missed)


def tried(run: FinishedRun, plan: Plan, kind: str, trial: int) -> str:
    """What an audit fails to say of a change; empty where it says all.

    Once it is found, products are made again in one of ten trials only, which must not stop the audit.
    """
    chance = random.Random(f"{SEED} {kind} {trial}")
    try:
        expected = MUTATIONS[kind](run, chance)
        report = run.audit(plan, until=() if chance.random() < 0.1 else expected.places)
        wrong = unsaid(report, expected)
        return f"{kind}, trial {trial}: {wrong}" if wrong else ""
    finally:
        run.restore()


def places(report: AuditReport) -> set[str]:
    return {finding.place for finding in report.findings}


def unsaid(report: AuditReport, expected: Expected) -> str:
    named = {cell for finding in report.findings for cell in finding.cells if ": every " not in cell}
    if not expected.places & places(report):
        return f"nothing is said of {sorted(expected.places)}, but of {sorted(places(report))}"
    return "" if named == expected.rows else f"named {sorted(named)}, not {sorted(expected.rows)}"


@pytest.mark.parametrize("times", [1, pytest.param(OF_EACH_CLASS, marks=pytest.mark.everything)])
def test_what_says_of_itself_that_it_is_another_runs_is_counted_and_no_success(
    run: FinishedRun, plan: Plan, times: int, count: Count
) -> None:
    """Its own manifest was edited; with a table's also the index, or the table is bad."""
    held = 0
    for trial in range(times):
        chance = random.Random(f"{SEED} another run's {trial}")
        expected = a_forged_page(run, chance)
        run.edit(PAGE_MANIFEST, lambda record: record["spec"].update(run="config/small.yaml"))
        if more := chance.random() < 0.5:
            (table,) = a_forged_number(run, chance).places
            run.edit(table, lambda record: record["spec"].update(name="another"))
            left_to_another_run(run, [table], chance)
            expected.places.add(table)
        report = run.audit(plan)
        counted = report.not_audited.startswith(f"NOT audited: {1 + more} file")
        held += counted and report.is_partial and expected.places == set(report.left_out)
        run.restore()
    count("mutations", "forged: and said to be another run's, by its own manifest", times, held)
    assert held == times


def test_the_last_line_says_what_was_not_audited(run: FinishedRun) -> None:
    run.edit(PAGE_MANIFEST, lambda record: record["spec"].update(run="config/small.yaml"))
    done = inside.encore("audit", "--config", str(CONFIG), cwd=run.root)
    run.restore()
    last = done.stdout.splitlines()[-1]
    assert done.returncode == 1
    why = "of another run: `encore audit --config config/small.yaml` looks at it"
    assert last == f"NOT audited: 1 file: {PAGE_MANIFEST} ({why})"


@pytest.mark.parametrize("times", [1, pytest.param(OF_EACH_CLASS, marks=pytest.mark.everything)])
def test_what_is_forged_with_every_digest_above_it_has_another_root(
    run: FinishedRun, plan: Plan, times: int, count: Count
) -> None:
    """Nothing in the folder contradicts it, and so an audit may find nothing; what was written down elsewhere does."""
    before = compute_root()
    assert before
    held = 0
    for trial in range(times):
        forge_throughout(run, random.Random(f"{SEED} throughout {trial}"))
        if trial == 0:
            assert audit.audit(plan, str(CONFIG)).findings == [], "the forgery is whole"
        held += compare_root(before["root"][:16])[0] is not None
        run.restore()
        assert compare_root(before["root"])[0] is None
    count("mutations", "forged: with every digest above it, against the root", times, held)
    assert held == times
