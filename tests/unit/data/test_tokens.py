"""The token store: what it holds of a small collection, with articles and without; damage refused."""

import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.data import article_texts, tokens, validation, vocabulary
from encore.data.collection import LANGUAGE, Collection, Judgment, write_collection
from encore.data.tokens import TokenStore, write_store
from encore.errors import EncoreError
from encore.storage import manifest, progress
from encore.storage.files import sha256, write_json, write_jsonl
from tests.support import inside

CORPUS = [
    {"_id": "p1", "title": "Lists", "text": "A list holds calls. It grows."},
    {"_id": "p2", "title": "", "text": "Time is short."},
]
QUERIES = [{"_id": "q1", "text": "what holds calls"}, {"_id": "q2", "text": "secret zebra"}]
QRELS = {"train": [Judgment("q1", "p1", 1)], "test": [Judgment("q2", "p2", 1)]}
ARTICLES = [
    {
        "_id": "a",
        "title": "Lists",
        "sections": [{"title": "", "sentences": ["A list.", "It grows."]}, {"title": "x", "sentences": []}],
        "links": [{"section": 0, "to": "b", "anchor": 1, "origin": "see-also"}],
    },
    {
        "_id": "b",
        "title": "Time",
        "sections": [{"title": "", "sentences": ["Short."]}, {"title": "y", "sentences": ["Time is.", "It is long."]}],
        "links": [{"section": 1, "to": "a", "anchor": 0, "origin": "reference"}],
    },
]


def make(folder: Path, articles: list[dict[str, Any]], name: str = "store") -> TokenStore:
    write_collection(folder / "collection", CORPUS, QUERIES, QRELS, articles)
    collection = Collection(folder / "collection")
    pieces = vocabulary.train(article_texts.VocabularyTexts(collection), 80)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(pieces), folder / "tokenizer")
    write_store(collection, folder / "tokenizer", folder / name)
    return TokenStore(folder / name)


def decoded(store: TokenStore, row: np.ndarray) -> str:
    return " ".join(store.pieces[number] for number in row).replace(" ##", "")


def test_sequences_hold_the_texts(tmp_path: Path) -> None:
    store = make(tmp_path, ARTICLES)
    assert (len(store.passages), store.passages.names, store.queries.names) == (2, ["p1", "p2"], ["q1", "q2"])
    assert decoded(store, store.passages[0]).startswith("list")
    assert decoded(store, store.queries[0]).endswith("calls")
    assert store.passages[-1].tolist() == store.passages[1].tolist()
    assert store.passages[0].dtype == np.uint16
    assert store.passages.lengths.tolist() == [len(store.passages[0]), len(store.passages[1])]
    assert [decoded(store, store.sentences[row]) for row in range(2)] == ["a list .", "it grows ."]
    assert [decoded(store, row) for row in store.titles] == ["lists", "time"]
    assert not np.isin(store.passages.ids, store.special[2:]).any()
    with pytest.raises(IndexError):
        store.passages[2]


def test_structure_counts_over_all_articles(tmp_path: Path) -> None:
    store = make(tmp_path, ARTICLES)
    assert store.sections.tolist() == [0, 2, 2, 3, 5]
    assert store.articles.tolist() == [0, 2, 4]
    assert store.links.tolist() == [[0, 3], [3, 0]]
    assert store.sections[-1] == len(store.sentences)


def test_the_vocabulary_is_known(tmp_path: Path) -> None:
    store = make(tmp_path, ARTICLES)
    assert store.vocabulary == len(store.pieces) == len(store.continues)
    assert store.pieces[store.special.mask] == "[MASK]"
    assert [piece.startswith("##") for piece in store.pieces] == store.continues.tolist()
    assert store.continues.any()


def test_without_articles_passages_are_split_by_rule(tmp_path: Path) -> None:
    store = make(tmp_path, [])
    assert store.articles.tolist() == [0, 1, 2]
    assert store.sections.tolist() == [0, 2, 3]
    assert [decoded(store, store.sentences[row]) for row in range(3)] == [
        "a list holds calls .",
        "it grows .",
        "time is short .",
    ]
    assert store.links.shape == (0, 2)
    assert store.titles.lengths.tolist()[1] == 0


def test_the_vocabulary_never_sees_judged_queries(tmp_path: Path) -> None:
    make(tmp_path, ARTICLES)
    texts = list(article_texts.VocabularyTexts(Collection(tmp_path / "collection")))
    assert texts == ["A list. It grows.", "", "Short.", "Time is. It is long.", "what holds calls"]
    assert not any("zebra" in text for text in texts)


def test_equal_collections_give_equal_bytes(tmp_path: Path) -> None:
    make(tmp_path, ARTICLES)
    make(tmp_path, ARTICLES, "again")
    files = sorted(path.relative_to(tmp_path / "store") for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert len(files) == 16
    assert all(sha256(tmp_path / "store" / path) == sha256(tmp_path / "again" / path) for path in files)


def test_many_texts_are_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = make(tmp_path, ARTICLES)
    monkeypatch.setattr("encore.data.tokens.TOGETHER", 2)
    parts = make(tmp_path, ARTICLES, "parts")
    assert [row.tolist() for row in whole.sentences] == [row.tolist() for row in parts.sentences]


@pytest.mark.parametrize("link", [{"to": "c", "anchor": 0}, {"to": "b", "anchor": 2}, {"to": "b", "anchor": -1}])
def test_a_link_to_nowhere_is_refused(tmp_path: Path, link: dict[str, Any]) -> None:
    write_collection(tmp_path / "collection", CORPUS, QUERIES, QRELS, ARTICLES)
    broken = [ARTICLES[0] | {"links": [{"section": 0, "origin": "reference"} | link]}, ARTICLES[1]]
    write_jsonl(tmp_path / "collection" / "articles.jsonl.gz", broken)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(vocabulary.train(["abc"], 20)), tmp_path / "tokenizer")
    with pytest.raises(EncoreError, match=r"article '[bc]', which does not exist"):
        write_store(Collection(tmp_path / "collection"), tmp_path / "tokenizer", tmp_path / "store")


def test_a_store_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    store = make(tmp_path, ARTICLES)
    path = store.folder / "passages.ids.bin"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(EncoreError, match="does not hold the"):
        _ = store.passages
    (store.folder / "links.npy").unlink()
    with pytest.raises(EncoreError, match=r"links\.npy is missing"):
        _ = store.links
    with pytest.raises(EncoreError, match="sentences have no ids, or"):
        _ = store.sentences.names


def test_tokens_are_read_without_torch() -> None:
    program = "import sys, encore.data.tokens, encore.models.inputs, encore.models.flops; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_stages_make_a_store_from_a_collection(tmp_path: Path) -> None:
    with manifest.record(tmp_path / "collection", stage="collection.beir", spec={}, inputs=[]):
        write_collection(tmp_path / "collection", CORPUS, QUERIES, QRELS, ARTICLES)
    collection, tokenizer = str(tmp_path / "collection"), str(tmp_path / "tokenizer")
    for name in ("config.json", "model.safetensors"):  # the vocabulary's folder as that of a checkpoint
        (tmp_path / "tokenizer").mkdir(exist_ok=True)
        (tmp_path / "tokenizer" / name).write_text("{}")
    inside.made("tokenizer", {"vocabulary": 60}, {"collection": collection}, tokenizer)
    inside.made("tokenizer", {}, {"checkpoint": tokenizer}, tmp_path / "adopted")
    inside.made("tokens", {"collection": "c"}, {"collection": collection, "tokenizer": tokenizer}, tmp_path / "store")
    assert [manifest.read_manifest(tmp_path / name)["results"] for name in ("tokenizer", "adopted")] == [
        {"pieces": 60}
    ] * 2
    for name in vocabulary.FILES:
        assert sha256(tmp_path / "tokenizer" / name) == sha256(tmp_path / "adopted" / name)
    counts = manifest.read_manifest(tmp_path / "store")["results"]
    assert (counts["sections"], counts["articles"], counts["links"]) == (4, 2, 2)
    assert counts["tokens_in_passages"] == len(TokenStore(tmp_path / "store").passages.ids)


@pytest.mark.parametrize(("language", "words"), [("zh", [0, 1, 3, 5]), ("ja", [*range(9)])])
def test_words_of_chinese_are_those_of_a_segmenter(language: str, words: list[int], tmp_path: Path) -> None:
    text = "我来到北京清华大学"
    write_collection(tmp_path / "collection", [{"_id": "p", "title": "", "text": text}], [], {})
    write_json(tmp_path / "collection" / LANGUAGE, {"language": language})
    vocabulary.save_tokenizer(
        vocabulary.build_tokenizer([*vocabulary.SPECIAL, *text], language), tmp_path / "tokenizer"
    )
    write_store(Collection(tmp_path / "collection"), tmp_path / "tokenizer", tmp_path / "store")
    store = TokenStore(tmp_path / "store")
    assert store.word_starts(store.passages[0]).tolist() == words


@pytest.mark.parametrize("name", ["passages", "queries", "sentences"])
@pytest.mark.parametrize(("share", "told"), [(0.009, False), (0.011, True), (0.29, True), (0.31, True)])
def test_unknown_tokens_are_counted_above_1_percent_and_refused_above_30_percent(
    name: str, share: float, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "COUNTED", 7)  # so that many blocks are counted
    unknown = round(1000 * share)
    texts = dict.fromkeys(["passages", "queries", "sentences"], "a") | {name: "a " * (1000 - unknown) + "z " * unknown}
    corpus, queries = [{"_id": "p1", "title": "", "text": texts["passages"]}], [{"_id": "q1", "text": texts["queries"]}]
    sections = [{"title": "", "sentences": [texts["sentences"]]}]
    article = {"_id": "a1", "title": "a", "sections": sections, "links": []}
    write_collection(tmp_path / "collection", corpus, queries, {"test": [Judgment("q1", "p1", 1)]}, [article])
    vocabulary.save_tokenizer(vocabulary.build_tokenizer([*vocabulary.SPECIAL, "a"]), tmp_path / "tokenizer")
    given = Collection(tmp_path / "collection"), tmp_path / "tokenizer", tmp_path / "store"
    if share > 0.3:
        with pytest.raises(EncoreError, match=f"31% of the tokens of the {name} are unknown to the vocabulary"):
            write_store(*given)
        return
    counts = write_store(*given)
    assert counts.get(f"unknown_share_in_{name}") == (share if told else None)


def test_sentences_with_the_tokens_of_the_passages_are_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CORPUS[0], "title", "")
    store = make(tmp_path, [])
    passages, sentences = (store.folder / f"{name}.ids.bin" for name in ("passages", "sentences"))
    assert passages.samefile(sentences)
    assert len(store.sentences) > len(store.passages)

    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    copied = make(tmp_path, [], "copied").folder
    assert not (copied / passages.name).samefile(copied / sentences.name)
    assert (copied / sentences.name).read_bytes() == sentences.read_bytes() == passages.read_bytes()
    assert sorted(path.name for path in copied.iterdir()) == sorted(path.name for path in store.folder.iterdir())


def test_titles_of_a_collection_without_articles_are_its_passages(tmp_path: Path) -> None:
    titles = [row["title"] for row in CORPUS]
    store = make(tmp_path, [])
    assert [decoded(store, row) for row in store.titles] == [" ".join(title.lower().split()) for title in titles]


def test_large_collections_say_how_far_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "TOLD", -1)  # seconds between two lines
    monkeypatch.setattr(validation, "TOGETHER", 2)
    make(tmp_path, ARTICLES)
    told = [line.split(", ")[0] for line in capsys.readouterr().out.splitlines()]
    expected = ["corpus: 2 rows", "queries: 2 rows", "passages: 2 texts", "queries: 2 texts", "sentences: 5 texts"]
    assert told == [*expected, "titles: 2 texts"]
