"""What runs again after a change: exact sets of jobs over a finished nano run, planned or, where it says, carried out.

Jobs are written without the digests of their folders: ``finetune tiny+marco-bm25-s0``.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.support import own_run
from tests.support.clones import Clone, exact_jobs, jobs
from tests.support.nano_jobs import (
    CONTROL,
    CURVES,
    ICT,
    ICT_MINED,
    NONE,
    NONE_MINED,
    PRODUCTS,
    mined,
    temperature_of_ict,
    tuned,
)

MODELS = (NONE, CONTROL, ICT, NONE_MINED, ICT_MINED)
MADE_ANEW = ("results/tables/", "results/figures/")


ICT_CHAIN = {"pretrain tiny+ict-s0"} | tuned(ICT, ICT_MINED) | mined(ICT) | PRODUCTS | CURVES
RECIPE_CHAIN = tuned(*MODELS) | mined(NONE) | mined(ICT) | PRODUCTS
SCORES = {f"evaluate {system} pydocs-stdlib.test" for system in ("bm25", *MODELS)}
SEED_1 = {job.replace("-s0", "-s1") for job in RECIPE_CHAIN | {"start tiny-s0", "pretrain tiny+ict-s0"}} | {
    "lucene_search bm25 pydocs-stdlib.train.200",
    "negatives bm25 pydocs-stdlib.train.200",
}  # each seed draws its own queries and negatives


def comments(clone: Clone) -> None:
    """In the configuration, in a rule, in the library and in a program."""
    places = ("config/nano.yaml", "config/steps.yaml", "config/papers/encore/tables.yaml", "workflow/rules/index.smk")
    library = ("src/encore/retrieval/encode.py", "src/encore/stages/pretrain.py")
    for name in (*places, *library, "workflow/scripts/make.py"):
        with (clone.root / name).open("a") as file:
            file.write("# a remark\n")


def layout_of_a_command(clone: Clone) -> None:
    flag = " --processes {resources.processes}"
    clone.replace("workflow/rules/pretrain.smk", flag, f" {flag}")


def touched_files(clone: Clone) -> None:
    """As a checkout of another branch and back does."""
    for name in ("config/nano.yaml", "config/steps.yaml", "workflow/rules/finetune.smk", "workflow/scripts/make.py"):
        os.utime(clone.root / name)


def order_of_keys(clone: Clone) -> None:
    for name in ("nano", "steps", "datasets", "backbones", "systems"):
        path = clone.root / f"config/{name}.yaml"
        path.write_text(yaml.safe_dump(backwards(yaml.safe_load(path.read_text())), sort_keys=False))


def backwards(value: object) -> object:
    return {key: backwards(value[key]) for key in reversed(value)} if isinstance(value, dict) else value


def memory_of_java(clone: Clone) -> None:
    clone.replace("config/nano.yaml", "java_memory_mb: 512", "java_memory_mb: 640")


def edits_that_change_nothing(clone: Clone) -> None:
    """All of the above; the order of keys first, since writing YAML anew drops remarks."""
    for edit in (order_of_keys, memory_of_java, comments, layout_of_a_command, touched_files):
        edit(clone)


RATES = "marco-hn: {steps_per_epoch: 5, learning_rate: 5.0e-4", "marco-hn: {steps_per_epoch: 5, learning_rate: 6.0e-4"


def learning_rate_of_mined_negatives(clone: Clone) -> None:
    clone.replace("config/nano.yaml", *RATES)


def learning_rate_back(clone: Clone) -> None:
    clone.replace("config/nano.yaml", *RATES[::-1])


def learning_rate_of_the_recipe(clone: Clone) -> None:
    clone.replace("config/nano.yaml", "per_query: 1, learning_rate: 1.0e-3", "per_query: 1, learning_rate: 2.0e-3")
    clone.replace("config/nano.yaml", "steps_per_epoch: 5, learning_rate: 5.0e-4", "steps_per_epoch: 5")


def one_more_measure(clone: Clone) -> None:
    path = clone.root / "config/datasets.yaml"
    datasets = yaml.safe_load(path.read_text())
    datasets["pydocs-stdlib"]["splits"]["test"]["measures"]["RR@100"] = "RR(rel=3)@100"
    path.write_text(yaml.safe_dump(datasets))


def one_more_seed(clone: Clone) -> None:
    clone.replace("config/nano.yaml", "seeds: [0]", "seeds: [0, 1]")


def a_row_less(clone: Clone) -> None:
    clone.replace("config/nano.yaml", "[bm25, none,", "[none,")


def order_of_rows(clone: Clone) -> None:
    path = clone.root / "config/papers/encore/tables.yaml"
    tables = yaml.safe_load(path.read_text())
    tables["table1"]["rows"].reverse()
    path.write_text(yaml.safe_dump(tables))


def title(clone: Clone) -> None:
    clone.replace("config/papers/encore/tables.yaml", "title: Pre-training objectives", "title: Objectives")


CHANGES: list[tuple[Callable[[Clone], None], set[str]]] = [
    (edits_that_change_nothing, set()),
    (temperature_of_ict, ICT_CHAIN),
    (learning_rate_of_the_recipe, RECIPE_CHAIN),
    (one_more_seed, SEED_1 | PRODUCTS | CURVES),
    (a_row_less, PRODUCTS),
    (order_of_rows, PRODUCTS),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES, ids=[change.__name__ for change, _ in CHANGES])
def test_what_a_change_plans(nano: Clone, change: Callable[[Clone], None], expected: set[str]) -> None:
    """And no job writes into a folder that exists: an old result is never overwritten by another."""
    change(nano)
    planned = nano.nano("-n").succeeded()
    assert jobs(planned) == expected
    names = {word for job in exact_jobs(planned) for word in job.split()[1:] if "+ict" in word}
    assert bool(names) == ("+ict" in str(expected))
    assert not names & {path.name for path in (nano.root / "results").rglob("*") if path.is_dir()}


@pytest.mark.parametrize(("change", "expected"), CHANGES[:2], ids=[change.__name__ for change, _ in CHANGES[:2]])
def test_what_a_change_plans_when_records_are_lost(
    nano: Clone, change: Callable[[Clone], None], expected: set[str]
) -> None:
    """Snakemake's own records make no difference: what matters is in the names of folders."""
    shutil.rmtree(nano.root / ".snakemake")
    change(nano)
    assert nano.planned() == expected


def test_a_change_carried_out_and_taken_back(nano: Clone) -> None:
    """The change's jobs run and no others; afterwards the old models are found again, and the table is the same."""
    before, table = nano.manifests(), nano.table()
    learning_rate_of_mined_negatives(nano)
    assert nano.built() == tuned(NONE_MINED, ICT_MINED) | PRODUCTS
    assert nano.planned() == set()
    assert nano.table() != table
    assert {name: nano.manifests()[name] for name in before if not name.startswith(MADE_ANEW)} == {
        name: text for name, text in before.items() if not name.startswith(MADE_ANEW)
    }
    learning_rate_back(nano)
    assert nano.built() == PRODUCTS
    assert nano.planned() == set()
    assert nano.table() == table


def test_measures_and_rows_carried_out(nano: Clone) -> None:
    one_more_measure(nano)
    order_of_rows(nano)
    assert nano.built() == SCORES | PRODUCTS
    assert nano.planned() == set()


def test_a_reported_number_makes_the_table_again(nano: Clone) -> None:
    """In a clone whose table has a paper's numbers next to ours."""
    numbers, table = nano.root / "config/papers/encore/numbers.csv", "results/tables/table1.csv"
    numbers.write_text("row_label,setting,dataset,metric,value\nBM25,,msmarco-passage-titles,MRR@10,0.187\n")
    nano.replace("config/papers/encore/tables.yaml", "  title: Pre-", "  reported: numbers.csv\n  title: Pre-")
    assert nano.planned() == PRODUCTS
    assert nano.built(table) == {"table table1"}
    assert b"0.187" in nano.table()
    assert nano.planned(table) == set()
    numbers.write_text(numbers.read_text().replace("0.187", "0.184"))
    assert nano.planned() == PRODUCTS
    assert nano.built(table) == {"table table1"}
    assert b"0.184" in nano.table()


def test_a_change_taken_back_while_records_are_lost(nano: Clone) -> None:
    """Parsing the workflow rewrites the plans of tables, and yet a dry run makes no change forgotten.

    The plan next to the tables remembers what Snakemake has forgotten.
    """
    title(nano)
    assert nano.planned() == nano.planned() == PRODUCTS
    assert nano.built() == PRODUCTS
    shutil.rmtree(nano.root / ".snakemake")
    nano.replace("config/papers/encore/tables.yaml", "title: Objectives", "title: Pre-training objectives")
    assert nano.planned() == PRODUCTS


def test_another_folder_does_not_matter(finished: Clone, tmp_path: Path) -> None:
    """Moved or copied results are as good as made."""
    moved = finished.copy(tmp_path / "another folder" / "with blanks")
    assert moved.planned() == set()
    assert "verified, 0 bad" in moved.encore("audit", "--config", "config/nano.yaml").succeeded()


def test_a_folder_of_the_users_may_be_moved(clone: Clone) -> None:
    """To a name with all that a shell or Snakemake could take for something else."""
    folder = own_run.declare(clone)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "a text"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "a text"}\n')
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    made = own_run.planned(clone)
    assert clone.built(made) == {"collection mine"}
    folder.rename(folder.with_name("{it's} $HOME"))
    clone.replace("config/nano.yaml", "path: data/mine", 'path: "data/{it\'s} $HOME"')
    assert clone.planned(made) == set()
    shutil.rmtree(clone.root / "results/collections")
    assert clone.built(made) == {"collection mine"}
