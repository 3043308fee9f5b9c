"""``encore show LINEAGE``: its measures, those of the unchanged model and of the control, and tested differences."""

from pathlib import Path

import numpy as np
import pytest

from encore.commands.lineage_table import control_of, lineage_text, unchanged
from encore.evaluation import scores, significance
from encore.evaluation.scores import Floats, Scored
from encore.plan.plan import Plan
from encore.products.tables import cell_scores
from encore.products.targets import lineage_targets, reported_splits
from encore.storage.files import write_json
from encore.storage.manifest import MANIFEST, describe
from tests.support import inside
from tests.support.small_forecast import planned

CHANGED, PLAIN = "tiny+ict~temperature=0.1+marco-bm25", "tiny+ict+marco-bm25"
CONTROL = "tiny+control"
CLUSTERS = [f"m{number // 4}" for number in range(40)]


def made(plan: Plan, system: str, gain: float) -> Floats:
    """Write scores of a system, the same values under each measure; returns them [queries, seeds]."""
    columns = []
    for seed in plan.config.seeds:
        values = np.clip(0.3 + gain + 0.1 * np.random.default_rng(seed).normal(size=40) * (1 + gain), 0, 1)
        one = Scored([f"q{n}" for n in range(40)], CLUSTERS, values, values, values, values >= 0, np.zeros(40, np.int8))
        found = {
            (split, measure): one
            for dataset, split, _ in reported_splits(plan, system)
            for measure in plan.resolve.dataset(dataset).fields.splits[split].measures
        }
        for dataset, split, _ in reported_splits(plan, system):
            folder = Path(plan.scores(system, seed, dataset, split).folder)
            folder.mkdir(parents=True, exist_ok=True)
            scores.write_scores(folder, found)
            outputs = {scores.FILE: describe(folder / scores.FILE)}
            write_json(folder / MANIFEST, {"spec": {}, "results": {}, "inputs": {}, "outputs": outputs})
        columns.append(values)
    return np.stack(columns, axis=1)


@pytest.fixture
def plan(bare: Path) -> Plan:
    cell_scores._read_scores.cache_clear()  # of another test's folder, where paths are the same
    return planned(seeds=[0, 1])


def shown(ours: Floats, theirs: Floats) -> str:
    """A difference and its interval by the test of tables, as people read them."""
    found = significance.clustered(ours - theirs, CLUSTERS)
    first, low, high = (f"{value:+.3f}".replace("-", "−") for value in (found.mean, *found.interval()))
    return f"{first} [{low}, {high}]"


def test_a_changed_lineage_is_next_to_the_unchanged_one_and_the_control_with_tested_differences(plan: Plan) -> None:
    ours, plain, control = (made(plan, *each) for each in ((CHANGED, 0.1), (PLAIN, 0.05), (CONTROL, 0.02)))
    said = lineage_text(plan, CHANGED) or ""
    assert said.splitlines()[:3] == [f"this       {CHANGED}", f"unchanged  {PLAIN}", f"control    {CONTROL}"]
    line = next(line for line in said.splitlines() if line.startswith("  RR@10 "))
    numbers = [f"{values.mean():.3f} ±{values.mean(axis=0).std(ddof=1):.3f}" for values in (ours, plain, control)]
    expected = [numbers[0], numbers[1], shown(ours, plain), numbers[2], shown(ours, control)]
    assert [part.strip() for part in line.split("  ") if part.strip()] == ["RR@10", *expected]
    assert "- Seeds: 0, 1." in said
    assert "over queries and seeds" in said


def test_what_was_not_made_is_said_and_an_unchanged_lineage_is_next_to_the_control_alone(plan: Plan) -> None:
    made(plan, CHANGED, 0.1)
    assert (
        next(line for line in (lineage_text(plan, CHANGED) or "").splitlines() if "RR@10" in line).count("not made")
        == 2
    )
    made(plan, PLAIN, 0.0)
    said = [lineage_text(plan, each) or "" for each in (PLAIN, PLAIN.replace("tiny", "bert-base"))]
    assert said[0] == said[1]
    assert "unchanged" not in said[0]
    assert lineage_text(plan, "bm25") is None


def test_scores_that_were_altered_are_refused(plan: Plan) -> None:
    made(plan, CHANGED, 0.1)
    with (Path(lineage_targets(plan, CHANGED)[0]).parent / scores.FILE).open("ab") as file:
        file.write(b"more")
    with pytest.raises(Exception, match=r"scores\.parquet"):
        lineage_text(plan, CHANGED)


def test_the_unchanged_lineage_has_no_values_in_its_name_and_a_control_of_its_own_setting(plan: Plan) -> None:
    assert unchanged(plan, "bert-base+ict~batch=8+marco-bm25~epochs=2@hnsw~m=8") == f"{PLAIN}@hnsw"
    mined = "tiny+ict+marco-bm25+marco-hn"
    assert [control_of(plan, each) for each in (PLAIN, mined, "tiny+ict")] == [CONTROL, f"{CONTROL}+marco-hn", None]


def test_a_lineage_without_scores_is_told_how_to_be_made(bare: Path) -> None:
    said = inside.encore("show", CHANGED, "--config", "config/nano.yaml").stderr
    make = f"snakemake $(encore targets '{CHANGED}' --config config/nano.yaml) --profile local --configfile"
    assert said == f"error: {CHANGED} has no scores here; `{make} config/nano.yaml` makes them\n"
