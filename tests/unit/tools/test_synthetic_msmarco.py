"""Made-up passages with MS MARCO's counts: the same bytes again, Zipf's words, and a signal that BM25 finds."""

import gzip
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from encore.errors import EncoreError
from tools import synthetic_msmarco
from tools.synthetic_msmarco import COUNTS, PASSAGES, STOP


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    synthetic_msmarco.write(folder, 3000)
    return folder


def rows(path: Path) -> dict[str, list[str]]:
    with gzip.open(path, "rt") as file:
        return {row["_id"]: row["text"].rstrip(".").split() for row in map(json.loads, file)}


def test_equal_arguments_give_equal_bytes_and_another_seed_others(folder: Path, tmp_path: Path) -> None:
    files = [path.relative_to(folder) for path in folder.rglob("*.*")]
    assert len(files) == 4
    for seed in (0, 1):
        synthetic_msmarco.write(tmp_path / str(seed), 3000, seed)
    assert all((folder / file).read_bytes() == (tmp_path / "0" / file).read_bytes() for file in files)
    assert all((folder / file).read_bytes() != (tmp_path / "1" / file).read_bytes() for file in files)


def test_a_passage_does_not_depend_on_their_number(folder: Path, tmp_path: Path) -> None:
    synthetic_msmarco.write(tmp_path, 500)
    few, many = (rows(each / "corpus.jsonl.gz") for each in (tmp_path, folder))
    assert few == dict(list(many.items())[:500])


def test_counts_are_the_share_of_ms_marco_s(folder: Path) -> None:
    queries = rows(folder / "queries.jsonl.gz")
    for split, (of_queries, of_judgments) in COUNTS.items():
        pairs = [line.split("\t") for line in (folder / f"qrels/{split}.tsv").read_text().splitlines()[1:]]
        assert len({query for query, _, _ in pairs}) == round(of_queries * 3000 / PASSAGES)
        assert len(pairs) == round(of_judgments * 3000 / PASSAGES)
        assert {query for query, _, _ in pairs} == {name for name in queries if name.startswith(split)}
    assert COUNTS["train"] == (502_939, 532_761)


def test_words_are_as_frequent_as_in_text(folder: Path) -> None:
    """The commonest are stop words, half of all words are among 300, and every third is met once."""
    texts = rows(folder / "corpus.jsonl.gz").values()
    counted = Counter(word for text in texts for word in text)
    ordered = [count for _, count in counted.most_common()]
    assert next(iter(counted.most_common(1)))[0] == "the"
    assert set(STOP.split()) < set(counted)
    assert 0.4 < sum(ordered[:300]) / sum(ordered) < 0.75
    assert ordered.count(1) > len(ordered) / 3
    assert sum(ordered) / 3000 == pytest.approx(56, rel=0.03)


def test_a_query_shares_more_words_with_its_passage_than_with_others(folder: Path) -> None:
    passages, queries = rows(folder / "corpus.jsonl.gz"), rows(folder / "queries.jsonl.gz")
    lines = (folder / "qrels/train.tsv").read_text().splitlines()[1:]
    pairs = [line.split("\t")[:2] for line in lines]
    own = [len({*queries[query]} & {*passages[passage]}) for query, passage in pairs]
    others = [len({*queries[query]} & {*passages[other]}) for (query, _), (_, other) in pairwise(pairs)]
    assert sum(own) > 2 * sum(others) > 0


def test_a_size_without_queries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="--passages 99: too few"):
        synthetic_msmarco.write(tmp_path / "texts", 99)
    assert not (tmp_path / "texts").exists()
