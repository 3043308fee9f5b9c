"""Answers: what counts as one in a passage, and the file that holds them."""

import gzip
import unicodedata

import numpy as np
import pytest
import regex

from encore.data.answer_matching import contains, spread
from encore.data.collection import Collection, write_collection
from encore.errors import EncoreError
from encore.finetuning.negatives.mining import answering

DPR = regex.compile(r"([\p{L}\p{N}\p{M}]+)|([^\p{Z}\p{C}])", flags=regex.IGNORECASE | regex.UNICODE | regex.MULTILINE)


def by_definition(passage, answer):
    """The token lists as DPR's expression finds them, compared place by place."""
    text, wanted = (
        [m.group().lower() for m in DPR.finditer(unicodedata.normalize("NFD", each))] for each in (passage, answer)
    )
    return any(text[i : i + len(wanted)] == wanted for i in range(len(text) - len(wanted) + 1)) and bool(wanted)


@pytest.mark.parametrize(
    ("passage", "answer", "is_in"),
    [
        ("It was Alan  Turing,\nof course.", "alan turing", True),
        ("It was Alan Mathison Turing.", "Alan Turing", False),
        ("In 1945 it began.", "194", False),
        ("The price was $3.50 then.", "$3.50", True),
        ("Beyonc\u00e9 sang.", "BEYONCE\u0301", True),
        ("Beyonce sang.", "Beyonc\u00e9", False),
        ("the U.S. did", "U.S", True),
        ("the US did", "U.S.", False),
        ("\u6771\u4eac is one word: \u6771\u4eac\u90fd", "\u6771\u4eac\u90fd", True),
        ("a well-known fact", "known", True),
        ("", "x", False),
        ("anything", "", False),
        ("anything", "\t\u200b ", False),
    ],
)
def test_an_answer_is_its_tokens_side_by_side(passage, answer, is_in):
    assert contains(spread(passage), [spread(answer)]) is is_in is by_definition(passage, answer)


def test_tokens_are_those_of_dprs_expression():
    rng = np.random.default_rng(0)
    signs = list("aB9 .-'$_\t\n\u00e9\u0301\u00a0\u200b\u6771\u0130\u00df\u2167\U0001f600")
    for _ in range(500):
        passage, answer = ("".join(rng.choice(signs, rng.integers(0, size))) for size in (30, 4))
        assert contains(spread(passage), [spread(answer)]) is by_definition(passage, answer), (passage, answer)


@pytest.fixture
def collection(tmp_path):
    corpus = [
        {"_id": f"d{i}", "title": "Turing", "text": text} for i, text in enumerate(["He was Turing.", "No.", "1912"])
    ]
    queries = [{"_id": "q1", "text": "who?"}, {"_id": "q2", "text": "when?"}, {"_id": "q3", "text": "unanswered"}]
    answers = [{"_id": "q1", "answers": ["alan", "turing"]}, {"_id": "q2", "answers": ["1912"]}]
    counts = write_collection(tmp_path, corpus, queries, {}, answers=answers)
    assert counts["answered"] == 2
    return Collection(tmp_path)


def test_answers_read_back(collection):
    assert collection.answers() == {"q1": ["alan", "turing"], "q2": ["1912"]}


def test_a_collection_without_answers_says_so(tmp_path):
    write_collection(tmp_path, [{"_id": "d", "title": "", "text": "t"}], [], {})
    assert not (tmp_path / "answers.jsonl.gz").exists()
    with pytest.raises(EncoreError, match=r"has no answers\.jsonl\.gz"):
        Collection(tmp_path).answers()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"_id": "q9", "answers": ["x"]}], "row 1: query 'q9' is not among the queries"),
        ([{"_id": "q", "answers": ["x"]}, {"_id": "q", "answers": ["y"]}], "row 2: query 'q' is answered twice"),
        ([{"_id": "q", "answers": []}], "needs a list of answers"),
        ([{"_id": "q", "answers": [" "]}], "needs a list of answers"),
        ([{"_id": "q", "answers": "x"}], "needs a list of answers"),
    ],
)
def test_bad_answers_are_named(tmp_path, rows, words):
    with pytest.raises(EncoreError, match=words):
        write_collection(
            tmp_path, [{"_id": "d", "title": "", "text": "t"}], [{"_id": "q", "text": "t"}], {}, answers=rows
        )


def test_a_ranked_passage_answers_by_its_text_alone(collection):
    ranking = {"q1": ["d2", "d1", "d0"], "q2": ["d0", "d2"]}
    assert answering(ranking, collection, depth=3) == {"q1": {"d0": 3}, "q2": {"d2": 2}}
    assert answering(ranking, collection, depth=2) == {"q1": {}, "q2": {"d2": 2}}
    assert answering(ranking, collection, depth=3, first_rank=3) == {"q1": {"d0": 3}, "q2": {}}


def test_a_question_without_answers_is_refused(collection):
    with pytest.raises(EncoreError, match="1 questions have no answers, such as 'q3'"):
        answering({"q3": ["d0"]}, collection, depth=1)
    with pytest.raises(EncoreError, match="'dX' of the run is not in"):
        answering({"q1": ["dX"]}, collection, depth=1)


def test_a_cut_file_is_one_clear_line(collection):
    path = collection.folder / "answers.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"_id": "q1"'))
    with pytest.raises(EncoreError, match="line 1"):
        collection.answers()
