"""`encore new`: from a folder, or an id of ir_datasets, to a short run's file that plans what it can speak to."""

import gzip
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from encore.commands.new.from_ir_datasets import ir_datasets_source
from encore.commands.new.run_text import about, run_text
from encore.commands.new.source import Source
from encore.commands.preflight.sizes import SIZES, CollectionSizes, read_stated
from encore.config import checkpoints
from encore.config.lineage import StepName
from encore.config.run_file import read_run
from encore.data import vocabulary
from encore.data.collection import Collection
from encore.data.overlap import overlap_with_training
from encore.data.tokens import write_store
from encore.datasets.kinds import build_collection, load_kind
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue, load_plan
from encore.products.targets import downloads, everything_declared, needed_by
from encore.storage.files import sha256
from tests.support import inside
from tests.support.own_folder import folder, judged, new
from tests.support.small_published import of_sentence_transformers

ROOT = Path(__file__).parents[3]
ARTICLES = {"bfs", "wlp", "ict-bfs-wlp"}


def refused(*words: str) -> str:
    before = sorted(Path().rglob("*"))
    done = inside.encore("new", *words)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert sorted(Path().rglob("*")) == before, "nothing is left"
    return done.stderr


def planned(path: str) -> tuple[Plan, Counter[str]]:
    """The plan of a run, and how many jobs of each stage it needs."""
    plan = load_plan(Path(path))
    return plan, Counter(each.stage.partition(".")[0] for each in needed_by(plan, everything_declared(plan)))


def test_a_folder_becomes_a_run_of_table_1_and_nothing_else(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    printed = new("own", "--beir", "data/own")
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert run.keys() == {"extends", "title", "tables", "scale", "datasets"}
    assert (run["title"], run["tables"].keys()) == ("own", {"table1"})
    assert set(run["tables"]["table1"]) == {"bm25", "random", "none", "control", "mlm", "ict", "bow", "costa"}
    assert "articles and links, not from passages: BFS, WLP, ICT+BFS+WLP." in Path("config/own.yaml").read_text()
    assert run["datasets"]["own"]["valid_queries"] == 30
    assert run["datasets"]["own"]["splits"]["graded"]["measures"] == {"nDCG@10": "nDCG@10"}, "of one grade, too"
    assert run["datasets"]["own"]["splits"]["test"]["measures"]["RR@10"] == "RR@10"
    assert "40 passages; 270 queries to train on, 30 to validate with, 100 to test with" in printed
    assert "Of the test queries 100 have a relevant passage of a training query" in printed
    assert "  snakemake --profile local --configfile config/own.yaml" in printed.splitlines()

    plan, jobs = planned("config/own.yaml")
    assert everything_declared(plan)[0] == "results/tables/table1.csv"
    assert {Path(target).stem for target in everything_declared(plan)} == {
        *("table1", "pretraining", "claims_printed", "index"),
    }
    assert jobs["collection"] == 1
    assert jobs["pretrain"] == 5, "four objectives, and the start of all"
    assert sum(jobs.values()) < 150
    assert downloads(plan) == []


def test_a_folder_of_no_named_language_is_said_to_be_read_as_english(bare: Path) -> None:
    """German has the letters of English, so only the user can tell."""
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text="Der Hund läuft über die Straße. Kinder spielen")
    said = "The texts are read as English, since no --language is named."
    assert said in new("own", "--beir", "data/own").splitlines()
    assert f"# {said}" in Path("config/own.yaml").read_text().splitlines()
    for language in ("de", "en"):
        assert said not in new(f"own-{language}", "--beir", "data/own", "--language", language)


def test_grades_and_judgments_for_validation_are_used_where_there_are_any(bare: Path) -> None:
    folder({"train": judged(0, 200), "dev": judged(200, 250), "test": [*judged(250, 300, 2), *judged(300, 350)]})
    assert "50 to validate with, 100 to test with; judgments of several grades" in new("own", "--beir", "data/own")
    own = yaml.safe_load(Path("config/own.yaml").read_text())["datasets"]["own"]
    assert own["splits"]["valid"]["file"] == "qrels/dev.tsv"
    assert own["splits"]["graded"] == {
        "role": "graded",
        "topics": "test",
        "file": "qrels/test.tsv",
        "measures": {"nDCG@10": "nDCG@10"},
    }
    assert "valid_queries" not in own
    for split in ("valid", "test"):
        assert own["splits"][split]["measures"]["RR@10"] == "RR(rel=1)@10"
    plan, _ = planned("config/own.yaml")
    assert set(plan.resolve.dataset("own").fields.splits) == {"train", "valid", "test", "graded"}


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


def test_an_objective_on_pairs_of_sentences_is_left_out_where_no_text_has_two(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text=f"one{' long' * 70} sentence")
    new("own", "--beir", "data/own")
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert set(run["tables"]["table1"]) == {"bm25", "random", "none", "control", "mlm", "bow", "costa"}
    text = Path("config/own.yaml").read_text()
    assert "# Left out, since they learn from texts of two sentences, and here each has one: ICT.\n" in text
    assert "passages: BFS, WLP, ICT+BFS+WLP.\n" in text


@pytest.mark.parametrize("words", [(), ("--checkpoint", "models/theirs")])
def test_an_objective_on_longer_texts_is_left_out_where_there_are_none(bare: Path, words: tuple[str, ...]) -> None:
    """COSTA's job would end, as no text has its 64 pieces."""
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text="Two sentences. They are short")
    encoder()
    new("own", "--beir", "data/own", *words)
    text = Path("config/own.yaml").read_text()
    assert "# Left out, since they learn from longer texts than any here: COSTA.\n" in text
    (rows,) = yaml.safe_load(text)["tables"].values()
    assert set(rows) >= {"none", "control", "mlm", "ict", "bow"}
    assert "costa" not in rows


def test_an_objective_on_two_sentences_is_left_out_where_they_are_longer_than_what_it_reads(bare: Path) -> None:
    """Two sentences of 61 and 30 ideographs are not in one text of 64 pieces; the 91 are enough for COSTA."""
    text = f"{signs(60)}。{signs(29)}"
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text=text)
    new("own", "--beir", "data/own", "--language", "zh")
    text = Path("config/own.yaml").read_text()
    assert "# Left out, since they learn from two sentences together, and here these are longer than" in text
    (rows,) = yaml.safe_load(text)["tables"].values()
    assert "costa" in rows
    assert "ict" not in rows


def test_queries_that_teach_nothing_are_not_counted_as_training(bare: Path) -> None:
    folder({"train": [*judged(0, 200), *judged(200, 300, 0)], "test": judged(300, 400)})
    assert "180 queries to train on, 20 to validate with" in new("own", "--beir", "data/own")


@pytest.mark.parametrize("name", ["2024", "null", "yes", "0123"])
def test_a_name_that_yaml_takes_for_something_else_is_quoted(bare: Path, name: str) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    new(name, "--beir", "data/own")
    assert [*planned(f"config/{name}.yaml")[0].config.datasets] == [name]


BAD = [
    (
        {"train": judged(0, 300), "dev": judged(300, 400), "test": judged(300, 400)},
        (),
        "test.tsv, line 2: 100 queries of split 'test' also validate",
    ),
    ({"train": judged(0, 300, 0), "test": judged(300, 400)}, (), "train.tsv has no grade above 0"),
    ({"train": [*judged(0, 50), *judged(50, 300, 0)], "test": judged(300, 400)}, (), "50 training queries are too few"),
    ({"train": judged(0, 300), "test": judged(0, 1)}, (), "test.tsv, line 2: 1 queries of split 'test' also train"),
    ({"train": judged(0, 300), "test": ["q301\td1\tx"]}, (), "test.tsv, line 2: grade 'x' is not a whole number"),
    ({"train": judged(0, 300), "test": ["q301\td99\t1"]}, (), "drop` (here: `--drop`)"),
    (
        {"train": judged(0, 60), "test": judged(300, 330)},
        (),
        "60 training queries are too few: a tenth validates, at least 10; give 100",
    ),
    ({"train": judged(0, 60), "test": judged(300, 330)}, (), "give 100, move some to a dev.tsv, or evaluate models"),
    (
        {"train": [f"q1\td{n}\t1" for n in range(40)], "dev": judged(2, 9), "test": judged(300, 330)},
        (),
        "each training query judges all 40 passages, so none can be its negative",
    ),
    ({}, (), "data/own/qrels (there: corpus.jsonl.gz, qrels, queries.jsonl.gz) holds no judgments; give it a test.tsv"),
    (
        {"train": judged(0, 300)},
        (),
        "qrels/train.tsv, queries.jsonl.gz) has no judgments to test on, only train; move some to a test.tsv",
    ),
]


@pytest.mark.parametrize(("qrels", "words", "message"), BAD)
def test_what_cannot_be_used_is_refused_and_leaves_nothing(
    bare: Path, qrels: dict[str, list[str]], words: tuple[str, ...], message: str
) -> None:
    folder(qrels)
    assert message in refused("own", "--beir", "data/own", *words)


@pytest.mark.parametrize(
    ("name", "message"),
    [("mein korpus", "cannot be the name of a dataset"), ("pydocs", "has a dataset"), ("seeds", "is there already")],
)
def test_a_name_that_cannot_be_had_is_refused(bare: Path, name: str, message: str) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    assert message in refused(name, "--beir", "data/own")


@pytest.mark.parametrize("name", ["qrels/test.tsv.gz", "qrels/test.txt", "qrels.test.tsv"])
def test_judgments_under_another_usual_name_are_read(bare: Path, name: str) -> None:
    place = folder({"train": judged(0, 300), "test": judged(300, 400)})
    text = (place / "qrels/test.tsv").read_bytes()
    if name.endswith(".txt"):
        text = "".join(f"q{n} 0 d{n % 40} 1\n" for n in range(300, 400)).encode()
    (place / "qrels/test.tsv").unlink()
    (place / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert "270 queries to train on, 30 to validate with, 100 to test with" in new("own", "--beir", "data/own")
    splits = yaml.safe_load(Path("config/own.yaml").read_text())["datasets"]["own"]["splits"]
    assert (splits["test"]["file"], splits["graded"]["file"]) == (name, name)
    plan, _ = planned("config/own.yaml")
    own = plan.collection("own")
    assert build_collection("beir", own.spec, Path("made"), source=place)["splits"]["test"]["queries"] == 100
    assert CollectionSizes(plan, read_stated(SIZES)).of(own).queries["test"] in (99, 100)
    (place / "qrels/test.tsv").write_text("")
    files = sorted((name, "qrels/test.tsv"), key=lambda each: (each.startswith("qrels."), each))
    assert f"data/own has {' and '.join(files)}, both of test; take one of them away" in refused(
        "other", "--beir", "data/own"
    )


def test_judgments_in_a_form_that_is_not_read_are_named(bare: Path) -> None:
    place = folder({"train": judged(0, 300)})
    (place / "qrels/test.csv").write_text("q1,d1,1\n")
    message = refused("own", "--beir", "data/own")
    assert "(there: corpus.jsonl.gz, qrels, qrels/test.csv, qrels/train.tsv, queries.jsonl.gz)" in message


def test_queries_that_validate_do_not_count_as_met_by_training(bare: Path) -> None:
    """As in the table: of 100 training queries 10 are held out, and each has one test query with its passage."""
    qrels = {split: [f"q{first + n}\td{n}\t1" for n in range(100)] for split, first in (("train", 0), ("test", 300))}
    place = folder(qrels)
    rows = (json.dumps({"_id": f"d{n}", "text": f"Two sentences. They are here {n}"}) for n in range(100))
    (place / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    said = "Of the test queries 90 have a relevant passage of a training query: the table tells them apart."
    assert said in new("own", "--beir", "data/own")
    own = planned("config/own.yaml")[0].collection("own")
    build_collection("beir", own.spec, Path("made"), source=place)
    assert len(overlap_with_training(Collection(Path("made")), "test").grades) == 90


def test_what_is_dropped_is_left_out(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": [*judged(300, 400), "q301\td99\t1"]})
    new("Own", "--beir", "data/own", "--drop")
    assert yaml.safe_load(Path("config/Own.yaml").read_text())["datasets"]["Own"]["unknown_judgments"] == "drop"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Source]:
    """`ir_datasets_source`, under the library's own home."""
    import ir_datasets

    monkeypatch.setattr("encore.commands.new.from_ir_datasets.offline", lambda data_root: ir_datasets.load)
    return partial(ir_datasets_source, data_root=Path("data"))


def test_ms_marco_is_tested_on_its_small_part_and_counted_by_what_is_judged(library: Callable[..., Source]) -> None:
    found = library("msmarco-passage", zero_shot=False)
    assert found.given == {"train": {"id": "msmarco-passage/train/judged"}, "test": {"id": "msmarco-passage/dev/small"}}
    assert found.queries == {"train": 502_939 - 400, "valid": 400, "test": 6980}
    assert library("mmarco/de", zero_shot=True).given == {"test": {"id": "mmarco/de/dev/small"}}
    assert library("mmarco/de", zero_shot=False).queries["train"] <= 532_761, "of 808,731 queries, no more are judged"
    assert library("msmarco-passage/dev", zero_shot=True).given == {"test": {"id": "msmarco-passage/dev/judged"}}
    second = library("msmarco-passage-v2", zero_shot=False).given
    assert {split: each["id"].rpartition("/")[2] for split, each in second.items()} == {
        **{"train": "train", "test": "dev1", "valid": "dev2"},
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "beir/arguana",
            "no judgments to train on, only test; evaluate models that learned elsewhere, with --zero-shot",
        ),
        ("clinicaltrials/2021", "(below it: clinicaltrials/2021/trec-ct-2021) has no judgments to test on"),
        ("wapo/v2/trec-news-2018", "queries of wapo/v2/trec-news-2018 have query_id, doc_id, url, and none is a text"),
    ],
)
def test_what_ir_datasets_lacks_is_said_without_files_to_add(
    name: str, message: str, library: Callable[..., Source]
) -> None:
    with pytest.raises(EncoreError) as caught:
        library(name, zero_shot=name != "beir/arguana")
    assert message in str(caught.value)
    assert ".tsv" not in str(caught.value)


DEFAULT, CATALOGUE = read_run(ROOT / "config/config.yaml"), load_catalogue(ROOT / "config")
GRADED = [  # the least grade that is relevant; that of other sets of several grades is 1
    ("antique", 3),
    ("msmarco-passage/trec-dl-2019", 2),
    ("msmarco-passage/trec-dl-2020/judged", 2),
    ("msmarco-passage/trec-dl-hard", 2),
    ("msmarco-passage-v2/trec-dl-2021", 2),
    ("msmarco-passage-v2/trec-dl-2022/judged", 2),
    ("msmarco-document/trec-dl-2019", 1),
    ("cord19/trec-covid", 1),
    ("cranfield", 1),
]


@pytest.mark.parametrize(("name", "least"), GRADED)
def test_a_run_says_from_which_grade_on_a_passage_is_relevant(
    name: str, least: int, library: Callable[..., Source]
) -> None:
    text = run_text("own", library(name, zero_shot=True), ("config/config.yaml", DEFAULT), CATALOGUE)
    entry = yaml.safe_load(text)["datasets"]["own"]
    assert load_kind("ir-datasets").fields.model_validate(entry).resolve()["id"] == name
    (split,) = entry["splits"].values()
    assert split["measures"] == {
        **{"nDCG@10": "nDCG@10", "RR@10": f"RR(rel={least})@10"},
        **{f"R@{ranks}": f"R(rel={least})@{ranks}" for ranks in (100, 1000)},
    }
    if name == "cranfield":  # its files have 1 as the best, the library's definitions 4
        assert split["grades"] == {-1: -1, 1: 4, 2: 3, 3: 2, 4: 1}
        assert "4 (128: References which are a complete answer to the question.)" in text
    if name == "antique":
        assert "1 (1,642: It is completely out of context" in text


def test_grades_that_mean_something_else_are_shown_where_one_is_relevant(library: Callable[..., Source]) -> None:
    said = list(about(library("bright/aops", zero_shot=True)))
    assert "-100 (622,756: Excluded from evaluation), 1 (524: Relevant)" in said[1]


def test_what_is_searched_of_a_topic_is_said(library: Callable[..., Source]) -> None:
    (note,) = library("disks45/nocr/trec-robust-2004", zero_shot=True).notes
    assert note == "A query has title, description, narrative; searched is title."


def test_an_id_of_ir_datasets_is_looked_up_without_a_network(bare: Path, library: Callable[..., Source]) -> None:
    found = library("beir/scifact", zero_shot=False)
    assert (found.passages, found.queries) == (5183, {"train": 729, "test": 300, "valid": 80})
    assert found.given == {"train": {"id": "beir/scifact/train"}, "test": {"id": "beir/scifact/test"}}
    assert not found.is_graded
    graded = library("beir/nfcorpus", zero_shot=False)
    assert graded.is_graded
    assert (graded.given["valid"], graded.held_out) == ({"id": "beir/nfcorpus/dev"}, None)
    alone = library("vaswani", zero_shot=True)
    assert (alone.given, alone.queries) == ({"test": {"id": "vaswani"}}, {"test": 93})
    done = inside.encore("new", "sci", "--ir-datasets", "beir/scifact")
    assert done.returncode == 0, done.stderr
    plan, _ = planned("config/sci.yaml")
    assert len(downloads(plan)) == 1
    assert "did you mean beir/scifact" in refused("other", "--ir-datasets", "beir/scifactt")
    assert "'Hindi' is not a code of ISO 639; give the language's (BM25 analyses en ar bn" in refused(
        "other", "--ir-datasets", "beir/scifact", "--language", "Hindi"
    )


@pytest.mark.parametrize("pack", [True, False])
def test_preflight_counts_the_files_that_are_there(bare: Path, pack: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder({"train": judged(0, 300), "test": judged(300, 400)}, text="Two sentences. They are here")
    for packed in () if pack else list(place.glob("*.gz")):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    new("own", "--beir", "data/own")
    plan, _ = planned("config/own.yaml")
    size = CollectionSizes(plan, read_stated(SIZES)).of(plan.collection("own"))
    assert size.passages.count == 40
    assert size.queries == {"train": 270.0, "valid": 30.0, "test": 100.0, "graded": 100.0}
    assert size.passages.mean == pytest.approx(6 * 1.3, rel=0.01)
    assert size.notes == []
    monkeypatch.setattr("encore.datasets.counting.READ", 400)  # the rest of a large file is estimated from a part
    again = CollectionSizes(plan, read_stated(SIZES)).of(plan.collection("own"))
    assert again.passages.count == pytest.approx(40, rel=0.0 if pack else 0.1)


def test_preflight_says_where_steps_ask_for_more_queries_than_there_are(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    new("own", "--beir", "data/own")
    done = inside.encore("preflight", "--config", "config/own.yaml")
    assert "own: train has 270 queries, and steps ask for 1,000; all are taken" in " ".join(done.stdout.split())


def test_a_published_encoder_can_stand_in_the_place_of_a_pre_training(bare: Path) -> None:
    """The lines that docs/own-collection.md adds under `scale:`."""
    folder({"test": judged(0, 100)})
    new("own", "--beir", "data/own", "--zero-shot")
    page = (ROOT / "docs/own-collection.md").read_text()
    (added,) = (block for block in re.findall(r"```yaml\n(.*?)```", page, re.S) if "replace_prefix" in block)
    text = Path("config/own.yaml").read_text()
    Path("config/own.yaml").write_text(text.replace("scale:\n", added))
    plan, jobs = planned("config/own.yaml")
    assert jobs["fetch_checkpoint"] == 1
    (model,) = (name for name in plan.made if name.startswith("results/models/costa-released+marco-bm25-"))
    assert plan.made[model].inputs["weights"].name.startswith("costa-released-s0-")


def test_files_that_cannot_be_read_are_assumed(bare: Path) -> None:
    place = folder({"train": judged(0, 300), "test": judged(300, 400)})
    new("own", "--beir", "data/own")
    (place / "corpus.jsonl.gz").write_bytes(b"no archive")
    plan, _ = planned("config/own.yaml")
    size = CollectionSizes(plan, read_stated(SIZES)).of(plan.collection("own"))
    assert any("passages unknown" in note for note in size.notes)


def encoder(place: str = "models/theirs", kind: str | None = None) -> Path:
    """A folder of sentence-transformers, as far as planning reads it: a BERT, or another type of model."""
    folder = Path(place)
    folder.mkdir(parents=True)
    config = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config |= {"max_position_embeddings": 512} | ({"model_type": kind} if kind else {})
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_text("weights")
    (folder / "tokenizer.json").write_text("{}")
    of_sentence_transformers(folder, length=128, prompts={"query": "query: "})
    return folder


def test_a_published_encoder_is_a_row_beside_bm25_and_nothing_is_trained(bare: Path) -> None:
    folder({"test": judged(0, 100)})
    place = encoder()
    printed = new("own", "--beir", "data/own", "--zero-shot", "--checkpoint", "models/theirs")
    assert "2 layers of 16, pooling mean, similarity cosine, length 128, prompt 'query: '." in printed
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert run["tables"] == {"published": ["bm25", "as-it-is"]}
    assert run["backbones"]["own-encoder"].keys() == {"start", "checkpoint", "sha256"}
    assert run["backbones"]["own-encoder"]["checkpoint"] == "./models/theirs"
    plan, jobs = planned("config/own.yaml")
    assert (jobs["start"], jobs["encode"], jobs["evaluate"]) == (1, 1, 2)
    assert not {"pretrain", "finetune", "fetch_checkpoint"} & jobs.keys()
    (start,) = (made for made in plan.made.values() if made.stage == "start")
    assert (start.source, start.spec["backbone"]["pooling"]) == ("models/theirs", "mean")
    (place / "tokenizer.json").write_text('{"changed": 1}')
    with pytest.raises(EncoreError, match=r"tokenizer\.json has the sha256"):
        planned("config/own.yaml")


def test_an_archive_becomes_a_source_with_its_digest_and_needs_no_members(bare: Path) -> None:
    folder({"test": judged(0, 100)})
    encoder()
    archive = Path(shutil.make_archive("theirs", "zip", "models"))
    said = ["own", "--beir", "data/own", "--zero-shot", "--checkpoint", "theirs.zip", "--sha256"]
    assert "theirs.zip has the sha256:" in refused(*said, "0" * 64)
    new(*said, sha256(archive))
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert run["sources"]["own-encoder"]["files"][0]["digest"] == f"sha256:{sha256(archive)}"
    fields = run["backbones"]["own-encoder"]
    assert (fields["checkpoint"], fields["hidden"], fields["query_marker"]) == ("own-encoder", 16, "query: ")
    plan, jobs = planned("config/own.yaml")
    assert jobs["fetch_source"] == 1
    (fetched,) = (made for made in plan.made.values() if made.stage == "fetch_source")
    output = f"{fetched.folder}/manifest.json"
    given = ("--config", "config/own.yaml", "--data-root", "data", "--output", output)
    done = inside.script("fetch_source", "--spec", json.dumps(fetched.spec), *given)
    assert done.returncode == 0, done.stderr
    assert checkpoints.inside(Path(fetched.folder)).name == "theirs"


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (None, ["bm25", "as-it-is", "none", "control", "mlm", "ict", "bow", "costa"]),
        ("roberta", ["bm25", "as-it-is", "none"]),
    ],
)
def test_rows_are_trained_from_it_with_the_papers_rates(bare: Path, kind: str | None, rows: list[str]) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    encoder(kind=kind)
    new("own", "--beir", "data/own", "--checkpoint", "models/theirs")
    assert yaml.safe_load(Path("config/own.yaml").read_text())["tables"] == {"published": rows}
    plan, jobs = planned("config/own.yaml")
    assert jobs["finetune"] >= 1
    step = plan.resolve.step(StepName("marco-bm25"))
    assert (step.length, step.query_length) == (128, 128)
    assert step.learning_rate == plan.catalogue.steps["marco-bm25"]["learning_rate"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--checkpoint", "models/nothing/here"), "there is no models/nothing/here"),
        (("--checkpoint", "data/own/corpus.jsonl.gz"), "is damaged"),
        (("--checkpoint", "models/theirs", "--sha256", "0" * 64), "the sha256 of its weights is"),
        (("--sha256", "0" * 64), "--sha256 is of a --checkpoint"),
    ],
)
def test_what_is_no_encoder_is_refused(bare: Path, words: tuple[str, ...], message: str) -> None:
    folder({"test": judged(0, 100)})
    encoder()
    assert message in refused("own", "--beir", "data/own", "--zero-shot", *words)


def test_queries_that_are_passages_too_have_their_own_kept_out(bare: Path) -> None:
    """By id and text; an id alone, as in collections that count from 1, says nothing."""
    place = folder({"train": judged(0, 300), "test": judged(300, 400)})
    rows = [{"_id": f"q{n}", "title": "Two", "text": f"words {n}" if n < 25 else "another text"} for n in range(40)]
    packed = gzip.decompress((place / "corpus.jsonl.gz").read_bytes()).decode()
    text = "\n".join([packed, *map(json.dumps, rows)])
    (place / "corpus.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    assert "25 queries are passages, too: a query is neither scored by itself nor its own negative." in new(
        "own", "--beir", "data/own"
    )
    assert yaml.safe_load(Path("config/own.yaml").read_text())["datasets"]["own"]["ignore_identical_ids"] is True
    plan, _ = planned("config/own.yaml")
    everything_declared(plan)
    for stage in ("negatives", "finetune", "evaluate"):
        specs = [each.spec for each in plan.made.values() if each.stage == stage]
        assert specs
        assert all(spec["ignore_identical_ids"] for spec in specs)


def test_a_few_training_queries_are_enough_with_a_dev_file(bare: Path) -> None:
    folder({"train": judged(0, 40), "dev": judged(40, 60), "test": judged(300, 330)})
    assert "40 queries to train on, 20 to validate with, 30 to test with" in new("own", "--beir", "data/own")


def test_copies_are_counted_and_kept_out_of_negatives(bare: Path) -> None:
    """Every passage twice, under another id."""
    place = folder({"train": judged(0, 200), "test": judged(200, 250)})
    rows = [json.loads(line) for line in gzip.decompress((place / "corpus.jsonl.gz").read_bytes()).splitlines()]
    twice = [*rows, *({**row, "_id": f"copy-{row['_id']}", "text": row["text"].upper()} for row in rows)]
    (place / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, twice)).encode()))
    said = "40 passages repeat the text of an earlier one: copies of a relevant passage are left out of negatives."
    assert said in new("own", "--beir", "data/own")
    assert yaml.safe_load(Path("config/own.yaml").read_text())["datasets"]["own"]["ignore_copies"] is True
    plan, _ = planned("config/own.yaml")
    everything_declared(plan)
    for stage in ("negatives", "finetune"):
        specs = [each.spec for each in plan.made.values() if each.stage == stage]
        assert specs
        assert all(spec["ignore_copies"] for spec in specs)


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
        *("wikipedia", "wikipedia-bookcorpus", "zero-shot"),
    }
    _, jobs = planned("config/own.yaml")
    assert jobs["pretrain"]
    assert run["datasets"]["own"]["splits"].keys() == {"test"}


def test_grades_are_counted_with_their_meaning(bare: Path, library: Callable[..., Source]) -> None:
    folder({"test": [*judged(0, 30), *judged(30, 50, 2), *judged(50, 55, 0)]})
    said = "Test judgments by grade: 0 (5), 1 (30), 2 (20). Relevant are those from 1 on (rel=)."
    assert said in new("own", "--beir", "data/own", "--zero-shot")
    assert library("beir/arguana", zero_shot=True).fields["ignore_identical_ids"] is True
    korean = library("miracl/ko", zero_shot=False).fields
    assert (korean["language"], korean["ignore_copies"]) == ("ko", True), "texts are not known before the download"
    assert ir_datasets_source("mmarco/v2/dt", Path("data"), zero_shot=True).fields["language"] == "nl", "not ISO's code"


def test_queries_in_another_language_than_passages_are_said(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ir_datasets

    monkeypatch.setattr("encore.commands.new.from_ir_datasets.offline", lambda data_root: ir_datasets.load)
    known = {name: ir_datasets_source(name, Path("data"), zero_shot=True) for name in ("neumarco/fa", "istella22")}
    unsaid = ("neuclir/1/multi/trec-2023", None), ("neuclir/1/multi/trec-2023", "zh"), ("beir/scifact", None)
    notes = [ir_datasets_source(name, Path("data"), language, zero_shot=True).notes for name, language in unsaid]
    assert [any("read as English" in note for note in each) for each in notes] == [True, False, False]
    about = [[note for note in each.notes if "BM25" in note] for each in known.values()]
    ends = "BM25 reads them like passages, and finds only words that both write alike."
    assert about == [[f"The queries are in another language (en): {ends}"], []], "of the last only queries have one"
    assert [each.fields["language"] for each in known.values()] == ["fa", "it"]
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text="वह घर गया। वह सोया।")
    said = f"queries are in another script: {ends}"
    assert f"The {said}" in new("own", "--beir", "data/own", "--language", "hi")
    assert yaml.safe_load(Path("config/own.yaml").read_text())["datasets"]["own"]["note"] == f"own: {said}", (
        "for tables"
    )


def raw(train: int = 60, dev: int = 20, words: str = "Two sentences. They are here") -> Path:
    """Files as Pyserini and trec_eval have them: 12 passages, queries that train, validate and test."""
    place = Path("raw")
    (place / "docs").mkdir(parents=True)
    rows = (json.dumps({"id": f"{n:03}", "contents": f"{words} {n}"}) for n in range(12))
    (place / "docs/docs.jsonl").write_text("\n".join(rows))
    splits = {"train": (0, train), "dev": (train, train + dev), "test": (80, 100)}
    for split, (first, last) in splits.items():
        if first < last:
            (place / f"topics.{split}.tsv").write_text("".join(f"{n}\t{words} {n}\n" for n in range(first, last)))
            (place / f"qrels.{split}.txt").write_text("".join(f"{n} 0 {n % 12:03} 1\n" for n in range(first, last)))
    return place


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
    said = "60 training queries list negatives, which stand in the place of BM25's (listed_negatives)."
    assert said in new("own", "--from", "raw", "--config", "config/nano.yaml")
    entry = yaml.safe_load(Path("config/own.yaml").read_text())["datasets"]["own"]
    assert entry["listed_negatives"] is True
    plan, jobs = planned("config/own.yaml")
    assert jobs["negatives_from_dataset"] == 1
    trained = [each for each in plan.made.values() if each.stage == "finetune"]
    stages = {each.spec["step"]["negatives"]: each.inputs["negatives"].stage for each in trained}
    assert stages == {"bm25": "negatives_from_dataset", "mined": "negatives"}
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


def signs(count: int, first: int = 0x4E00) -> str:
    return "".join(chr(first + number) for number in range(count))


def test_a_vocabulary_has_room_for_the_characters_of_the_language(bare: Path) -> None:
    """The default's has 2,048 pieces, in which the job of a tokenizer for 2,600 ideographs would end."""
    raw(words=signs(2600))
    assert "Vocabularies have 4,096 pieces: 2,6" in new("own", "--from", "raw", "--language", "zh")
    plan, _ = planned("config/own.yaml")
    made = [each.spec for each in plan.made.values() if each.stage == "tokenizer"]
    assert [spec["vocabulary"] for spec in made] == [4096]
    assert {each.spec["backbone"]["vocabulary"] for each in plan.made.values() if each.stage == "start"} == {4096}
    assert "62% of the queries' tokens" in refused("latin", "--beir", "data/own", "--language", "en"), "1,000 are kept"


def test_queries_of_characters_that_nothing_teaches_are_refused(bare: Path) -> None:
    """40 of 100 queries: the job that makes tokens would refuse them."""
    place = raw(words=signs(200))
    for split in ("dev", "test"):
        topics = place / f"topics.{split}.tsv"
        topics.write_text("".join(f"{line.partition(chr(9))[0]}\t{signs(200, 0x6000)}\n" for line in topics.open()))
    done = inside.encore("new", "own", "--from", "raw", "--language", "zh")
    assert "% of the queries' tokens have characters that a vocabulary of the passages and " in done.stderr
    raw_again = Path("raw/topics.dev.tsv")
    raw_again.write_text(raw_again.read_text().replace(signs(200, 0x6000), signs(200)))
    shutil.rmtree("data/own")
    new("own", "--from", "raw", "--language", "zh")


def test_words_without_blanks_are_long_enough_for_objectives(bare: Path) -> None:
    """Two phrases of 280 letters of Thai are more pieces than COSTA asks for, and by blanks they are two words."""
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text=" ".join(["กขคงจฉชซฌญ" * 28] * 2))
    new("own", "--beir", "data/own", "--language", "th")
    (rows,) = yaml.safe_load(Path("config/own.yaml").read_text())["tables"].values()
    assert "costa" in rows


@pytest.mark.parametrize("others", [(), ("--zero-shot",), ("--checkpoint", "models/theirs"), ("--pretrain",)])
def test_a_language_that_nobody_names_is_asked_for(others: tuple[str, ...], bare: Path) -> None:
    """As English its marks would be lost and its sentences never end, of which no later count says a word."""
    raw(words=signs(40, first=0x915))
    encoder()
    inside.encore("convert", "raw", "data/own")
    asked = "100% of the letters are not Latin; name the language of the texts, such as --language hi"
    assert asked in refused("own", "--beir", "data/own", *others)
    assert not Path("config/own.yaml").exists()


def test_zero_shot_search_of_a_script_that_no_model_knows_is_refused(bare: Path) -> None:
    raw(words=signs(40, first=0x915))
    message = "100% of the letters are not Latin, and the other run's models learn from Latin ones"
    done = inside.encore("new", "own", "--from", "raw", "--language", "hi", "--zero-shot")
    assert message in done.stderr
    assert message in refused("own", "--beir", "data/own", "--zero-shot", "--language", "en")
    encoder()
    new("own", "--beir", "data/own", "--zero-shot", "--language", "hi", "--checkpoint", "models/theirs")
