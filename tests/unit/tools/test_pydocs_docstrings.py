"""Docstrings as text: taken apart, cleaned of markup, and made into passages and queries."""

import pytest

from tools.pydocs import blocks, docstrings, markup, passages
from tools.pydocs.objects import Object

# Cleaning


NUMPY_STYLE = """
argsort(a, axis=-1)

Returns the indices that would sort an array. Uses the algorithm of `kind`.

Parameters
----------
a : array_like
    Array to sort, see :ref:`glossary`.
axis : int or None, optional
    Axis along which to sort, or **None**:

    * `None` flattens,
    * -1 is the last one.

Returns
-------
index_array : ndarray
    Array of indices, of type ``numpy.intp`` [1]_.

See Also
--------
sort : Describes the algorithms.
lexsort, ndarray.sort
:func:`~numpy.argpartition` : Indirect partial sort.
    Deeper lines describe.

Notes
-----
See `sort` for notes on the different sorting algorithms. It costs :math:`\\mathcal{O}(n)` each.
The same is done as follows::

    take(a, index)

.. versionadded:: 1.4

.. note:: It works in place with :meth:`numpy.ndarray.sort`, `numpy.take` and :mod:`heapq`.

Examples
--------
>>> argsort([3, 1, 2])
array([1, 2, 0])
"""


def test_a_docstring_is_taken_apart():
    parsed = docstrings.parse(NUMPY_STYLE)
    assert parsed.summary == "Returns the indices that would sort an array."
    assert parsed.sentences == (
        "Uses the algorithm of kind.",
        "axis (int or None, optional): Axis along which to sort, or None:",
        "None flattens,",
        "-1 is the last one.",
        "index_array (ndarray): Array of indices, of type intp.",
        "See sort for notes on the different sorting algorithms.",
        "It works in place with sort, take and heapq.",
    )
    assert parsed.see_also == ("sort", "lexsort", "ndarray.sort", "numpy.argpartition")
    assert parsed.references == ("numpy.intp", "numpy.ndarray.sort", "numpy.take", "heapq")


def test_google_sections_and_field_lists_are_known():
    parsed = docstrings.parse(
        "Opens a file.\n\nIt must exist.\n\nArgs:\n    path: Where it lies.\n    mode (str): How to open it.\n\n"
        "Example:\n    open('x')\n\n:param int size: Of the buffer.\n:type size: int\n:returns: A stream of bytes.\n"
    )
    assert parsed.summary == "Opens a file."
    assert parsed.sentences == ("It must exist.", "path: Where it lies.", "mode (str): How to open it.")
    fields_only = docstrings.parse(
        "Opens it.\n\n:param size: Of the buffer.\n:type size: int\n:returns: A stream of bytes."
    )
    assert fields_only.sentences == ("size: Of the buffer.", "A stream of bytes.")


def test_a_modules_title_is_its_summary():
    parsed = docstrings.parse("=======\nSpatial algorithms\n=======\n\n.. currentmodule:: x\n\nThese hold points.\n")
    assert (parsed.summary, parsed.sentences) == ("Spatial algorithms", ("These hold points.",))


@pytest.mark.parametrize("name", ["See Also\n--------", "See also:", "SEE ALSO\n========", ".. seealso::\n"])
def test_see_also_text_is_in_no_body(name):
    text = f"Sorts it.\n\nThe order is stable.\n\n{name}\n    heapq.merge : Merges sorted inputs.\n"
    parsed = docstrings.parse(text)
    assert parsed.sentences == ("The order is stable.",)
    assert parsed.see_also == ("heapq.merge",)
    assert docstrings.parse("Sorts it.\n\nStable. See also `heapq.merge` which merges.").sentences == ()


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (":func:`~numpy.sort` and :py:meth:`list.sort`", "sort and sort"),
        ("the `User Guide <https://x.org>`_ at https://y.org/z says", "the User Guide at says"),
        ("``axis`` of *a* or **b**, `*args`", "axis of a or b, *args"),
        ("%(name)s of {klass} in {'a', 'b'}", "of in {'a', 'b'}"),
        ("see `~.Axes.plot` and `.plot`", "see plot and plot"),
        ("coef_ and `parsers.py`", "coef_ and parsers.py"),
        (":math:`n` rows [2]_ of $k$", "n rows of k"),
        ("costs $O(n^2)$", f"costs {markup.CUT}"),
    ],
)
def test_markup_becomes_words(written, words):
    assert markup.plain(written) == words


def test_blocks_that_are_no_prose_are_dropped():
    lines, see_also = blocks.prose_lines(
        "Text.\n\n>>> f()\n1\n\n```\ncode\n```\n\n.. math::\n\n   x\n\n"
        "===== =====\na     b\n===== =====\n\n.. seealso:: :func:`g`\n\nEnd."
    )
    assert [line for line in lines if line] == ["Text.", "End."]
    assert "".join(see_also) == ":func:`g`"


# Passages and queries


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
