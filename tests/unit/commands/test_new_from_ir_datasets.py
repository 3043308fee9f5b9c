"""`encore new --ir-datasets`: what the library knows of a set, without a download."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from encore.commands.new.from_ir_datasets import ir_datasets_source
from encore.commands.new.run_text import about, run_text
from encore.commands.new.source import Source
from encore.config.run_file import read_run
from encore.datasets.kinds import load_kind
from encore.errors import EncoreError
from encore.products.catalogue import load_catalogue
from encore.products.targets import downloads
from tests.support import inside
from tests.support.own_folder import encoder, new, planned, refused

ROOT = Path(__file__).parents[3]


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
    assert found.tested == "Tested on msmarco-passage/dev/small."
    assert library("mmarco/de", zero_shot=True).given["test"] == {"id": "mmarco/de/dev/small"}
    assert library("mmarco/de", zero_shot=False).queries["train"] <= 532_761, "of 808,731 queries, no more are judged"
    assert library("msmarco-passage/dev", zero_shot=True).given == {"test": {"id": "msmarco-passage/dev/judged"}}
    second = library("msmarco-passage-v2", zero_shot=False).given
    assert {split: each["id"].rpartition("/")[2] for split, each in second.items()} == {
        **{"train": "train", "test": "dev1", "valid": "dev2"}
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
    source = library(name, zero_shot=True)
    text = run_text("own", source, ("config/config.yaml", DEFAULT), CATALOGUE)
    entry = yaml.safe_load(text)["datasets"][source.name]
    assert load_kind("ir-datasets").fields.model_validate(entry).resolve()["id"] == name
    split = entry["splits"]["test"]
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
    assert inside.encore("new", "drop", "--ir-datasets", "beir/scifact", "--drop").returncode == 0
    assert planned("config/drop.yaml")[0].collection("drop").spec["unknown_judgments"] == "drop"
    assert "did you mean beir/scifact" in refused("other", "--ir-datasets", "beir/scifactt")
    assert "'Hindi' is not a code of ISO 639; give the language's (BM25 analyses en ar bn" in refused(
        "other", "--ir-datasets", "beir/scifact", "--language", "Hindi"
    )


def test_what_was_encoded_zero_shot_is_not_encoded_again(bare: Path, library: Callable[..., Source]) -> None:
    encoder()
    for name, words in (("first", ("--zero-shot",)), ("second", ("--rows", "none"))):
        said = new(name, "--ir-datasets", "beir/scifact", "--checkpoint", "models/theirs", *words)
    assert "config/first.yaml has the same texts and encoder: what is made of them is used by both." in said
    first, second = (planned(f"config/{name}.yaml")[0] for name in ("first", "second"))
    assert first.made.keys() < second.made.keys(), "the model as it is, its vectors, runs and scores"
    assert [each.stage for each in first.made.values()].count("encode") == 1
    trained, tested = (library("msmarco-qna", zero_shot=zero_shot).given for zero_shot in (False, True))
    assert trained == tested, "what trains is downloaded for the passages anyway"


@pytest.mark.usefixtures("bare")
def test_zero_shot_search_of_a_language_in_other_letters_is_refused() -> None:
    done = inside.encore("new", "other", "--ir-datasets", "miracl/zh", "--zero-shot")
    assert "not Latin, and the other run's models learn from Latin ones; add training queries" in done.stderr
    assert not Path("config/other.yaml").exists()
    assert inside.encore("new", "other", "--ir-datasets", "miracl/zh").returncode == 0


def test_an_id_tells_its_language_and_what_is_ignored(library: Callable[..., Source]) -> None:
    assert library("beir/arguana", zero_shot=True).fields["ignore_identical_ids"] is True
    korean = library("miracl/ko", zero_shot=False).fields
    assert (korean["language"], korean["ignore_copies"]) == ("ko", True), "texts are not known before the download"
    assert library("mmarco/v2/dt", zero_shot=True).fields["language"] == "nl", "not ISO's code"


@pytest.mark.parametrize(
    ("name", "language", "is_said"),
    [
        ("neuclir/1/multi/trec-2023", None, True),
        ("neuclir/1/multi/trec-2023", "zh", False),
        ("beir/scifact", None, False),
    ],
)
def test_an_id_that_tells_no_language_is_said_to_be_read_as_english(
    library: Callable[..., Source], name: str, language: str | None, is_said: bool
) -> None:
    assert (
        "The texts are read as English" in " ".join(library(name, language=language, zero_shot=True).notes)
    ) is is_said


def test_an_id_whose_queries_are_in_another_language_than_its_passages_is_said(library: Callable[..., Source]) -> None:
    known = {name: library(name, zero_shot=True) for name in ("neumarco/fa", "istella22")}
    about = [[note for note in each.notes if "BM25" in note] for each in known.values()]
    ends = "BM25 reads them like passages, and finds only words that both write alike."
    assert about == [[f"The queries are in another language (en): {ends}"], []], "of the last only queries have one"
    assert [each.fields["language"] for each in known.values()] == ["fa", "it"]
