"""What a run's identity holds, by planning alone: whatever decides a number renames its folders, a label never does."""

import json
from pathlib import Path
from typing import Any

import pytest

from encore.plan.artifact import Artifact
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.products.tables.plan import table_plan
from tests.support.shipped import plan_with, run_file
from tests.support.small_reads import table_scores

DEFAULT = run_file("config")
STAGE1 = "bert-base+bow+bow-ft-bm25"
STAGE2 = f"{STAGE1}+bow-ft-hn"


pytestmark = pytest.mark.usefixtures("at_the_root")


def plan_of(catalogue: Catalogue, **changes: Any) -> Plan:
    return plan_with(catalogue, "config", changes)


def scores(plan: Plan, lineage: str = STAGE2, seed: int = 0) -> Artifact:
    return plan.scores(lineage, seed, "msmarco-passage", "test")


def folders(made: Artifact, stage: str) -> set[str]:
    return {artifact.folder for artifact in made.ancestors() if artifact.stage == stage}


VARIANTS = {
    "stage-2 start": f"{STAGE2}~start=parent",
    "negatives filter": f"{STAGE2}~exclude_judged=false",
    "pool in the batch": f"{STAGE2}~in_batch_group=16",
    "window of ranks": f"{STAGE2}~first_rank=1",
    "negatives kept": f"{STAGE2}~negatives_kept=5",
    "sample of queries": f"{STAGE2}~sample=1",
}


def test_every_choice_of_a_fine_tuning_has_runs_and_scores_of_its_own(catalogue: Catalogue) -> None:
    plan = plan_of(catalogue)
    found = {name: scores(plan, lineage) for name, lineage in {"usual": STAGE2, **VARIANTS}.items()}
    found["seed"] = scores(plan, STAGE2, seed=1)
    for each in (list(found.values()), [made.inputs["run"] for made in found.values()]):
        assert len({made.folder for made in each}) == len(found)
        # The digest itself differs, not only the name that an override puts before it.
        assert len({made.folder.split("/")[2][-8:] for made in each}) == len(found)


@pytest.mark.parametrize("variant", ["stage-2 start", "pool in the batch"])
def test_how_a_model_learns_mines_nothing_again(catalogue: Catalogue, variant: str) -> None:
    plan = plan_of(catalogue)
    usual, other = scores(plan), scores(plan, VARIANTS[variant])
    assert folders(usual, "negatives") == folders(other, "negatives")
    assert len(folders(usual, "finetune") ^ folders(other, "finetune")) == 2, "the last model and no other"


@pytest.mark.parametrize("variant", ["negatives filter", "window of ranks", "negatives kept"])
def test_other_negatives_come_from_the_same_run(catalogue: Catalogue, variant: str) -> None:
    plan = plan_of(catalogue)
    usual, other = (scores(plan, lineage).inputs["run"].inputs["model"] for lineage in (STAGE2, VARIANTS[variant]))
    assert usual.inputs["negatives"] is not other.inputs["negatives"]
    assert usual.inputs["negatives"].inputs["run"] is other.inputs["negatives"].inputs["run"]
    assert usual.inputs["weights"] is other.inputs["weights"]


def test_a_restart_and_its_miner_are_both_in_the_digest(catalogue: Catalogue) -> None:
    """Also behind several steps of fine-tuning, whatever their scorers: what is pre-trained is before all of them."""
    plan = plan_of(catalogue)
    for chain in ("bow-ft-bm25", "bow-ft-bm25+bow-ft-bm25~warmup=0.2", "colbert+tct", "colbert+tct+tct-hn"):
        parent = plan.resolve.lineage(f"bert-base+bow+{chain}")
        model = plan.model(plan.resolve.lineage(f"{parent}+bow-ft-hn"), 0)
        mined = model.inputs["negatives"]
        assert model.inputs["weights"] is plan.model(plan.resolve.lineage("bert-base+bow"), 0)
        assert mined.inputs["run"].inputs["model"] is plan.model(parent, 0)
        assert model.spec["weights"] == model.inputs["weights"].name
        assert model.spec["negatives"] == mined.name
        assert mined.spec["run"] == mined.inputs["run"].name


def test_a_corpus_with_titles_is_another_than_the_same_files_without(catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "d", "title": "a title", "text": "t"}) + "\n")
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "t"}) + "\n")
    for split in ("train", "valid", "test"):
        (tmp_path / f"qrels/{split}.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    splits = {"train": {"role": "train"}, "valid": {"role": "valid"}}
    fields = {
        "kind": "beir",
        "path": str(tmp_path),
        "splits": splits | {"test": {"role": "test", "measures": {"RR@10": "RR@10"}}},
    }

    def made(own: dict[str, Any]) -> Artifact:
        own_texts = dict.fromkeys(("msmarco-passage", "msmarco-passage-titles"), "own")
        scale = DEFAULT["scale"] | {"datasets": DEFAULT["scale"]["datasets"] | own_texts}
        return scores(plan_of(catalogue, scale=scale, datasets={"own": own}))

    with_titles, without = made(fields), made({**fields, "segments": [["text"]]})
    for stage in ("collection.beir", "tokens", "lucene_index", "lucene_search", "finetune", "encode", "search"):
        of_wikipedia = folders(made_of_wikipedia(catalogue), stage)
        assert (folders(with_titles, stage) & folders(without, stage)) <= of_wikipedia < folders(with_titles, stage)
    assert with_titles.folder != without.folder
    assert folders(with_titles, "pretrain.bow") == folders(without, "pretrain.bow"), "Wikipedia is the same"


def made_of_wikipedia(catalogue: Catalogue) -> Artifact:
    plan = plan_of(catalogue)
    return plan.model(plan.resolve.lineage("bert-base+bow"), 0)


def test_rows_that_differ_in_label_share_every_artifact(catalogue: Catalogue) -> None:
    table = catalogue.tables["table2"]
    chosen = [row for row in table.rows if row.id in ("tct", "exact", "hnsw", "fusion", "colbert", "bm25")]
    said = [row.model_copy(update={"id": f"{row.id}-too", "label": f"{row.label}, again"}) for row in chosen]
    for rows in (said, [row.model_copy(update={"setting": "Elsewhere", "role": "baseline"}) for row in chosen]):
        twice = table.model_copy(update={"rows": [*table.rows, *rows]})
        both = Catalogue(**{**vars(catalogue), "tables": {**catalogue.tables, "table2": twice}})
        plans = [plan_of(each, tables={"table2": "all"}) for each in (catalogue, both)]
        assert len(table_plan(plans[1], "table2").dumped()["rows"]) == len(table.rows) + len(rows)
        assert table_scores(plans[0], "table2") == table_scores(plans[1], "table2")
        assert set(plans[0].made) == set(plans[1].made)
