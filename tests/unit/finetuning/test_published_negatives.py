"""Small files in the exact forms that MS MARCO's and others' large ones are published in, read as the programs do."""

import gzip
import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from encore.data import unpacked
from encore.data.collection import Collection, Judgment, write_collection
from encore.datasets.kinds import build_collection
from encore.errors import EncoreError
from encore.finetuning.negatives.systems_file import PublishedScores, from_systems
from encore.finetuning.negatives.triples import NegativesRequest, from_triples, repaired
from encore.retrieval.doc2query import predictions
from encore.storage import tsv
from encore.storage.document_ids import DocIds
from encore.storage.tsv import read_tsv

TEXTS = [f"passage {i} says a few words" for i in range(40)]
TEXTS[7] = "it’s a café"
QUERIES = {"1000": "what is passage zero", "1001": "where is the café", "1002": "who is asked for nothing"}
MANGLED = {"it’s a café": "itâ\x80\x99s a cafÃ©", "where is the café": "where is the cafÃ©"}


@pytest.fixture
def passages(tmp_path: Path) -> Collection:
    """Forty passages with MS MARCO's kind of ids, three training queries."""
    write_collection(
        tmp_path / "collection",
        [{"_id": str(i), "title": "", "text": text} for i, text in enumerate(TEXTS)],
        [{"_id": name, "text": text} for name, text in QUERIES.items()],
        {"train": [Judgment(name, str(i), 1) for i, name in enumerate(QUERIES)]},
    )
    return Collection(tmp_path / "collection")


def wanted(collection: Collection, *queries: str) -> NegativesRequest:
    documents = dict.fromkeys(row["_id"] for row in collection.corpus())
    return NegativesRequest(set(queries or QUERIES), collection.qrels("train"), documents)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


# Blocks of columns


@pytest.mark.parametrize("name", ["x.tsv", "x.tsv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blocks_hold_every_line_once_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, end: str
) -> None:
    monkeypatch.setattr(tsv, "BYTES", 4096)
    path = write(tmp_path / name, "".join(f'{i}\tsays "{i}\t{i * i}{end}' for i in range(5000)))
    found = list(read_tsv(path, ("a", "b", "c")))
    assert len(found) > 5
    assert [block.first for block in found] == np.cumsum([1, *(len(block) for block in found[:-1])]).tolist()
    lines = [row for block in found for row in zip(*(column.to_pylist() for column in block.columns), strict=True)]
    assert lines == [(str(i), f'says "{i}', str(i * i)) for i in range(5000)]


@pytest.mark.parametrize("bad", ["1\t2", "1\t2\t3\t4", "", "1\t\t3", "\t2\t3"])
@pytest.mark.parametrize("name", ["x.tsv", "x.tsv.gz"])
def test_a_line_of_another_form_is_refused_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, bad: str
) -> None:
    monkeypatch.setattr(tsv, "BYTES", 1000)
    path = write(tmp_path / name, "1\t2\t3\n" * 3000 + bad + "\n" + "1\t2\t3\n" * 10)
    with pytest.raises(EncoreError, match="line 3001: not `a<TAB>b<TAB>c`") as refused:
        list(read_tsv(path, ("a", "b", "c")))
    assert "\n" not in str(refused.value)


def test_what_is_no_text_or_was_cut_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tsv, "BYTES", 1000)
    path = tmp_path / "x.tsv"
    path.write_bytes(b"1\t2\t3\n" * 1500 + b"1\t\xff\t3\n")
    with pytest.raises(EncoreError, match="line 1501: not UTF-8"):
        list(read_tsv(path, ("a", "b", "c")))
    packed = write(tmp_path / "x.tsv.gz", "".join(f"{i}\t2\t3\n" for i in range(5000)))
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(EncoreError, match=r"cannot be read.*replace the file"):
        list(read_tsv(packed, ("a", "b", "c")))
    with pytest.raises(EncoreError, match="is missing"):
        list(read_tsv(tmp_path / "nowhere.tsv", ("a",)))
    assert list(read_tsv(write(tmp_path / "empty.tsv", ""), ("a",))) == []


@pytest.mark.parametrize("names", [["7", "0", "12"], ["D7", "0", "12"], ["07", "7", "12"], ["7", "0", "9" * 30]])
def test_ids_are_found_whether_or_not_they_are_numbers(names: list[str]) -> None:
    asked = [*names[::-1], "5", "-1", "x"]
    assert DocIds.of(names).rows_of(pa.array(asked)).tolist() == [2, 1, 0, -1, -1, -1]
    assert DocIds.of(names).rows_of(pa.array(names * 2)).tolist() == [0, 1, 2] * 2


# Triples


def official(*triples: tuple[int, int, int], end: str = "\r\n") -> str:
    """qidpidtriples.train.full.2.tsv, whose lines end as Windows ends them."""
    return "".join(f"{query}\t{positive}\t{negative}{end}" for query, positive, negative in triples)


def test_official_triples_by_ids(tmp_path: Path, passages: Collection) -> None:
    lines = [(1000, 0, i) for i in range(30)] + [(1001, 1, 5), (1001, 1, 1), (99, 1, 5), (1001, 1, 999)]
    path = write(tmp_path / "qidpidtriples.train.full.2.tsv.gz", official(*lines))
    drawn, counts = from_triples(path, wanted(passages, "1000", "1001"), passages, keep=8, seed=0)
    assert set(drawn["1001"]) == {"5"}
    assert (len(drawn["1000"]), "0" in drawn["1000"]) == (8, False)
    assert (counts.judged, counts.unknown, counts.kept) == (2, 2, 9)
    again = write(tmp_path / "again.tsv", official(*lines[::-1], end="\n"))
    assert from_triples(again, wanted(passages, "1000", "1001"), passages, keep=8, seed=0)[0] == drawn


def test_official_triples_by_texts_are_the_same_ones(tmp_path: Path, passages: Collection) -> None:
    """triples.train.small.tsv: texts, some in the wrong encoding, as no query and no passage of ours is any more."""
    triples = [("1000", "0", str(i)) for i in range(1, 30)] + [("1001", "1", "7"), ("1001", "1", "9")]
    said = [[QUERIES[query], TEXTS[int(positive)], TEXTS[int(negative)]] for query, positive, negative in triples]
    lines = ["\t".join(MANGLED.get(text, text) for text in line) for line in said]
    by_text = write(tmp_path / "triples.train.small.tsv", "\n".join([*lines, "who\tsays\tsuch a thing"]) + "\n")
    assert "Ã©" in by_text.read_text(encoding="utf-8")
    drawn, counts = from_triples(by_text, wanted(passages), passages, keep=5, seed=3)
    by_id = write(tmp_path / "ids.tsv", "".join("\t".join(line) + "\n" for line in triples))
    assert drawn == from_triples(by_id, wanted(passages), passages, keep=5, seed=3)[0]
    assert set(drawn["1001"]) == {"7", "9"}
    assert counts.unknown == 1


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("plain", "plain"),
        ("itâ\x80\x99s cafÃ©", "it’s café"),
        ("ð\x9f\x98\x80!", "😀!"),
        ("café", "café"),
        ("\xe0\x80\x80", "\xe0\x80\x80"),  # no character is written so
        ("Ã", "Ã"),
    ],
)
def test_characters_read_wrong_are_repaired(text: str, meant: str) -> None:
    assert repaired(text) == meant


# Negatives of several systems, and their scores


def hard(query: int, positives: list[int], **systems: list[int]) -> str:
    """A line of msmarco-hard-negatives.jsonl.gz."""
    return json.dumps({"qid": query, "pos": positives, "neg": systems})


def pickled(path: Path, scores: Any, protocol: int = 4) -> Path:
    path.write_bytes(gzip.compress(pickle.dumps(scores, protocol)))
    return path


SCORES = {1000: {0: 9.0, **{i: float(i) for i in range(1, 30)}}, 1001: {1: 5.0, 7: 2.5, 8: 1.5}, 5: {6: 1.0}}


@pytest.mark.parametrize("protocol", range(3, pickle.HIGHEST_PROTOCOL + 1))  # what Python 3 has written
@pytest.mark.parametrize("kind", [float, np.float32])
def test_scores_are_read_from_a_pickle(tmp_path: Path, protocol: int, kind: type) -> None:
    large = {q: {p: kind(s) for p, s in of.items()} for q, of in SCORES.items()}
    large |= {q: {p: kind(p / 2) for p in range(1500)} for q in range(2000, 2004)}  # more than pickle sets at once
    path = pickled(tmp_path / "scores.pkl.gz", large, protocol)
    found = PublishedScores.read(path, {"1000", "1001", "2002"})
    assert found.of("1001", [8, 1]) == [("8", 1.5), ("1", 5.0)]
    assert found.of("2002", [1499, 0]) == [("1499", 749.5), ("0", 0.0)]
    for query, passage in (("1001", 9), ("5", 6), ("2001", 1)):
        with pytest.raises(KeyError, match=f"no score of query {query} and passage {passage}"):
            found.of(query, [passage])


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("called",)


STRANGE = [{1: {2: Evil()}}, Evil(), [1, 2], {1: 2.0}, {}, {1000: {1: "text"}}, {1000: {1: None, 2: 3.0}}, 3]


@pytest.mark.parametrize(("scores", "cut"), [*((each, None) for each in STRANGE), (SCORES, -40)])
def test_a_pickle_of_anything_else_is_refused_and_calls_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scores: Any, cut: int | None
) -> None:
    path = pickled(tmp_path / "scores.pkl.gz", scores)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(EncoreError, match=r"scores.pkl.gz (does not hold|has no score)"):
        PublishedScores.read(path, QUERIES)
    assert "called" not in capsys.readouterr().out


def test_systems_take_their_scores_from_the_file_next_to_them(tmp_path: Path, passages: Collection) -> None:
    lines = [
        hard(1000, [0], bm25=[7, 6, 5, 4], tas_b=[29, 5, 3, 2, 1]),
        hard(1001, [1], bm25=[7, 8], tas_b=[1]),
        hard(5, [], bm25=[6]),
    ]
    path = write(tmp_path / "msmarco-hard-negatives.jsonl.gz", "\n".join(lines) + "\n")
    scores = PublishedScores.read(pickled(tmp_path / "scores.pkl.gz", SCORES), QUERIES)
    drawn, counts = from_systems(path, wanted(passages), scores, margin=3.0, per_system=2)
    assert drawn == {"1000": {"6": 2, "5": 3, "3": 3, "2": 4}, "1001": {"8": 2}, "1002": {}}
    assert (counts.judged, counts.unknown, counts.without) == (1, 1, 1)
    write(path, "\n".join([*lines[:1], hard(1001, [1], bm25=[9])]))
    with pytest.raises(EncoreError, match=r"line 2: .*no score of query 1001 and passage 9"):
        from_systems(path, wanted(passages), scores, margin=3.0, per_system=2)


# Predicted queries


def samples(folder: Path, parts: Iterable[int], count: int) -> Path:
    """predicted_queries_topk_sampling.zip, unpacked: of each sample and part of the corpus a file."""
    done = 0
    for part, size in enumerate(parts):
        for sample in range(count):
            said = "".join(f"query {sample} of {done + i}\n" for i in range(size))
            write(folder / f"predicted_queries_topk_sample{sample:03d}.txt{part:03d}-1004000", said)
        done += size
    (folder / "manifest.json").write_text("{}")
    return folder


def test_samples_are_joined_part_by_part_in_the_corpus_order(tmp_path: Path) -> None:
    folder = samples(tmp_path / "source", (5, 5, 2), 8)
    names = [str(i) for i in range(12)]
    found = list(predictions.predicted(folder, names, samples=4))
    assert found == [(name, [f"query {sample} of {name}" for sample in range(4)]) for name in names]
    assert [len(queries) for _, queries in predictions.predicted(folder, names)] == [8] * 12
    with pytest.raises(EncoreError, match="lacks sample 8 of part 0"):
        list(predictions.predicted(folder, names, samples=9))
    with pytest.raises(EncoreError, match="ends after line 12, and passage 12 has no predictions"):
        list(predictions.predicted(folder, [*names, "12"], samples=4))
    with pytest.raises(EncoreError, match="line 12: the corpus has 11 passages"):
        list(predictions.predicted(folder, names[:-1], samples=4))


def test_parts_that_are_missing_or_cut_are_refused(tmp_path: Path) -> None:
    folder = samples(tmp_path / "source", (5, 5), 2)
    short = folder / "predicted_queries_topk_sample001.txt001-1004000"
    short.write_text("query\n" * 4)
    with pytest.raises(EncoreError, match=r"sample001.txt001-1004000 ends before .*sample000.txt001"):
        list(predictions.predicted(folder, map(str, range(10))))
    short.unlink()
    with pytest.raises(EncoreError, match="lacks sample 1 of part 1"):
        list(predictions.predicted(folder, map(str, range(10))))


def test_one_file_of_a_source_is_read_as_ever(tmp_path: Path) -> None:
    write(tmp_path / "predictions.txt.gz", "one two\nthree\n")
    assert list(predictions.predicted(tmp_path, ["a", "b"])) == [("a", ["one two"]), ("b", ["three"])]
    write(tmp_path / "more.txt", "x\n")
    with pytest.raises(EncoreError, match=r"needs one file .* and has more.txt, predictions.txt.gz"):
        list(predictions.predicted(tmp_path, ["a", "b"]))


# Titles


def titles(folder: Path, text: str) -> Path:
    """RocketQA's archive, unpacked: marco/para.txt and marco/para.title.txt."""
    write(folder / "marco/para.txt", "0\tanother spelling\n")
    write(folder / "marco/para.title.txt", text)
    return folder


def titled(folder: Path, source: Path, base: Collection) -> dict[str, Any]:
    spec = {"kind": "with-titles", "titles": "msmarco-titles", "file": "para.title.txt", "splits": ["train"]}
    return build_collection("with-titles", spec, folder, base=base.folder, sources={"msmarco-titles": source})


def test_passages_get_their_titles_and_keep_all_else(tmp_path: Path, passages: Collection) -> None:
    source = titles(tmp_path / "source", "39\tLast\n0\tFirst page\n7\tFirst page\n8\t\n123\tOf nothing\n")
    counts = titled(tmp_path / "titled", source, passages)
    found = Collection(tmp_path / "titled")
    said = {row["_id"]: row["title"] for row in found.corpus() if row["title"]}
    assert said == {"0": "First page", "7": "First page", "39": "Last"}
    assert [(row["_id"], row["text"]) for row in found.corpus()] == [(str(i), text) for i, text in enumerate(TEXTS)]
    assert (found.queries(), found.qrels("train")) == (passages.queries(), passages.qrels("train"))
    assert (counts["titled"], counts["without_title"], counts["titles_of_no_passage"]) == (3, 37, 1)
    assert dict(found.texts())["7"] == (f"First page {TEXTS[7]}",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0\tA\n1 B\n", "line 2: not `id<TAB>title`: '1 B'"),
        ("0\tA\n0\tB\n", "line 2: a second title of '0'"),
        ("x\tA\n", "has no title of a passage"),
    ],
)
def test_titles_of_another_form_are_refused(tmp_path: Path, passages: Collection, text: str, says: str) -> None:
    with pytest.raises(EncoreError, match=says) as refused:
        titled(tmp_path / "titled", titles(tmp_path / "source", text), passages)
    assert "\n" not in str(refused.value)


def test_titles_need_their_source(tmp_path: Path, passages: Collection) -> None:
    with pytest.raises(EncoreError, match=r"needs one file that ends in para.title.txt, and has other.txt"):
        titled(tmp_path / "titled", write(tmp_path / "source/other.txt", "0\tA\n").parent, passages)


def test_records_are_no_files_of_a_source(tmp_path: Path) -> None:
    for name in ("manifest.json", "run.json", "b.tsv", "deep/a.tsv"):
        write(tmp_path / name, "{}")
    assert [path.name for path in unpacked.files(tmp_path)] == ["b.tsv", "a.tsv"]
