"""Every field of every record: whatever is changed in one is found, or is what docs/trust.md leaves to people."""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fields import Field, apply, drawn, fields
from finished_run import CONFIG, FinishedRun
from forgeries import PAGE_MANIFEST
from trials import SEED, Count

from encore.commands.audit import audit, deep, recompute
from encore.commands.audit.findings import explained, problems_without_plan
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from tests.support.clones import REPOSITORY

LEFT = {  # to people, as the page lists it: a field's file and first key, and words of its entry
    ("artifact", "results"): "`results` of an artifact's manifest",
    ("product", "code"): "`code` of a product's manifest",
    ("page", "code"): "`code` of a product's manifest",
    ("record", ""): "`run.json`, `results/plan/` and `results/root.json`",
}


@pytest.fixture(scope="module")
def plan(run: FinishedRun) -> Plan:
    return load_plan(CONFIG)


def commit() -> str:
    """The digest of the commit, which draws other fields for each."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout or str(SEED)


def sizes() -> Iterator[object]:
    """How many fields of each kind, and in all: 5, about 90 and about 3,000."""
    yield pytest.param(1, 5, commit(), id="sample", marks=pytest.mark.quick)
    yield pytest.param(5, 1000, commit(), id="nightly")
    yield pytest.param(200, 10**6, str(SEED), id="all", marks=pytest.mark.everything)


@pytest.mark.parametrize(("of_each", "most", "seed"), sizes())
def test_any_field_that_is_changed_is_found(
    run: FinishedRun, plan: Plan, of_each: int, most: int, seed: str, count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert audit.audit(plan, str(CONFIG)).findings == [], "before anything is changed"
    chance = random.Random(seed)
    chosen = drawn(fields(run), chance, of_each)
    assert {field.kind for field in chosen} == {"artifact", "product", "page", "record"}
    chosen = chance.sample(chosen, min(most, len(chosen)))
    wrong = []
    for field in chosen:
        apply(run, field)
        try:
            if text := missed(plan, field, monkeypatch):
                wrong.append(f"{field}: {text}")
        finally:
            run.restore()
    count("fields", "each of each record", len(chosen), len(chosen) - len(wrong))
    assert not wrong, "\n".join(wrong)


def missed(plan: Plan, field: Field, monkeypatch: pytest.MonkeyPatch) -> str:
    """What an audit fails to say of a field, or says though the page does not promise it; else nothing."""
    report = audit.audit(plan, str(CONFIG))
    if field.kind == "page":
        recompute.remake_page(report)
        recompute.recompute_report(plan, report)
    if field.kind == "product":
        recompute.remake_products(report)
    folder = str(Path(field.place).parent)
    if field.kind == "artifact" and not report.findings:
        monkeypatch.setattr(deep, "manifests_behind", lambda products: {field.place: ""})
        deep.check_deeply(report, 1)
    found = bool(report.findings or report.left_out)
    if field.is_left_to_people:
        is_noted = (
            "code" not in field.keys or field.kind == "record" or any(field.place in each for each in report.notes)
        )
        return "found, and the page says that it is not" if found else "" if is_noted else "no note says it"
    if field.kind == "artifact" and field.keys[0] not in ("results", "inputs"):
        found &= any(explained(field.place, problems_without_plan(folder)))  # and so in a copy
    notes = field.kind == "page" and field.keys[0] == "spec" and any("index.html" in each for each in report.notes)
    return "" if found or notes else "nothing is said"


def test_what_is_left_to_people_is_what_the_page_lists(run: FinishedRun) -> None:
    text = (REPOSITORY / "docs/trust.md").read_text().partition("## Out of reach")[2].partition("\n## ")[0]
    left = {
        (field.kind, field.keys[0] if field.kind != "record" else "")
        for field in fields(run)
        if field.is_left_to_people
    }
    assert left == LEFT.keys()
    assert [words for words in LEFT.values() if words not in " ".join(text.split())] == []
    assert PAGE_MANIFEST not in {field.place for field in fields(run) if field.kind == "product"}
