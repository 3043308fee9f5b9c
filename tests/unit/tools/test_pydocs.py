"""pydocs: modules split, nothing learned from says a test query, and the shipped files are those that it writes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from encore.data.collection import Collection
from encore.datasets.archives import EMBEDDED_FOLDER
from encore.errors import EncoreError
from encore.storage.files import write_jsonl
from tools.pydocs import shipped, splits
from tools.pydocs.build import SALT, TRAIN_SHARE, VALID_SHARE, select, write_pydocs
from tools.pydocs.objects import Object, words


def module_of(split: str, number: int = 0) -> str:
    """The name of a module that falls into a split."""
    names = (f"lib.module{place}" for place in range(1000))
    return [name for name in names if splits.split_of(name, SALT, TRAIN_SHARE, VALID_SHARE) == split][number]


# Leaks: what a validation or test query asks must not be read while learning

LEARNED, VALID_MODULE, TEST_MODULE = (module_of(split) for split in ("train", "valid", "test"))
BODIES = [
    "Every visited node is coloured grey until all of its children were seen by the walker.",
    "The buffer grows by doubling so that appending takes constant time on average for any input.",
    "Rows of the sparse matrix are normalised in place so that the sum of their squares becomes one.",
    "A lock protects the counter because several threads may release their permits at one moment.",
    "Timestamps are compared in universal time whatever zone the user has configured on this host.",
    "Colours outside the gamut are clipped towards the white point before they are drawn on screen.",
]
TEST_QUERY = "Walk the whole graph in order of depth"
VALID_QUERY = "Merge several sorted streams into one"


def planted() -> list[Object]:
    """Six objects; those of training say the queries of validation and test, and all link to each other."""
    said = (
        f"First: {TEST_QUERY.lower()}.",
        f"{VALID_QUERY.upper()}!",
        "Merge several",
        "sorted streams into one stream.",
    )
    return [
        Object(LEARNED, "", "Handles graphs and their walks.", (BODIES[0], *said)),
        Object(LEARNED, "grow", "Append an item to the buffer.", (BODIES[1],), references=(f"{TEST_MODULE}.walk",)),
        Object(VALID_MODULE, "merge", f"{VALID_QUERY}.", (BODIES[2],), see_also=(f"{TEST_MODULE}.lock",)),
        Object(TEST_MODULE, "walk", f"{TEST_QUERY}.", (BODIES[3],), see_also=("lock", f"{LEARNED}.grow")),
        Object(TEST_MODULE, "lock", "Release one permit of the counter.", (BODIES[4],), references=("lib.walk",)),
        Object(TEST_MODULE, "clip", "Clip the colours to the gamut.", (BODIES[5],), see_also=("lock",)),
    ]


@pytest.fixture
def collection(tmp_path) -> Collection:
    write_pydocs(tmp_path, select(planted()), {})
    return Collection(tmp_path)


def sentences_of(collection: Collection) -> list[str]:
    return [text for row in collection.articles() for section in row["sections"] for text in section["sentences"]]


def says(text: str, query: str) -> bool:
    return f" {' '.join(words(query))} " in f" {' '.join(words(text))} "


def held_out_queries(collection: Collection) -> list[str]:
    queries = collection.queries()
    return [queries[name] for split in ("valid", "test") for name in collection.qrels(split)]


def linked(collection: Collection) -> set[tuple[str, str]]:
    """Pairs of document ids that the articles link."""
    rows = {row["_id"]: row for row in collection.articles()}

    def document(module: str, section: int) -> str:
        title = rows[module]["sections"][section]["title"]
        return module if title == module else f"{module}.{title}"

    return {
        (document(row["_id"], link["section"]), document(link["to"], link["anchor"]))
        for row in rows.values()
        for link in row["links"]
    }


def test_modules_are_split_whole_by_a_salted_hash(collection):
    """By ``sha1sum`` of ``encore-1:json`` and ``encore-1:heapq``, modulo 100: 29 and 88."""
    assert splits.split_of("json", SALT, 65, 7) == splits.split_of("json", SALT, 30, 7) == "train"
    assert splits.split_of("json", SALT, 29, 1) == "valid"
    assert splits.split_of("heapq", SALT, 65, 7) == "test"
    assert splits.split_of("heapq", SALT, 89, 7) == "train"
    shares = [splits.split_of(f"m{number}", SALT, 65, 7) for number in range(4000)]
    counted = [shares.count(split) / 4000 for split in ("train", "valid", "test")]
    assert counted == pytest.approx([0.65, 0.07, 0.28], abs=0.03)
    queried = {split: set(collection.qrels(split)) for split in ("train", "valid", "test")}
    assert {name.removeprefix("q:").rpartition(".")[0] for name in queried["test"]} == {TEST_MODULE}
    assert queried["valid"] == {f"q:{VALID_MODULE}.merge"}
    assert not queried["train"] & (queried["valid"] | queried["test"])
    assert set(collection.clusters().values()) <= {LEARNED, VALID_MODULE, TEST_MODULE}


def test_no_held_out_query_is_in_a_body(collection):
    bodies = " ".join(sentences_of(collection))
    assert len(held_out_queries(collection)) == 4
    for query in held_out_queries(collection):
        assert not says(bodies, query)
    assert BODIES[0] in bodies  # the rest of the sentences stays


def test_a_reworded_query_counts_as_said():
    held_out = splits.HeldOutQueries([TEST_QUERY])
    assert held_out.containing(["Kept.", "It can walk the whole graph in order of size."]) == {1}
    assert held_out.containing(["Walk the whole", "graph in order of", "depth."]) == {0, 1, 2}
    assert held_out.containing(["The whole graph is walked in another order."]) == set()


def test_no_summary_is_in_its_own_section_or_vocabulary_text(collection):
    """The vocabulary is trained on bodies and training queries: a held-out query is in neither."""
    queries = collection.queries()
    training = [queries[name] for name in collection.qrels("train")]
    held_out, readable = held_out_queries(collection), " ".join([*sentences_of(collection), *training])
    assert held_out
    assert says(readable, training[0])
    for query in held_out:
        assert not says(readable, query)
    for row in collection.articles():
        for section in row["sections"]:
            name = row["_id"] if section["title"] == row["_id"] else f"{row['_id']}.{section['title']}"
            assert not says(" ".join(section["sentences"]), queries[f"q:{name}"])


def test_links_between_held_out_queries_and_graded_targets_are_withheld(collection):
    test, valid = collection.qrels("test"), collection.qrels("valid")
    assert test[f"q:{TEST_MODULE}.walk"] == {f"{TEST_MODULE}.walk": 3, f"{TEST_MODULE}.lock": 1, f"{LEARNED}.grow": 1}
    assert valid[f"q:{VALID_MODULE}.merge"] == {f"{VALID_MODULE}.merge": 3, f"{TEST_MODULE}.lock": 1}
    pairs = linked(collection)
    for query, grades in {**test, **valid}.items():
        for target in grades:
            assert (query.removeprefix("q:"), target) not in pairs
            assert (target, query.removeprefix("q:")) not in pairs


def test_graded_queries_are_test_queries_with_two_targets(collection):
    assert collection.qrels("graded") == {f"q:{TEST_MODULE}.walk": collection.qrels("test")[f"q:{TEST_MODULE}.walk"]}


def test_no_passage_has_a_title_and_no_id_is_a_querys(collection):
    rows = list(collection.corpus())
    assert {row["title"] for row in rows} == {""}
    assert not {row["_id"] for row in rows} & set(collection.queries())


def test_the_modules_own_body_is_the_first_section(collection):
    article = next(row for row in collection.articles() if row["_id"] == LEARNED)
    assert [section["title"] for section in article["sections"]] == [LEARNED, "grow"]
    assert article["sections"][0]["sentences"][0] == BODIES[0]


# The shipped files


def test_other_versions_than_the_files_are_made_of_are_refused(tmp_path, monkeypatch):
    (tmp_path / shipped.VERSIONS).write_text(json.dumps({**shipped.versions(), "numpy": "0.1"}))
    with pytest.raises(EncoreError, match=r"numpy \S+ is installed, the files are made of 0\.1; make the environment"):
        shipped.check(tmp_path, tmp_path / "work", 1)


def test_files_that_are_not_current_are_named(tmp_path, monkeypatch):
    def write_collections(folder: Path, processes: int) -> Iterator[str]:
        write_jsonl(folder / "one/corpus.jsonl.gz", [{"_id": "d", "text": text}])
        yield "one"

    text = "a"
    monkeypatch.setattr(shipped, "write_collections", write_collections)
    shipped.write(tmp_path / "shipped", tmp_path / "work", 1)
    assert shipped.check(tmp_path / "shipped", tmp_path / "work", 1) == []
    text = "b"
    (tmp_path / "shipped/licences/sympy.txt").write_text("Do what you like.")
    assert shipped.check(tmp_path / "shipped", tmp_path / "work", 1) == [
        "pydocs.tar.xz: one/corpus.jsonl",
        "licences/sympy.txt",
    ]


@pytest.mark.slow
def test_the_shipped_files_are_current(tmp_path):
    if other := shipped.other_versions(EMBEDDED_FOLDER):
        pytest.skip(f"the docstrings are others here: {other[0]}")
    assert shipped.check(EMBEDDED_FOLDER, tmp_path, 1) == [], "write them with `python -m tools.pydocs`"
