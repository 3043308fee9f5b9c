"""What `encore new` finds in a folder, and what it refuses there."""

import gzip
import json
from pathlib import Path

import pytest
import yaml

from encore.commands.preflight.sizes import SIZES, CollectionSizes, read_stated
from encore.data.collection import Collection
from encore.data.copies import overlap_with_training
from encore.datasets.kinds import build_collection
from encore.products.targets import everything_declared
from tests.support.own_folder import folder, judged, new, planned, refused
from tests.support.quick_first import quick_first


@pytest.mark.slow
def test_a_folder_of_no_named_language_is_said_to_be_read_as_english(bare: Path) -> None:
    """German has the letters of English, so only the user can tell."""
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text="Der Hund läuft über die Straße. Kinder spielen")
    said = "The texts are read as English, since no --language is named."
    assert said in new("own", "--beir", "data/own").splitlines()
    assert f"# {said}" in Path("config/own.yaml").read_text().splitlines()
    for language in ("de", "en"):
        assert said not in new(f"own-{language}", "--beir", "data/own", "--language", language)
    assert "Most letters are Latin, although --language is ar: is" in new(
        "ar", "--beir", "data/own", "--language", "ar"
    )


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


def test_queries_that_teach_nothing_are_not_counted_as_training(bare: Path) -> None:
    folder({"train": [*judged(0, 200), *judged(200, 300, 0)], "test": judged(300, 400)})
    assert "180 queries to train on, 20 to validate with" in new("own", "--beir", "data/own")


BAD = [
    (
        {"train": judged(0, 300), "dev": judged(300, 400), "test": judged(300, 400)},
        (),
        "test.tsv, line 2: 100 queries of split 'test' also validate",
    ),
    ({"train": judged(0, 300, 0), "test": judged(300, 400)}, (), "train.tsv has no grade above 0"),
    ({"train": [*judged(0, 50), *judged(50, 300, 0)], "test": judged(300, 400)}, (), "50 training queries are too few"),
    ({"train": judged(0, 300), "test": judged(0, 1)}, (), "test.tsv, line 2: 1 queries of split 'test' also train"),
    ({"train": judged(0, 300), "test": judged(300, 301)}, (), "test queries: 1, all or nearly all of one cluster"),
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


@pytest.mark.parametrize("name", quick_first(["qrels/test.txt", "qrels/test.tsv.gz", "qrels.test.tsv"]))
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
    assert CollectionSizes(plan, read_stated(SIZES)).of(own).queries["test"] == 100
    (place / "qrels/test.tsv").write_text("")
    files = sorted((name, "qrels/test.tsv"), key=lambda each: (each.startswith("qrels."), each))
    assert f"data/own has {' and '.join(files)}, both of test; take one of them away" in refused(
        "other", "--beir", "data/own"
    )


def test_judgments_to_validate_with_are_said_to_test_where_no_others_do(bare: Path) -> None:
    place = folder({"train": judged(0, 300), "dev": judged(300, 400)})
    said = "Tested on dev (qrels/dev.tsv), since no judgments are called test."
    assert new("own", "--beir", "data/own").splitlines()[1] == said, "first of all that is said of the collection"
    (place / "qrels/test.tsv").write_bytes((place / "qrels/dev.tsv").read_bytes())
    assert "Tested on" not in new("two", "--beir", "data/own", "--zero-shot")


def test_judgments_that_no_split_takes_are_named(bare: Path) -> None:
    place = folder({"test": judged(300, 400), "dev.small": judged(0, 9), "test-2": judged(0, 9)})
    (place / "qrels/.hidden").write_text("")
    said = new("own", "--beir", "data/own", "--zero-shot")
    assert "Not read: qrels/test-2.tsv (no split of this run takes it).\n" in said
    assert "Not read: qrels/dev.small.tsv (judgments are qrels/SPLIT.tsv or .txt; --from reads others).\n" in said


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


def unpacked(place: Path, end: str = "", query: str = "") -> None:
    """Write a folder's texts without compression, with ``query`` as one more row, and end every file with ``end``."""
    for name, more in (("corpus", ""), ("queries", query)):
        packed = place / f"{name}.jsonl.gz"
        packed.with_suffix("").write_text(f"{gzip.decompress(packed.read_bytes()).decode()}\n{more}{end}")
        packed.unlink()
    for path in place.glob("qrels/*"):
        path.write_text(path.read_text() + end)


@pytest.mark.parametrize("flag", ["--beir", "--from"])
def test_blank_lines_at_the_end_of_every_file_are_read(bare: Path, flag: str) -> None:
    unpacked(folder({"train": judged(0, 300), "test": judged(300, 400)}), end="\n\n")
    assert "270 queries to train on, 30 to validate with, 100 to test with" in new("blank", flag, "data/own")


@pytest.mark.parametrize(("flag", "end"), [("--beir", ", and its title is not searched"), ("--from", "")])
def test_a_query_with_a_title_and_no_text_is_refused(bare: Path, flag: str, end: str) -> None:
    query = json.dumps({"_id": "q400", "title": "lift of a wing", "text": ""})
    unpacked(folder({"train": judged(0, 300), "test": judged(300, 400)}), query=query)
    said = refused("titled", flag, "data/own")
    assert f"queries.jsonl, line 401: 'q400' has no text{end}; give it one or remove the row" in said


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


def test_grades_are_counted(bare: Path) -> None:
    folder({"test": [*judged(0, 30), *judged(30, 50, 2), *judged(50, 55, 0)]})
    said = "Test judgments by grade: 0 (5), 1 (30), 2 (20). Relevant are those from 1 on (rel=)."
    assert said in new("own", "--beir", "data/own", "--zero-shot")


def test_queries_in_another_script_than_passages_are_said(bare: Path) -> None:
    ends = "BM25 reads them like passages, and finds only words that both write alike."
    folder({"train": judged(0, 300), "test": judged(300, 400)}, text="वह घर गया। वह सोया।")
    said = f"queries are in another script: {ends}"
    assert f"The {said}" in new("own", "--beir", "data/own", "--language", "hi")
    assert yaml.safe_load(Path("config/own.yaml").read_text())["datasets"]["own"]["note"] == f"own: {said}", (
        "for tables"
    )


def test_a_folder_that_is_missing_is_named(bare: Path) -> None:
    assert "there is no folder data/own; name another one" in refused("own", "--beir", "data/own")
