"""`encore new`: from a folder, or an id of ir_datasets, to a short run's file that plans what it can speak to."""

import json
import re
from pathlib import Path

import pytest
import yaml

from encore.data import vocabulary
from encore.data.collection import Collection
from encore.data.tokens import write_store
from encore.datasets.kinds import build_collection
from encore.products.targets import downloads, everything_declared
from tests.support import inside
from tests.support.own_folder import encoder, folder, judged, new, planned, raw, refused

ARTICLES = {"bfs", "wlp", "ict-bfs-wlp"}


def test_a_folder_becomes_a_run_of_table_1_and_nothing_else(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    printed = new("own", "--beir", "data/own")
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert run.keys() == {"extends", "title", "proxy_data", "tables", "scale", "datasets"}
    assert (run["title"], run["tables"].keys()) == ("own", {"table1"})
    assert set(run["tables"]["table1"]) == {"bm25", "random", "none", "control", "mlm", "ict", "bow", "costa"}
    assert "articles and links, not from passages: BFS, WLP, ICT+BFS+WLP." in Path("config/own.yaml").read_text()
    assert run["datasets"]["own"]["valid_queries"] == 30
    assert run["datasets"]["own"]["splits"]["graded"]["measures"] == {"nDCG@10": "nDCG@10"}, "of one grade, too"
    assert run["datasets"]["own"]["splits"]["test"]["measures"]["RR@10"] == "RR@10"
    assert "40 passages; 270 queries to train on, 30 to validate with, 100 to test with" in printed
    assert "Of the test queries 100 have a relevant passage of a training query" in printed
    assert "  snakemake --profile local --configfile config/own.yaml" in printed.splitlines()
    assert "Left out, since they learn from articles and links, not from passages: BFS, WLP, ICT+BFS+WLP." in printed
    assert re.search(
        r"It takes \d+ jobs and (about|less than) .+ core-hours; --rows none,mlm would train only these.", printed
    )

    plan, jobs = planned("config/own.yaml")
    assert everything_declared(plan)[0] == "results/tables/table1.csv"
    assert {Path(target).stem for target in everything_declared(plan)} == {"table1", "pretraining", "index"}
    assert jobs["collection"] == 1
    assert jobs["pretrain"] == 5, "four objectives, and the start of all"
    assert sum(jobs.values()) < 150
    assert downloads(plan) == []


def test_a_collection_without_training_queries_is_tested_with_models_of_the_other_run(bare: Path) -> None:
    folder({"test": judged(0, 100)})
    assert "with --zero-shot" in refused("own", "--beir", "data/own")
    new("own", "--beir", "data/own", "--zero-shot")
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert (run["title"], run["tables"]) == ("own, zero-shot", {"zero-shot": "all"})
    assert run["datasets"]["own"]["zero_shot"] is True
    plan, jobs = planned("config/own.yaml")
    default, _ = planned("config/config.yaml")
    models = {folder for folder, made in plan.made.items() if folder.startswith("results/models/")}
    assert len(models) == 21
    assert models <= default.made.keys(), "the default's own, which a clone may have made already"
    assert jobs["collection"] == 2


def test_the_run_that_is_extended_says_which_rows_there_are(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    new("own", "--beir", "data/own", "--config", "config/nano.yaml")
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert run["extends"] == "config/nano.yaml"
    assert run["tables"] == yaml.safe_load(Path("config/nano.yaml").read_text())["tables"]
    assert "Left out" not in Path("config/own.yaml").read_text()


@pytest.mark.parametrize("words", [(), ("--zero-shot",), ("--zero-shot", "--checkpoint", "models/theirs")])
def test_what_the_extended_run_has_of_its_own_is_kept_where_its_scale_names_it(
    bare: Path, words: tuple[str, ...]
) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    encoder()
    base = yaml.safe_load(Path("config/nano.yaml").read_text())
    base["backbones"] = {"own-tiny": {"start": "random", "layers": 1, "hidden": 8, "heads": 1, "vocabulary": 300}}
    base["datasets"] = {
        "part": {"kind": "subset", "of": "whole", "articles": 9},
        "whole": {"kind": "encyclopedia", "path": "pages.jsonl"},
        "unnamed": {"kind": "encyclopedia", "path": "others.jsonl"},
    }
    base["scale"]["datasets"] |= {"wikipedia": "part"}
    base["scale"]["backbones"] |= {"two-tower": "own-tiny"}
    Path("config/base.yaml").write_text(yaml.safe_dump(base))
    Path("pages.jsonl").write_text("{}")
    new("own", "--beir", "data/own", "--config", "config/base.yaml", *words)
    plan, _ = planned("config/own.yaml")
    assert plan.config.datasets.keys() == ({"own", "part", "whole"} if words else {"own"})
    assert plan.config.backbones.keys() >= {"own-tiny"}


def test_rows_that_are_named_are_the_only_ones_that_train(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    new("own", "--beir", "data/own", "--rows", "none,mlm")
    assert yaml.safe_load(Path("config/own.yaml").read_text())["tables"] == {"table1": ["bm25", "none", "mlm"]}
    assert "--rows: no row 'nones'" in refused("two", "--beir", "data/own", "--rows", "nones")


@pytest.mark.parametrize("name", ["2024", "null", "yes", "0123"])
def test_a_name_that_yaml_takes_for_something_else_is_quoted(bare: Path, name: str) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    new(name, "--beir", "data/own")
    assert [*planned(f"config/{name}.yaml")[0].config.datasets] == [name]


@pytest.mark.parametrize(
    ("name", "message"),
    [("mein korpus", "cannot be the name of a dataset"), ("pydocs", "has a dataset"), ("seeds", "is there already")],
)
def test_a_name_that_cannot_be_had_is_refused(bare: Path, name: str, message: str) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    assert message in refused(name, "--beir", "data/own")


def test_passages_alone_are_pre_trained_on(bare: Path) -> None:
    place = folder({}, text="Two sentences. They are here")
    (place / "queries.jsonl.gz").unlink()
    assert "or only pre-train on its passages, with --pretrain" in refused("own", "--beir", "data/own")
    assert "--pretrain starts from the other run's models" in refused(
        "own", "--beir", "data/own", "--pretrain", "--checkpoint", "someone/theirs"
    )
    assert "40 passages, to pre-train on." in new("own", "--beir", "data/own", "--pretrain")
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert set(run["tables"]) == {"table1"}
    assert ARTICLES.isdisjoint(run["tables"]["table1"])
    assert run["scale"]["datasets"]["wikipedia"] == run["scale"]["datasets"]["wikipedia-bookcorpus"] == "own"
    plan, _ = planned("config/own.yaml")
    trained = {each.spec["step"]["collection"] for each in plan.made.values() if each.stage == "finetune"}
    assert trained == {"pydocs"}
    own = plan.collection("own")
    read = [each for each in plan.made.values() if each.stage.startswith("pretrain.")]
    assert read
    assert all(each.inputs["tokens"].inputs["collection"] is own for each in read)
    assert plan.collection("msmarco-passage").name.startswith("pydocs-")
    counts = build_collection("beir", own.spec, Path("made"), source=place)
    assert (counts["passages"], counts["queries"], counts["splits"]) == (40, 0, {})
    vocabulary.save_tokenizer(
        vocabulary.build_tokenizer(vocabulary.train(["Two sentences. They are here"], 60)), Path("v")
    )
    assert write_store(Collection(Path("made")), Path("v"), Path("store"))["tokens_in_queries"] == 0


def test_a_collection_is_pre_trained_on_and_tested_without_training_queries(bare: Path) -> None:
    folder({"train": judged(0, 200), "test": judged(200, 250)})
    new("own", "--beir", "data/own", "--pretrain")
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert set(run["tables"]) == {"zero-shot"}
    assert ARTICLES.isdisjoint(run["tables"]["zero-shot"])
    assert {name for name, own in run["scale"]["datasets"].items() if own == "own"} == {
        *("wikipedia", "wikipedia-bookcorpus", "zero-shot")
    }
    _, jobs = planned("config/own.yaml")
    assert jobs["pretrain"]
    assert run["datasets"]["own"]["splits"].keys() == {"test"}


def test_files_in_another_form_become_a_folder_and_a_run(bare: Path) -> None:
    """With judgments to validate with, 60 training queries are enough; and 12 passages, which is said."""
    raw()
    printed = new("own", "--from", "raw").splitlines()
    assert printed[:3] == [
        "data/own is made:",
        "12 passages from docs/docs.jsonl (JSON lines: id, contents).",
        "20 judgments of dev from qrels.dev.txt (TREC judgments: qid, docid, score; not read: iteration).",
    ]
    assert (
        "12 passages; 60 queries to train on, 20 to validate with, 20 to test with; judgments of one grade." in printed
    )
    start = "Word embeddings start from an analysis (LSA) of 12 passages, which gives so many of their 64 dimensions"
    assert f"{start}; the others start at 0." in printed
    assert yaml.safe_load(Path("config/own.yaml").read_text())["datasets"]["own"]["path"] == "data/own"
    assert planned("config/own.yaml")[1]["collection"] == 1


@pytest.mark.slow
def test_negatives_that_training_rows_list_replace_bm25s(bare: Path) -> None:
    """Tevatron's rows, from the file to the steps; where few queries list some, BM25's stay, and it is said."""
    place = raw(train=0)
    passages = [{"docid": f"{n:03}", "text": f"Two sentences. They are here {n}"} for n in range(12)]
    rows = [
        {"query_id": f"t{n}", "query": f"two words {n}", "positive_passages": [passages[n % 12]]}
        | {"negative_passages": [passages[(n + 1) % 12]]}
        for n in range(60)
    ]
    (place / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    said = "60 training queries list negatives, which replace BM25's (listed_negatives)."
    assert said in new("own", "--from", "raw", "--config", "config/nano.yaml")
    entry = yaml.safe_load(Path("config/own.yaml").read_text())["datasets"]["own"]
    assert entry["listed_negatives"] is True
    plan, jobs = planned("config/own.yaml")
    assert jobs["negatives_from_dataset"] == 1
    trained = [each for each in plan.made.values() if each.stage == "finetune"]
    stages = {each.spec["step"]["negatives"]: each.inputs["negatives"].stage for each in trained}
    assert stages == {"bm25": "negatives_from_dataset", "mined": "negatives"}
    (place / "train.jsonl").write_text(
        "\n".join(json.dumps(row | {"negative_passages": row["positive_passages"]}) for row in rows)
    )
    assert "list negatives" not in new("positive", "--from", "raw"), "each is its query's own passage"
    folder({"train": [*judged(0, 300), "q0\td1\t0"], "test": judged(300, 400)}, "data/few")
    assert "Only 1 training queries list negatives, so BM25's are drawn;" in new("few", "--beir", "data/few")
    assert "listed_negatives:" not in Path("config/few.yaml").read_text().partition("datasets:")[2]


def test_what_was_made_of_other_files_stays_where_no_run_can_be_written(bare: Path) -> None:
    raw(dev=0)
    done = inside.encore("new", "own", "--from", "raw")
    assert "60 training queries are too few" in done.stderr
    assert not Path("config/own.yaml").exists()
    assert "data/own is there already; take it as it is" in refused("own", "--from", "raw")
    new("own", "--beir", "data/own", "--zero-shot")


def test_another_layout_is_refused_with_what_is_there_and_the_flag_that_reads_it(bare: Path) -> None:
    raw()
    message = refused("own", "--beir", "raw")
    assert "there: docs, qrels.dev.txt, qrels.test.txt, qrels.train.txt, topics.dev.tsv" in message
    assert "--from reads other forms" in message
