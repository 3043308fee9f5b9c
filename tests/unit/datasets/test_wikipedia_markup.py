"""Wiki markup to plain text: what a reader sees as prose stays, everything else goes."""

import time

import pytest

from encore.datasets.mediawiki import markup


def paragraphs(text: str) -> list[str]:
    return [paragraph.text for section in markup.read_markup(text).sections for paragraph in section.paragraphs]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("'''Bold''' and ''slanted'' words.", "Bold and slanted words."),
        ("The ''Enterprise'''s crew.", "The Enterprise's crew."),
        ("A [[cat]] and [[dog]]s.", "A cat and dogs."),
        ("A [[Felis catus|house cat]].", "A house cat."),
        ("A [[Felis catus|''house'' {{nowrap|cat}}]].", "A house cat."),
        ("One [http://x.org label] and [http://y.org] and http://z.org here.", "One label and and here."),
        ("Seen.<ref>A note with a [[link]].</ref> Heard.<ref name=a /> Done.", "Seen. Heard. Done."),
        ("{{Infobox|a={{nested|b}}\n|c=d}}\nText.", "Text."),
        ("Born ({{birth date|1900|1|1}}; in Rome) there.", "Born (in Rome) there."),
        ("He ({{IPA|x}}) came.", "He came."),
        ("He ([[Latin]]: {{x|y}}, or so) came.", "He (Latin:, or so) came."),
        ("It is {{convert|5|km|mi}} long.", "It is 5 km long."),
        ("It is {{convert|5|to|10|km|mi}} long.", "It is 5 to 10 km long."),
        ("The {{lang|fr|''mot''}} is {{circa|1900}}{{snd}}or {{As of|2015}}.", "The mot is c. 1900 – or As of 2015."),
        ("Costs {{US$|5 million}} {{formatnum:1000}}.", "Costs US$5 million 1000."),
        ("AT&amp;T&nbsp;and&#8211;x &lt; y.", "AT&T and–x < y."),
        ("A<br />b <small>c</small> <span style='x'>d</span>.", "A b c d."),
        ("Before <math>x^2</math> after <code>f(x)</code>.", "Before after f(x)."),
        ("<!-- hidden -->Shown.__NOTOC__", "Shown."),
        ("Soft\u00adhyphen, zero\u200bwidth.", "Softhyphen, zerowidth."),
        ("<blockquote>Quoted words.</blockquote>", "Quoted words."),
        ("{{quote|Words of [[Kant]].|Kant}}", "Words of Kant."),
        ("{{{1|parameter}}} stays out.", "stays out."),
        ("[[File:A.jpg|thumb|A [[caption]] with text.]] Text.", "Text."),
        ("[[Image:A.jpg|thumb|A caption.]]Text.[[Category:Things]][[fr:Chose]]", "Text."),
        ("See [[:Category:Things]] and [[mw:Help|help]].", "See Category:Things and help."),
        ("A line\nand its second.", "A line and its second."),
        ("Two stay. They are:\n* one\n* two", "Two stay."),
        ("One stays.\nThis has no end (so far)<ref>a note</ref>\n[[File:A.jpg|thumb]]", "One stays."),
    ],
)
def test_prose_is_what_a_reader_sees(written, read):
    assert paragraphs(written) == [read]


@pytest.mark.parametrize(
    "written",
    [
        "* An item.\n* Another [[one]].",
        "# First.\n## Second.",
        "; Term: meaning.",
        ": An indented line.",
        '{| class="wikitable"\n! Head.\n|-\n| Cell. || Other.\n|}',
        "{|\n| Unclosed table.\n| Another cell.",
        "<gallery>\nFile:A.jpg|Caption.\n</gallery>",
        "<ul><li>An item.</li></ul>",
        "Members are:",
        "A caption without an end",
        "1 234.",
        "----",
        "",
    ],
)
def test_what_is_no_prose_goes(written):
    assert paragraphs(written) == []


def test_a_paragraph_in_which_markup_stays_is_dropped_and_counted():
    text = markup.read_markup("Good one.\n\nBad {{unclosed one.\n\nGood two.\n\nBad [[unclosed link.")
    assert text.left_over == 2
    assert [each.text for each in text.sections[0].paragraphs] == ["Good one.", "Good two."]


def test_links_of_a_sentence_without_an_end_go_with_it():
    (section,) = markup.read_markup(
        "The ''[[Cat|house cat]]'' stays. So do the [[dog]] and the [[owl]]:\n* all"
    ).sections
    assert section.paragraphs == [markup.LinkedParagraph("The house cat stays.", (markup.target("Cat"),))]


def test_lists_part_paragraphs():
    assert paragraphs("One.\n* item\nTwo.\n\nThree.") == ["One.", "Two.", "Three."]


def test_sections_have_levels_and_plain_titles():
    text = markup.read_markup("Lead.\n\n== ''History'' of [[X|it]] ==\nOld.\n=== Early<ref>n</ref> ===\n== Empty ==\n")
    assert [(each.level, each.title, len(each.paragraphs)) for each in text.sections] == [
        (0, "", 1),
        (2, "History of it", 1),
        (3, "Early", 0),
        (2, "Empty", 0),
    ]


def test_links_are_those_of_kept_prose_in_order():
    text = markup.read_markup(
        "A [[b]], [[C d#E_f|e]] and [[#Own]].<ref>[[note]]</ref> {{t|[[in template]]}}\n* [[in list]]\n[[File:x|[[y]]]]"
    )
    assert [link for each in text.sections[0].paragraphs for link in each.links] == ["B", "C d", ""]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("foo_bar", "Foo bar"),
        (" :foo  bar ", "Foo bar"),
        ("Foo#Some_thing", "Foo"),
        ("Caf%C3%A9", "Café"),
        ("Cafe\u0301", "Café"),
        ("100% sure", "100% sure"),
        ("A&amp;B", "A&B"),
        ("éa\u200e", "Éa"),
        ("#Only", ""),
    ],
)
def test_titles_are_spelt_as_mediawiki_does(written, read):
    assert markup.target(written) == read


@pytest.mark.parametrize(
    ("title", "listing", "date"),
    [
        ("List of cats", True, False),
        ("Lists of cats", True, False),
        ("Index of law articles", True, False),
        ("Outline of law", True, False),
        ("Listing", False, False),
        ("List", False, False),
        ("1999", False, True),
        ("1990s", False, True),
        ("44 BC", False, True),
        ("AD 12", False, True),
        ("January 1", False, True),
        ("1 January", False, True),
        ("May 2004", False, True),
        ("May", False, True),
        ("19th century", False, True),
        ("2nd millennium BC", False, True),
        ("1999 in film", False, False),
        ("1,000,000", False, False),
        ("Ninth century", False, False),
    ],
)
def test_lists_and_dates_are_known_by_their_titles(title, listing, date):
    found = (markup.LISTING.match(title) is not None, markup.DATE.fullmatch(title) is not None)
    assert found == (listing, date)


@pytest.mark.parametrize(
    ("written", "yes"),
    [
        ("'''X''' may be:\n* [[Y]]\n{{disambiguation}}", True),
        ("{{Disambiguation|geo}}", True),
        ("{{hndis|X}}", True),
        ("{{Place_name disambiguation}}", True),
        ("__DISAMBIG__", True),
        ("A [[Y]]{{disambiguation needed|date=May 2020}} here.", False),
        ("{{other uses|X (disambiguation)}} Text.", False),
    ],
)
def test_disambiguation_is_known_by_its_templates(written, yes):
    assert markup.read_markup(written).disambiguation is yes


@pytest.mark.parametrize("unit", ["( ", "a, ", "''", "' ", "a\n", "{{a}}(", "[[a]] ", "* x\n"])
def test_time_grows_with_length(unit):
    """Twenty thousand characters take a moment; what is quadratic here takes minutes on long pages."""
    started = time.process_time()
    markup.read_markup(unit * (20_000 // len(unit)))
    assert time.process_time() - started < 5
