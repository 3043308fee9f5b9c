"""What is no negative though nobody judged it: a query's own document, copies, and answers to the same question."""

import gzip
from pathlib import Path

import pytest

from encore.config.datasets import Ignored
from encore.data.collection import Collection, Judgment, topics, write_collection
from encore.data.copies import count_copies
from encore.data.judged import no_negatives
from encore.data.rankings import rank
from encore.finetuning.negatives.mining import Candidates, mine, published
from encore.finetuning.negatives.systems_file import from_systems
from encore.finetuning.negatives.triples import NegativesRequest, from_triples
from encore.storage.document_ids import DocIds

FLAGS = Ignored(ignore_identical_ids=True, ignore_copies=True)
DOCUMENTS = {"d1": "lift", "c1": "Lift", "d2": "drag", "c2": "drag", "q1": "what is lift", "n1": "nose", "n2": "tail"}
QUERIES = {"q1": "what is lift", "q2": "What is lift?", "q3": "what is drag"}
JUDGED = [Judgment("q1", "d1", 1), Judgment("q2", "n1", 2), Judgment("q3", "d2", 1), Judgment("q3", "n2", 0)]


@pytest.fixture
def own(tmp_path: Path) -> Collection:
    rows = ([{"_id": name, "title": "", "text": text} for name, text in each.items()] for each in (DOCUMENTS, QUERIES))
    write_collection(tmp_path, *rows, {"train": JUDGED})
    count_copies(tmp_path)
    return Collection(tmp_path)


def test_it_follows_from_what_the_dataset_says(own: Collection) -> None:
    assert no_negatives(own, "train", Ignored()) == {}
    assert no_negatives(own, "train", Ignored(ignore_identical_ids=True)) == {name: {name} for name in QUERIES}
    assert no_negatives(own, "train", Ignored(ignore_copies=True)) == {
        "q1": {"c1", "n1"},
        "q2": {"d1", "c1"},
        "q3": {"c2"},
    }


def test_no_source_of_negatives_draws_it(own: Collection) -> None:
    excluded = no_negatives(own, "train", FLAGS)
    every = list(DOCUMENTS)
    run = dict.fromkeys(QUERIES, rank(every, range(len(every), 0, -1)))
    free = {"q1": {"d2", "c2", "n2"}, "q2": {"d2", "c2", "q1", "n2"}, "q3": {"d1", "c1", "q1", "n1"}}
    mined, _ = mine(Candidates(run, excluded), own.qrels("train"), depth=9, keep=9)
    assert {query: set(found) for query, found in mined.items()} == free

    lines = ["query-id\tcorpus-id\trank", *(f"{query}\t{name}\t1" for query in QUERIES for name in every)]
    (own.folder / "negatives").mkdir()
    (own.folder / "negatives/train.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (own.folder / "triples.tsv").write_text("\n".join(f"{query}\td1\t{name}" for query in QUERIES for name in every))
    wanted = NegativesRequest(set(QUERIES), own.qrels("train"), DocIds.of(every), True, excluded)
    drawn, counts = from_triples(own.folder / "triples.tsv", wanted, own, keep=9, seed=0)
    assert {query: set(found) for query, found in drawn.items()} == free
    assert counts.judged == 3 * len(every) - sum(map(len, free.values()))
    with_excluded, _ = published(own, "train", topics(own, "train"), keep=9, seed=0, excluded=excluded)
    assert {query: set(found) for query, found in with_excluded.items()} == {
        **free,
        "q3": free["q3"] | {"n2"},
    }  # judged, not relevant

    scored = ", ".join(f'{{"pid": "{name}", "ce-score": 0}}' for name in every)
    each = [
        f'{{"qid": "{query}", "pos": [{{"pid": "x", "ce-score": 9}}], "neg": {{"s": [{scored}]}}}}' for query in QUERIES
    ]
    (own.folder / "systems.jsonl").write_text("\n".join(each))
    found, _ = from_systems(own.folder / "systems.jsonl", wanted, margin=1.0, per_system=9)
    assert {query: set(names) for query, names in found.items()} == free
