"""Published counts next to ours: what an entry may say, what is compared with it, and what is estimated from it."""

import json
import shutil
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest

from encore.commands import chain
from encore.commands.preflight import forecast_text
from encore.commands.preflight.forecast import ComparedCount, Forecast
from encore.config.validation import read_yaml
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.products.slices import Read
from encore.storage.manifest import record
from tests.support.small_forecast import estimate, needs_of, planned

ROOT = Path(__file__).parents[3]
PAPER, NANO = Path("config/paper.yaml"), Path("config/nano.yaml")
TRIPLES, JUDGED = 400_000, 502_939
ENTRY = "{steps: marco-bm25, count: steps, published: 9, place: here}"


@pytest.fixture(scope="module")
def paper() -> Forecast:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return estimate(planned(PAPER), "h100-80gb")


def row(found: Forecast, count: str, step: str) -> ComparedCount:
    (only,) = (each for each in found.counts if each.count == count and step in each.steps)
    return only


def judged_here() -> int:
    """The queries that train: those that are judged, without those that validate."""
    passages = read_yaml(ROOT / "config/datasets.yaml")["msmarco-passage"]
    assert passages["expected"]["queries.train"] == JUDGED
    return JUDGED - passages["valid_queries"]


def test_queries_and_steps_are_those_of_the_triples(paper: Forecast) -> None:
    step = read_yaml(ROOT / "config/steps.yaml")["marco-bm25"]
    queries = round(TRIPLES / JUDGED * judged_here())
    found = row(paper, "queries", "marco-bm25")
    assert (round(found.ours), found.published) == (queries, TRIPLES)
    assert row(paper, "steps", "marco-bm25").ours == step["epochs"] * ceil(queries / step["batch"])
    assert row(paper, "queries", "marco-hn").ours == judged_here(), "mined negatives leave nobody out"


def test_steps_and_lengths_are_within_a_factor_of_two_of_the_published_ones(paper: Forecast) -> None:
    steps, pieces = row(paper, "steps", "bow"), row(paper, "pieces_per_text", "bow")
    assert (steps.published, pieces.published) == (140_000, 449)
    assert 0.5 < steps.ours / steps.published < 2
    assert 0.5 < pieces.ours / pieces.published < 2


def test_text_and_json_have_both(paper: Forecast) -> None:
    found = row(paper, "queries", "marco-bm25")
    text = forecast_text.forecast_text(paper)
    (line,) = (line for line in text.splitlines() if line.startswith("queries of") and "400,000" in line)
    assert f"{found.ours:,.0f}    400,000  {found.place[:20]}" in line
    assert max(map(len, text.splitlines())) <= forecast_text.WIDTH
    content = json.loads(json.dumps(forecast_text.forecast_json(paper, [])))
    assert {"queries", "steps", "pieces_per_text"} == {each["count"] for each in content["counts"]}
    assert [each["published"] for each in content["counts"] if "marco-hn" in each["steps"]] == [JUDGED]


def test_where_other_data_stand_for_the_papers_nothing_is_compared(at_the_root: None) -> None:
    found = estimate(planned(NANO))
    assert found.counts == []
    assert not any(line.startswith("counts ") for line in forecast_text.forecast_text(found).splitlines())


@pytest.mark.parametrize(
    ("step", "share"),
    [
        ("marco-bm25", TRIPLES / JUDGED),
        ("bow-ft-bm25", TRIPLES / JUDGED),
        ("marco-bm25~least_negatives=0", 1.0),
        ("marco-hn", 1.0),
    ],
)
def test_only_steps_that_leave_queries_out_have_fewer(at_the_root: None, step: str, share: float) -> None:
    plan = planned(PAPER)
    without = Plan(plan.config, replace(plan.catalogue, published_counts=[]))
    lineage = f"bert-base+marco-bm25+{step}"
    flops = [needs_of(each, each.model(each.resolve.lineage(lineage), 0))[0].operations for each in (plan, without)]
    assert flops[0] / flops[1] == pytest.approx(share, rel=1e-3)


def test_a_sample_is_drawn_from_those_that_are_left(at_the_root: None) -> None:
    plan = planned(PAPER)
    samples = ("~queries=1000", "~queries=100000", "~queries=450000", "")
    models = [plan.model(plan.resolve.lineage(f"bert-base+marco-bm25{sample}"), 0) for sample in samples]
    few, many, most, all_of_them = (needs.operations for needs in needs_of(plan, *models))
    assert many == pytest.approx(100 * few)
    assert most == all_of_them


def test_a_teacher_scores_the_queries_that_its_student_learns_from(at_the_root: None) -> None:
    plan = planned(PAPER)
    student = plan.model(plan.resolve.lineage("bert-base-tct+colbert+tct"), 0)
    without = Plan(plan.config, replace(plan.catalogue, published_counts=[]))
    some, every = (needs_of(each, student.inputs["teacher0"])[0].operations for each in (plan, without))
    assert some / every == pytest.approx(TRIPLES / JUDGED, rel=0.01)


def test_published_counts_are_part_of_no_digest(at_the_root: None) -> None:
    plan = planned(PAPER)
    without = Plan(plan.config, replace(plan.catalogue, published_counts=[]))
    names = {each.model(each.resolve.lineage("bert-base+bow+marco-bm25"), 0).name for each in (plan, without)}
    assert len(names) == 1


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (ENTRY.replace("marco-bm25", "marco-bm52"), "unknown step 'marco-bm52'; did you mean marco-bm25"),
        (ENTRY.replace("marco-bm25", '"{marco-bm25,marco-hm}"'), "unknown step 'marco-hm'; did you mean marco-hn"),
        (ENTRY.replace("steps,", "stepps,"), "unknown count of 'marco-bm25' 'stepps'; did you mean steps"),
        (ENTRY.replace("steps,", "pieces_per_text,"), "unknown count of 'marco-bm25' 'pieces_per_text'; known are"),
        (ENTRY.replace("place", "plaec"), "plaec: unknown key; did you mean place"),
        (ENTRY.replace("published: 9", "published: 0"), "published: input should be greater than 0"),
        (ENTRY.replace("steps: marco-bm25, ", ""), "is about `steps` or about `triples`; name one of them"),
        (ENTRY.replace("}", ", judged: 10}"), "`judged` goes with `triples`"),
        ("{triples: msmarco-triples-ful, count: queries, published: 9, judged: 10, place: x}", "did you mean msmarco"),
        (
            "{triples: msmarco-triples-full, count: queries, published: 11, judged: 10, place: x}",
            "of 10 judged queries 11 cannot be in the triples",
        ),
        ("7", "entry 1"),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path: Path, entry: str, says: str) -> None:
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "config/published_counts.yaml").write_text(f"- {entry}\n")
    with pytest.raises(EncoreError) as error:
        load_catalogue(tmp_path / "config")
    message = str(error.value)
    assert "published_counts.yaml: entry 1" in message
    assert says in message
    assert "\n" not in message


def test_no_list_is_refused(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "config/published_counts.yaml").write_text(f"one: {ENTRY}\n")
    with pytest.raises(EncoreError, match=r"published_counts\.yaml must hold a list of counts"):
        load_catalogue(tmp_path / "config")


@pytest.mark.parametrize(("run", "where"), [(NANO, "here, on other data"), (PAPER, "here")])
def test_a_chain_has_both_next_to_each_other(
    at_the_root: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Path, where: str
) -> None:
    plan = planned(run)
    model = plan.model(plan.resolve.lineage("bert-base+bow+marco-bm25"), 0)
    monkeypatch.chdir(tmp_path)
    reads = [Read(folder=model.folder, seed=0)]

    def told() -> list[str]:
        return chain.chain_text(chain.of_reads(plan, reads))

    assert any("queries: not counted yet; 400,000 published (microsoft/" in line for line in told())
    folder = Path(model.folder)
    folder.mkdir(parents=True)
    with record(folder, stage=model.stage, spec=model.spec, inputs=[]) as facts:
        facts["results"] = {"queries": 12_345, "steps": 77}
    lines = told()
    assert any(f"queries: 12,345 {where}; 400,000 published (microsoft/" in line for line in lines)
    assert any(f"steps: 77 {where}; 150,000 published (COSTA, " in line for line in lines)
    assert any("pieces_per_text: not counted yet; 449 published (ma787639046/bowdpr" in line for line in lines)
    links = chain.chain_json(chain.of_reads(plan, reads))
    assert {each["count"]: each["ours"] for each in links[0]["counts"]} == {"queries": 12_345, "steps": 77}
    assert not any(link["counts"] for link in links if not link["stage"].startswith(("pretrain", "finetune")))
