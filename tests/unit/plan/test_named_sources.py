"""Steps, expansions and datasets that name a source: planned with nothing downloaded, fetched before anything else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from encore import stages
from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan import folders
from encore.plan.artifact import Artifact, Topics
from encore.plan.artifacts import systems
from encore.plan.artifacts.collections import fetched_source, named_collection
from encore.plan.catalogue import Catalogue, read_step
from encore.plan.plan import Plan
from tests.support.shipped import run_file

NANO = run_file("nano")
FULL, SMALL = "msmarco-triples-full", "msmarco-triples-small"
Make = Callable[..., Plan]

pytestmark = pytest.mark.usefixtures("nothing_here")


def fetched(plan: Plan) -> list[Artifact]:
    """Everything from the network among what has been planned so far."""
    return [artifact for artifact in plan.made.values() if artifact.stage in stages.that("fetches")]


@pytest.fixture
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without any data."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def make(catalogue: Catalogue) -> Make:
    """A plan at the papers' own scale."""

    def plan(**scale: Any) -> Plan:
        content = {**NANO, "scale": scale, "tables": {}}
        return Plan(RunConfig.model_validate(content), catalogue)

    return plan


def model(plan: Plan, lineage: str) -> Artifact:
    return plan.model(plan.resolve.lineage(lineage), 0)


def ancestors(artifact: Artifact, stage: str) -> list[str]:
    return sorted({each.folder.split("/")[-1][:-9] for each in artifact.ancestors() if each.stage == stage})


@pytest.mark.parametrize(
    ("lineage", "role", "source"),
    [
        ("bert-base+marco-bm25", "negatives", FULL),
        ("bert-base+cpdae-ft-bm25", "negatives", FULL),
        ("bert-base+bow-ft-bm25", "negatives", FULL),
        ("bert-base+costa-low-500", "negatives", FULL),
        ("bert-base+bow-beir", "negatives", "msmarco-hard-negatives"),
        ("bert-base-tct+colbert", "negatives", SMALL),
        ("bert-base-tct+colbert+tct-base", "negatives", SMALL),
        ("bert-base-tct+colbert+tct", "negatives", SMALL),
        ("bert-base-tct+colbert+kd-t2", "teacher0", "msmarco-teacher-t2"),
        ("bert-base-tct+colbert+margin-mse", "teacher0", "msmarco-teacher-t2"),
    ],
)
def test_a_papers_step_learns_from_what_its_paper_names(make: Make, lineage: str, role: str, source: str) -> None:
    plan = make()
    made = model(plan, lineage).inputs[role]
    assert made.inputs["fetched"] is fetched_source(plan, source)
    assert made.spec["fetched"] == made.inputs["fetched"].name
    assert (made.source, "content" in made.spec) == (None, False)
    assert made.inputs["fetched"] in fetched(plan), "`snakemake fetch` brings it"


@pytest.mark.parametrize(
    ("lineage", "collection"),
    [
        ("bert-base+marco-bm25+marco-hn", "msmarco-passage-titles"),
        ("bert-base+cpdae-ft-bm25+cpdae-ft-hn", "msmarco-passage-titles"),
        ("bert-base+bow-ft-bm25+bow-ft-hn", "msmarco-passage-titles"),
        ("bert-base+cpdae-low-100", "msmarco-passage-titles"),
        ("bert-base+bow-beir", "msmarco-passage"),
        ("bert-base-tct+colbert+tct+tct-hn", "msmarco-passage"),
        ("bert-base+cross-encoder", "msmarco-passage"),
    ],
)
def test_a_step_reads_titles_where_its_paper_does(make: Make, lineage: str, collection: str) -> None:
    made = model(make(), lineage)
    assert made.inputs["collection"].folder.startswith(f"results/collections/{collection}-")
    assert made.inputs["tokens"].inputs["collection"] is made.inputs["collection"]


def test_titles_come_from_a_source_and_all_else_from_the_passages(make: Make) -> None:
    plan = make()
    titled = plan.collection("msmarco-passage-titles")
    assert titled.inputs == {
        "collection": plan.collection("msmarco-passage"),
        "source.msmarco-titles": fetched_source(plan, "msmarco-titles"),
    }
    assert plan.find(titled.folder) is titled
    splits = [plan.resolve.dataset(name).fields.splits for name in ("msmarco-passage", "msmarco-passage-titles")]
    assert [{name: (split.role, split.measures) for name, split in each.items()} for each in splits] == [
        {name: (split.role, split.measures) for name, split in splits[0].items()}
    ] * 2


@pytest.mark.parametrize("name", ["marco-hn", "marco-doc-1", "bow-qa-1", "cpdae-low-doc-100", "hn", "tct-doc"])
def test_official_negatives_are_for_the_first_stage_on_passages_alone(catalogue: Catalogue, name: str) -> None:
    assert read_step(catalogue.steps[name]).model_dump()["triples"] is None


def test_negatives_of_a_source_are_named_by_it_and_by_nothing_that_must_be_there(make: Make) -> None:
    plan, other = make(), make(steps={"bow-ft-bm25": {"triples": SMALL}})
    folders = [model(each, "bert-base+bow-ft-bm25").inputs["negatives"].folder for each in (plan, make(), other)]
    assert folders[0] == folders[1] != folders[2]
    assert folders[0].startswith("results/negatives/triples-")
    assert plan.find(folders[0]).folder == folders[0]


def test_a_scale_goes_back_to_our_own_run(make: Make) -> None:
    drawn = model(make(finetune={"triples": None}), "bert-base+marco-bm25").inputs["negatives"]
    assert set(drawn.inputs) == {"run", "collection"}


def test_a_source_that_is_unknown_is_no_file_either(make: Make) -> None:
    with pytest.raises(EncoreError, match=f"msmarco-triples-ful is missing.*did you mean.*{FULL}") as refused:
        model(make(steps={"bow-ft-bm25": {"triples": "msmarco-triples-ful"}}), "bert-base+bow-ft-bm25")
    assert "\n" not in str(refused.value)


def test_published_queries_are_the_first_forty_of_a_source(make: Make) -> None:
    plan = make()
    index = systems.lucene_index(plan, "msmarco-passage", "doct5")
    queries = index.inputs["predicted_queries"]
    assert queries.inputs["fetched"] is fetched_source(plan, "msmarco-expansions")
    assert (queries.spec["samples"], queries.source, "content" in queries.spec) == (40, None, False)
    run = plan.run("bm25-doct5", None, "msmarco-passage", Topics("test", 1000))
    assert "msmarco-expansions" in ancestors(run, "fetch_source")
    assert plan.find(queries.folder) is queries


def test_a_name_that_a_dataset_and_a_source_share_is_the_dataset(make: Make) -> None:
    plan = make()
    for name in ("wikipedia", "bookcorpus"):
        assert folders.named(plan, name) == [named_collection(plan, name).manifest]
        assert folders.named(plan, f"source:{name}") == [fetched_source(plan, name).manifest]
    assert folders.named(plan, "squad") == folders.named(plan, "source:squad")
    with pytest.raises(EncoreError, match=r"'wikpedia' is not in sources\.yaml; did you mean wikipedia"):
        folders.named(plan, "source:wikpedia")


def test_a_missing_dump_says_where_it_belongs_and_what_brings_it(make: Make) -> None:
    plan = make()
    dump = named_collection(plan, "wikipedia")
    with pytest.raises(EncoreError, match=r"^data/wikipedia/enwiki-.* is missing: .*encore targets source:wikipedia"):
        folders.refuse_missing(plan, [dump])
    Path(str(dump.source)).parent.mkdir(parents=True)
    Path(str(dump.source)).write_bytes(b"BZh")
    folders.refuse_missing(plan, [dump])
