"""Published counts next to ours: what an entry may say, what is compared with it, and what is estimated from it."""

import json
import shutil
from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np
import pytest

from encore.commands import chain
from encore.commands.preflight import forecast_text
from encore.commands.preflight.amounts import amounts
from encore.commands.preflight.forecast import ComparedCount, Forecast
from encore.commands.preflight.sizes import SENTENCE, SIZES, CollectionSizes, read_stated
from encore.config.validation import read_yaml
from encore.errors import EncoreError
from encore.plan.artifacts.collections import named_collection
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue, load_plan
from encore.products.slices import Read
from encore.storage.manifest import record
from tests.support.small_forecast import estimate

ROOT = Path(__file__).parents[3]
PAPER, NANO = Path("config/paper.yaml"), Path("config/nano.yaml")
TRIPLES, JUDGED = 400_000, 502_939
ENTRY = "{steps: marco-bm25, count: steps, published: 9, place: here}"


@pytest.fixture(scope="module")
def paper() -> Forecast:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return estimate(load_plan(PAPER), "h100-80gb")


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


def test_texts_are_as_many_and_as_long_as_packing_makes_them(paper: Forecast) -> None:
    """Articles of the assumed lengths, packed one by one as the released code packs them."""
    step, rng = read_yaml(ROOT / "config/steps.yaml")["bow"], np.random.default_rng(0)
    size = paper.sizes.of(named_collection(paper.sizes.plan, "wikipedia-bookcorpus"))
    assert size.articles is not None
    texts, room = [], step["length"] - 2
    for length in size.articles.lengths:
        left = length
        while left >= 1:
            target = rng.uniform(1, room) if rng.random() < step["short_texts"] else room
            taken = min(left, target + rng.uniform(0, SENTENCE))
            texts.append(min(taken, room))
            left -= taken
    count = len(texts) / len(size.articles.lengths) * size.articles.count
    steps, pieces = row(paper, "steps", "bow"), row(paper, "pieces_per_text", "bow")
    assert steps.ours == pytest.approx(step["epochs"] * count / step["batch"], rel=0.03)
    assert pieces.ours == pytest.approx(np.mean(texts), rel=0.03)
    assert (steps.published, pieces.published) == (140_000, 449)


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
    found = estimate(load_plan(NANO))
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
    plan = load_plan(PAPER)
    without = Plan(plan.config, replace(plan.catalogue, published_counts=[]))
    flops = [
        amounts(model, CollectionSizes(each, read_stated(SIZES)))["flops"]
        for each in (plan, without)
        if (model := each.model(each.resolve.lineage(f"bert-base+marco-bm25+{step}"), 0))
    ]
    assert flops[0] / flops[1] == pytest.approx(share, rel=1e-3)


def test_a_sample_is_drawn_from_those_that_are_left(at_the_root: None) -> None:
    plan = load_plan(PAPER)
    sizes = CollectionSizes(plan, read_stated(SIZES))
    few, many, most = (
        amounts(plan.model(plan.resolve.lineage(f"bert-base+marco-bm25{sample}"), 0), sizes)["flops"]
        for sample in ("~queries=1000", "~queries=100000", "~queries=450000")
    )
    all_of_them = amounts(plan.model(plan.resolve.lineage("bert-base+marco-bm25"), 0), sizes)["flops"]
    assert many == pytest.approx(100 * few)
    assert most == all_of_them


def test_a_teacher_scores_the_queries_that_its_student_learns_from(at_the_root: None) -> None:
    plan = load_plan(PAPER)
    student = plan.model(plan.resolve.lineage("bert-base-tct+colbert+tct"), 0)
    found = amounts(student.inputs["teacher0"], CollectionSizes(plan, read_stated(SIZES)))
    assert found["queries"] == pytest.approx(TRIPLES / JUDGED * judged_here())


def test_published_counts_are_part_of_no_digest(at_the_root: None) -> None:
    plan = load_plan(PAPER)
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
    plan = load_plan(run)
    model = plan.model(plan.resolve.lineage("bert-base+bow+marco-bm25"), 0)
    monkeypatch.chdir(tmp_path)
    reads = [Read(seed=0, folder=model.folder)]

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
