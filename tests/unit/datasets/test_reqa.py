"""ReQA: tuples from places of answers, all pairs as candidates, cold-start parts, two rules of what is right."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from encore.data import sentences
from encore.data.collection import Collection, Judgment, order, write_collection
from encore.data.tokens import TokenStore, write_store
from encore.datasets.reqa import tuples
from encore.datasets.reqa.build import ReqaFields, distractors, ready, split_questions, write_reqa
from encore.datasets.reqa.tuples import AnsweredQuestion, Passage
from encore.datasets.squad_reqa import squad_paragraphs
from encore.errors import EncoreError
from encore.storage import manifest
from encore.storage.files import sha256
from tests.support import inside
from tests.support.small_models import tokenizer_folder

CONTEXT = 'Dr. Grey was born in  1901.\nShe moved to Rome in 1920! There she wrote "No. 7". It sold well.'
ROMES = "Rome is old. She moved to Rome in 1920!"


def passage(name: str = "p", text: str = CONTEXT) -> Passage:
    return Passage(name, "Grey", tuple(sentences.split(text)))


def fields(**given: Any) -> ReqaFields:
    return ReqaFields.model_validate({"kind": "squad-reqa", "ratios": [10, 80], "draws": 2, **given})


@pytest.mark.parametrize("wrong", [{"ratios": 5}, {"draws": "three"}])
def test_a_wrong_field_that_the_splits_follow_from_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        fields(**wrong)
    assert [each["loc"] for each in refused.value.errors()] == [tuple(wrong)]


def asked(count: int = 40) -> list[AnsweredQuestion]:
    """Questions about as many passages of two sentences."""
    about = (Passage(f"p{number}", "", (f"First of {number}.", f"Second of {number}.")) for number in range(count))
    return [AnsweredQuestion(f"What is number {number}?", each, 1) for number, each in enumerate(about)]


# Candidates and judgments


def test_candidates_are_all_pairs_of_a_sentence_and_its_passage() -> None:
    rows = list(tuples.candidates([passage(), passage("r", ROMES)]))
    assert [row["_id"] for row in rows] == ["p#0", "p#1", "p#2", "p#3", "r#0", "r#1"]
    assert rows[5] == {"_id": "r#1", "title": "Grey", "text": ROMES, "sentence": "She moved to Rome in 1920!"}


def test_identical_questions_are_one_query_with_all_their_pairs() -> None:
    twice = [AnsweredQuestion("Where?", passage(), 1, "a"), AnsweredQuestion("Where?", passage("r", ROMES), 0, "b")]
    (row,) = tuples.queries(twice)
    assert (row["text"], row["metadata"]) == ("Where?", {"cluster": "a"})
    assert tuples.exact(twice) == {row["_id"]: {"p#1", "r#0"}}
    assert AnsweredQuestion("Where ?", passage(), 1).id != row["_id"]


def test_the_second_rule_counts_every_candidate_with_the_same_sentence() -> None:
    question = AnsweredQuestion("Where?", passage(), 1)
    gold = tuples.exact([question])
    assert tuples.same_sentence(gold, [passage(), passage("r", ROMES)]) == {question.id: {"p#1", "r#1"}}
    assert gold == {question.id: {"p#1"}}


# Parts


def test_parts_are_disjoint_and_complete_and_of_the_shares_asked_for() -> None:
    names = [question.id for question in asked(200)]
    parts, draws = split_questions(names, fields()), {"10": 10, "80": 80, "10-s1": 10, "80-s1": 80}
    assert list(parts) == [f"{role}-{draw}" for draw in draws for role in ("train", "valid", "test")]
    for draw, ratio in draws.items():
        train, valid, test = (parts[f"{role}-{draw}"] for role in ("train", "valid", "test"))
        assert sorted([*train, *valid, *test]) == sorted(names)
        assert (len(train) + len(valid), len(valid)) == (2 * ratio, 0.2 * ratio)


def test_a_common_validation_is_apart_from_what_any_share_trains_on_or_tests() -> None:
    names, own = [question.id for question in asked(200)], fields(validation="common")
    parts = split_questions(names, own)
    assert {name: len(part) for name, part in parts.items() if "-s1" not in name} == {
        "train-10": 20,
        "valid": 16,  # a tenth of the largest share
        "test-10": 164,
        "train-80": 144,
        "test-80": 40,
    }
    assert {*own.splits} == {*parts, *(f"{name}.sentence" for name in parts if name.startswith("test"))}
    for share in ("10", "80"):
        assert sorted([*parts[f"train-{share}"], *parts["valid"], *parts[f"test-{share}"]]) == sorted(names)
    assert set(parts["train-10"]) < set(parts["train-80"])
    assert not set(parts["valid"]) & {*parts["train-80"], *parts["test-10"]}
    assert [own.serves("train-10", other) for other in ("valid", "valid-s1", "test-10", "test-80")] == [True, False] * 2
    assert own.resolve() == fields().resolve() | {"validation": "common"}
    assert "validation" not in fields().resolve(), "or collections with a validation of each share had other names"


def test_draws_differ_and_a_larger_share_of_one_holds_the_smaller() -> None:
    parts = split_questions([question.id for question in asked(200)], fields())
    assert {*parts["train-10"], *parts["valid-10"]} < {*parts["train-80"], *parts["valid-80"]}
    assert set(parts["train-10"]) != set(parts["train-10-s1"])


def test_parts_do_not_depend_on_the_order_of_the_questions() -> None:
    names = [question.id for question in asked()]
    one, other = split_questions(names, fields()), split_questions(names[::-1], fields())
    assert {split: sorted(part) for split, part in one.items()} == {split: sorted(own) for split, own in other.items()}


def test_too_few_questions_are_refused() -> None:
    with pytest.raises(EncoreError, match="4 questions are too few to train on 10 %"):
        split_questions("abcd", fields())


def test_no_test_query_trains_in_its_own_share_and_draw(tmp_path: Path) -> None:
    write_reqa(tmp_path, asked(), [], fields())
    collection = Collection(tmp_path)
    for draw in ("10", "80", "10-s1", "80-s1"):
        named = (f"train-{draw}", f"valid-{draw}", f"test-{draw}", f"test-{draw}.sentence")
        train, valid, test, alike = (set(collection.qrels(name)) for name in named)
        assert not (train & valid)
        assert not ((train | valid) & test)
        assert test == alike
        assert len(train | valid | test) == 40
    assert set(collection.qrels("train-80")) & set(collection.qrels("test-10"))  # another share, another model


def shared(**splits: list[str]) -> dict[str, list[Judgment]]:
    return {name.replace("_", "-"): [Judgment(query, "d", 1) for query in queries] for name, queries in splits.items()}


@pytest.mark.parametrize(
    ("splits", "refused"),
    [
        (shared(train_1=["a"], test_1=["b"], train_5=["b"], test_5=["a"]), None),
        (shared(train_1=["a"], test_1=["a"]), "test-1"),
        (shared(train_1=["a"], valid_1=["a"]), "valid-1"),
        (shared(train_1=["a"], valid_1=["b"], test_1=["b"]), "test-1"),
        (shared(train_1=["a"], valid_1=["b"], test_5=["b"]), None),
        (shared(train_1=["a"], test=["a"]), "test"),
        (shared(train=["a"], test_1=["a"]), "test-1"),
        ({**shared(train_1=["a"]), "test-1.sentence": [Judgment("a", "d", 1)]}, "test-1.sentence"),
    ],
)
def test_roles_hold_within_a_draw(tmp_path: Path, splits: dict[str, list[Judgment]], refused: str | None) -> None:
    corpus = [{"_id": "d", "title": "", "text": "t"}]
    material = (tmp_path, corpus, [{"_id": name, "text": name} for name in "ab"], splits)
    if refused is None:
        assert set(write_collection(*material)["splits"]) == set(splits)
        return
    with pytest.raises(EncoreError, match=f"1 queries of split '{refused}' also (train|validate), such as '[ab]'"):
        write_collection(*material)


def test_splits_follow_from_shares_and_draws() -> None:
    own = fields().splits
    assert list(own)[:4] == ["train-10", "valid-10", "test-10", "test-10.sentence"]
    assert len(own) == 16
    assert {name.partition("-")[0] for name in own} == {"train", "valid", "test"}
    assert own["test-80-s1.sentence"].topics == "test-80-s1"
    assert own["test-10"].measures == {f"R@{cut}": f"R@{cut}" for cut in (1, 5, 10, 50, 100)}
    assert own["test-10.sentence"].measures["R@5"] == "Success@5"


# The whole, from (question, passage, sentence) to a token store


def squad_like(folder: Path, count: int = 40, **given: Any) -> Collection:
    """What a loader of SQuAD does: contexts with questions and the sentences that answer them."""
    contexts = {f"c{n}": f"Town {n} is old. It has {n} gates. Its river is slow." for n in range(count)}
    passages = [Passage(name, "Towns", tuple(sentences.split(text))) for name, text in contexts.items()]
    questions = [AnsweredQuestion(f"How many gates has town {n}?", each, 1) for n, each in enumerate(passages)]
    write_reqa(
        folder, questions, ready([Passage("x", "", ("A stack holds calls.", "Time.", "Memory."))]), fields(**given)
    )
    return Collection(folder)


def test_questions_with_places_of_answers_become_a_collection(tmp_path: Path) -> None:
    collection = squad_like(tmp_path)
    counts = json.loads((tmp_path / "statistics.json").read_text())
    assert (counts["queries"], counts["tuples"], counts["candidates"], counts["distractors"]) == (40, 40, 120, 0)
    texts = dict(collection.texts())
    for split in ("train-80", "test-80"):
        for query, gold in collection.qrels(split).items():
            (name,) = gold
            number = collection.queries()[query].removesuffix("?").rsplit(" ", 1)[1]
            assert texts[name] == (f"It has {number} gates.", f"Towns Town {number} is old. It has {number} gates. Its river is slow.")  # fmt: skip  # noqa: E501


def test_a_candidate_is_read_as_sentence_separator_title_and_passage(tmp_path: Path) -> None:
    collection = squad_like(tmp_path / "c")
    write_store(collection, tokenizer_folder(tmp_path / "t"), tmp_path / "s")
    store = TokenStore(tmp_path / "s")
    assert len(store.passages) == 120
    assert [list(row).count(store.special.sep) for row in (store.passages[0], store.passages[119])] == [1, 1]
    assert len(store.sentences) == 120  # each sentence of a passage once, not once a candidate


def test_equal_material_gives_equal_bytes(tmp_path: Path) -> None:
    one, other = (squad_like(tmp_path / name).folder for name in ("one", "other"))
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert len(files) == 21
    assert [sha256(one / path) for path in files] == [sha256(other / path) for path in files]


# The open domain


def test_distractors_join_the_candidates_and_answer_nothing(tmp_path: Path) -> None:
    plain, opened = squad_like(tmp_path / "plain"), squad_like(tmp_path / "open", distractors=2)
    rows = {row["_id"] for row in opened.corpus()}
    assert rows - {row["_id"] for row in plain.corpus()} == {"x#0", "x#1"}
    assert all(opened.qrels(split) == plain.qrels(split) for split in plain.splits())


def drawn(pool: list[Passage], gold: list[Passage], count: int, salt: str = "salt") -> list[Passage]:
    return distractors(ready(pool), gold, count, salt)


def test_a_passage_that_is_asked_about_is_no_distractor_and_order_is_chance() -> None:
    pool = [Passage(f"d{number}", "", (f"One {number}.", "Two.")) for number in range(50)]
    copy = Passage("copy", "", ("town 1  IS", "old."))
    gold = [Passage("gold", "", ("Town 1 is old.",))]
    chosen = drawn([copy, *pool], gold, 21)
    assert sum(len(passage.sentences) for passage in chosen) == 21
    assert "copy" not in {passage.id for passage in chosen}
    assert chosen == drawn([copy, *pool[::-1]], gold, 21)
    assert {passage.id for passage in chosen} != {passage.id for passage in drawn(pool, gold, 21, "other")}
    with pytest.raises(EncoreError, match="there are 100 distractors, 101 are asked for"):
        drawn([copy, *pool], gold, 101)


@pytest.mark.parametrize("count", [0, 1, 2, 37, 150])
def test_distractors_are_the_first_of_a_shuffle(count: int) -> None:
    """However the pool comes: whole passages in the order of their hash until there are enough sentences."""
    pool = [Passage(f"d{n}", "", tuple(f"{n} {s}." for s in range(n % 4))) for n in range(150)]
    expected: dict[str, tuple[str, ...]] = {}
    for passage in sorted(pool, key=lambda each: order(each.id, "salt")):
        left = count - sum(map(len, expected.values()))
        if left > 0 and passage.sentences:
            expected[passage.id] = passage.sentences[:left]
    assert {each.id: each.sentences for each in drawn(pool, [], count)} == expected


def test_of_a_large_pool_few_passages_are_read_and_held() -> None:
    read = []

    def reading(name: str) -> Passage:
        read.append(name)
        return Passage(name, "", ("One.", "Two."))

    pool = ((f"d{n}", lambda n=n: reading(f"d{n}")) for n in range(20_000))  # type: ignore[misc]
    assert len(distractors(pool, [], 100, "salt")) == 50
    assert len(read) < 1000


def test_bm25_indexes_the_sentence_and_the_passage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage hands Lucene both texts of the pair, so that the sentence's words count twice."""
    given: dict[str, str] = {}
    monkeypatch.setattr(
        "encore.retrieval.lucene.build_lucene_index", lambda texts, *_: given.update(texts) or len(given)
    )
    with manifest.record(tmp_path / "c", stage="collection.squad-reqa", spec={}, inputs=[]):
        squad_like(tmp_path / "c")
    inside.made("lucene_index", {}, {"collection": tmp_path / "c"}, tmp_path / "index")
    assert len(given) == 120
    assert given["c7#1"] == "It has 7 gates. Towns Town 7 is old. It has 7 gates. Its river is slow."


def test_json_that_is_nested_without_end_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text('{"data": ' + "[" * 100_000)
    with pytest.raises(EncoreError, match=r"train\.json: not JSON in UTF-8 .maximum recursion depth"):
        list(squad_paragraphs([path], Counter()))
