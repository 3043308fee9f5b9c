"""Docstrings as text: See Also is in no body, and the rules of passages and queries."""

import pytest

from tools.pydocs import docstrings, markup, passages
from tools.pydocs.objects import Object


@pytest.mark.parametrize("name", ["See Also\n--------", "See also:", "SEE ALSO\n========", ".. seealso::\n"])
def test_see_also_text_is_in_no_body(name):
    text = f"Sorts it.\n\nThe order is stable.\n\n{name}\n    heapq.merge : Merges sorted inputs.\n"
    parsed = docstrings.parse(text)
    assert parsed.sentences == ("The order is stable.",)
    assert parsed.see_also == ("heapq.merge",)
    assert docstrings.parse("Sorts it.\n\nStable. See also `heapq.merge` which merges.").sentences == ()


def test_a_lead_ends_with_a_sentence():
    sentences = [" ".join(["word"] * 50) + ".", " ".join(["other"] * 40) + ".", "More."]
    assert passages.lead(sentences) == " ".join(sentences[:2])
    assert passages.lead(sentences[:1] * 2) == sentences[0]
    assert len(passages.lead([" ".join(["word"] * 200)]).split()) == 90


PROSE = "This function walks the whole tree and gives each node to the visitor that was registered for it."


def test_short_bodies_and_repetitions_are_no_passages():
    nearly = PROSE.replace("registered", "chosen")
    other = "Rows of the sparse matrix are normalised in place so that the sum of their squares becomes one."
    objects = [
        Object("m", "first", "", (PROSE,)),
        Object("m", "short", "", ("Far too short.",)),
        Object("m", "same", "", (PROSE,)),
        Object("m", "nearly", "", (nearly,)),
        Object("m", "table", "", ("1 2 3 4 5 6 7 8 9 10 11 12 13 14",)),
        Object("m", "other", "", (other,)),
    ]
    assert list(passages.passages(objects)) == ["m.first", "m.other"]


@pytest.mark.parametrize(
    ("summary", "query"),
    [
        ("Return the sorted keys.", "Return the sorted keys"),
        ("Return it.", None),
        ("This is for you to use.", None),  # no three content words
        ("Deprecated alias for the sorted keys.", None),
        ("Supported keys of mappings:", None),
        (f"Computes {markup.CUT} of sorted keys.", None),
        ("word " * 41, None),
    ],
)
def test_a_query_asks_for_something(summary, query):
    assert passages.queries([Object("m", "f", summary, ("Body.",))]).get("m.f") == query


def test_a_query_means_one_object_and_is_not_in_its_body():
    twice = [Object("m", name, "Return the sorted keys.", ("Body.",)) for name in ("f", "g")]
    inside = Object("m", "h", "Merge several sorted inputs.", ("To merge several sorted inputs, call it.",))
    assert passages.queries([*twice, inside]) == {}
