"""The sentence splitter: known texts, and nothing lost."""

import pytest

from encore.data.sentences import split


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n ", []),
        ("One sentence without an end", ["One sentence without an end"]),
        ("It rains. We stay! Do we? Yes.", ["It rains.", "We stay!", "Do we?", "Yes."]),
        (
            "See Fig. 3 and e.g. Smith et al. 2010 there. Next.",
            ["See Fig. 3 and e.g. Smith et al. 2010 there.", "Next."],
        ),
        ("Dr. J. R. Hill wrote it. Then he left.", ["Dr. J. R. Hill wrote it.", "Then he left."]),
        (
            "The value is 3.14 here. Use numpy.sort or a.b to sort.",
            ["The value is 3.14 here.", "Use numpy.sort or a.b to sort."],
        ),
        ('He said "stop." Then (quietly.) He left.', ['He said "stop."', "Then (quietly.)", "He left."]),
        ("wrapped\nline one. Second\nline.", ["wrapped line one.", "Second line."]),
        ("a heading\n\nthen text", ["a heading", "then text"]),
        ("1. Open the file. 2. Read it.", ["1. Open the file.", "2. Read it."]),
        (
            "The answer is no. The rest follows. See no. 7 there.",
            ["The answer is no.", "The rest follows.", "See no. 7 there."],
        ),
        ("It ends... and goes on. Éclair is next.", ["It ends... and goes on.", "Éclair is next."]),
        ("Version 2. 3 files are read.", ["Version 2.", "3 files are read."]),
    ],
)
def test_known_texts(text: str, expected: list[str]) -> None:
    assert split(text) == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("zh", "今天下雨。我们留下！你呢？好。", ["今天下雨。", "我们留下！", "你呢？", "好。"]),
        ("ja", "「行く。」と言った。次。", ["「行く。」", "と言った。", "次。"]),
        ("hi", "वह घर गया। वह सोया॥ क्या वह उठा? हाँ।", ["वह घर गया।", "वह सोया॥", "क्या वह उठा?", "हाँ।"]),
        ("ar", "هل جاء؟ نعم. ثم ذهب!", ["هل جاء؟", "نعم.", "ثم ذهب!"]),
        ("ur", "وہ آیا۔ وہ گیا۔", ["وہ آیا۔", "وہ گیا۔"]),
        ("de", "Das kostet 3.5 Euro, z.B. heute. Morgen nicht.", ["Das kostet 3.5 Euro, z.B. heute.", "Morgen nicht."]),
        (
            "de",
            "Er kam am 3. Oktober an. Dr. Müller war z. B. nicht da. Siehe Abb. 3 bzw. Nr. 7. Das ist die "
            "Goethestr. 5. Sie endete 1945. Danach kam er usw. Dann ging er. Pi ist 3.14. Ja!",
            [
                "Er kam am 3. Oktober an.",
                "Dr. Müller war z. B. nicht da.",
                "Siehe Abb. 3 bzw. Nr. 7. Das ist die Goethestr. 5. Sie endete 1945.",
                "Danach kam er usw.",
                "Dann ging er.",
                "Pi ist 3.14.",
                "Ja!",
            ],
        ),
        (
            "fr",
            "M. Dupont est là. Voir p. 12, c.-à-d. la suite. Il vit av. J.-C. près de Mme. Curie. « Oui. » Il part, "
            "etc. Il dort.",
            [
                "M. Dupont est là.",
                "Voir p. 12, c.-à-d. la suite.",
                "Il vit av. J.-C. près de Mme. Curie.",
                "« Oui. »",
                "Il part, etc.",
                "Il dort.",
            ],
        ),
        (
            "ru",
            "Он родился в г. Москве. Это А. С. Пушкин. Жил на ул. Ленина. Было 20 млн. Рублей. См. Рис. 3 и т. д. Да.",
            [
                "Он родился в г. Москве.",
                "Это А. С. Пушкин.",
                "Жил на ул. Ленина.",
                "Было 20 млн. Рублей.",
                "См. Рис. 3 и т. д. Да.",
            ],
        ),
        ("zh", "一句。\n\n又一句", ["一句。", "又一句"]),
        ("zh", "什么？！真的。。。是", ["什么？！", "真的。。。", "是"]),
    ],
)
def test_known_texts_of_other_languages(language: str, text: str, expected: list[str]) -> None:
    assert split(text, language) == expected


def test_nothing_is_lost() -> None:
    text = "A b. C d! (E f?) 'G.' h i. J. K. L m\tn.  O.\n\nP q… R [s]. T"
    assert " ".join(split(text)) == " ".join(text.split())
