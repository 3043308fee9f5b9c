"""The token store of several collections as one: joined from theirs, to the bytes that their joined texts give."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.data import vocabulary
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.text_fields import Form
from encore.data.tokens import TokenStore, write_store
from encore.datasets.concat import ConcatFields
from encore.datasets.joined_tokens import join_stores
from encore.datasets.kinds import build_collection
from encore.errors import EncoreError

NAMES = ["first", "second", "third"]
WORDS = ["lists", "hold", "calls", "time", "is", "short", "grows", "."]


def texts(rng: np.random.Generator, count: int) -> list[str]:
    return [" ".join(rng.choice(WORDS, size=rng.integers(0, 6))) for _ in range(count)]


def article(rng: np.random.Generator, number: int, of: int, linked: bool) -> dict[str, Any]:
    sections = [{"title": "", "sentences": texts(rng, int(rng.integers(0, 4)))} for _ in range(2)]
    links = [{"section": 1, "to": f"a{(number + 1) % of}", "anchor": 0, "origin": "link"}] if linked else []
    return {"_id": f"a{number}", "title": texts(rng, 1)[0], "sections": sections, "links": links}


def part(folder: Path, seed: int, articles: int, linked: bool = True, form: Form = Form()) -> Path:  # noqa: B008  # frozen
    """A collection of passages, of which one has no token, with queries that a joined collection does not ask."""
    rng = np.random.default_rng(seed)
    corpus = [
        {"_id": f"p{n}", "title": "", "text": text or "\u200b"} for n, text in enumerate(["\u200b", *texts(rng, 7)])
    ]
    rows = [article(rng, number, articles, linked) for number in range(articles)]
    queries = [{"_id": "q", "text": "what holds calls"}]
    write_collection(folder, corpus, queries, {"test": [Judgment("q", "p1", 1)]}, rows, form=form)
    return folder


def collections(folder: Path) -> list[Path]:
    sizes = ((4, True), (1, False), (3, True))
    return [
        part(folder / f"{name}-{seed:08d}", seed, *size)
        for seed, (name, size) in enumerate(zip(NAMES, sizes, strict=True))
    ]


def tokenizer(folder: Path, most: int) -> Path:
    pieces = vocabulary.train([" ".join(WORDS)] * 3, most)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(pieces), folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_joined_stores_have_the_bytes_of_the_joined_texts(tmp_path: Path) -> None:
    parts, pieces = collections(tmp_path), tokenizer(tmp_path / "tokenizer", 60)
    spec = ConcatFields.model_validate({"kind": "concat", "of": NAMES}).resolve()
    build_collection("concat", spec, tmp_path / "joined", parts=parts)
    expected = write_store(Collection(tmp_path / "joined"), pieces, tmp_path / "expected")
    stores = [tmp_path / f"store-{name}" for name in NAMES]
    for place, store in zip(parts, stores, strict=True):
        write_store(Collection(place), pieces, store)
    assert join_stores(parts, stores, tmp_path / "made") == expected
    assert contents(tmp_path / "made") == contents(tmp_path / "expected")
    store = TokenStore(tmp_path / "made")
    assert (len(store.articles) - 1, len(store.links), len(store.queries)) == (8, 7, 0)
    assert len(store.passages) == 0, "it is only pre-trained on"


def test_any_number_of_processes_writes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("encore.data.tokens.TOGETHER", 3)
    (place, *_), pieces = collections(tmp_path), tokenizer(tmp_path / "tokenizer", 60)
    made = []
    for processes in (1, 3):
        counts = write_store(Collection(place), pieces, tmp_path / str(processes), processes)
        made.append((counts, contents(tmp_path / str(processes))))
    assert made[0] == made[1]
    assert made[0][0]["tokens_in_sentences"] > 10


def test_stores_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    parts = collections(tmp_path)[:2]
    stores = [tmp_path / "one", tmp_path / "other"]
    for most, place, store in zip((60, 40), parts, stores, strict=True):
        write_store(Collection(place), tokenizer(tmp_path / f"tokenizer-{most}", most), store)
    with pytest.raises(EncoreError, match=r"one, .*other are of different tokenizers; make them with one"):
        join_stores(parts, stores, tmp_path / "made")
    with pytest.raises(EncoreError, match="there are 2 collections and 1 token stores"):
        join_stores(parts, stores[:1], tmp_path / "made")


def test_documents_of_other_fields_are_refused_by_either_way(tmp_path: Path) -> None:
    """A joined collection has titles and texts alone, so the part's own documents would be others there."""
    odd = part(tmp_path / "second-00000000", 1, 2, form=Form((("text",), ("title",))))
    parts = [part(tmp_path / "first-00000000", 0, 2), odd]
    spec = ConcatFields.model_validate({"kind": "concat", "of": NAMES[:2]}).resolve()
    with pytest.raises(EncoreError, match="has documents of other fields than a title and a text; leave 'second' out"):
        build_collection("concat", spec, tmp_path / "joined", parts=parts)
    with pytest.raises(EncoreError, match="has documents of other fields than a title and a text; leave 'second' out"):
        join_stores(parts, [], tmp_path / "made")
