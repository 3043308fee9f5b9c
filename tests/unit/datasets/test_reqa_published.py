"""SQuAD and Natural Questions as ReQA: files in their published forms, and the rules of the ReQA evaluation."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from encore.data import sentences
from encore.data.collection import Collection, write_collection
from encore.datasets import kinds, nq_reqa, squad_reqa
from encore.datasets.reqa import published
from encore.datasets.reqa.paragraphs import ParagraphQuestion, SourceParagraph, questions, splitter
from encore.datasets.reqa.published import PublishedReqaFields
from encore.errors import EncoreError
from encore.products.catalogue import load_plan

ROME = "Dr. Grey moved to Rome.\nShe loved Rome. It rained in Rome. She loved Rome."
BY_FULL_STOP = '''
import re

def infer_sentence_breaks(text):
    """A sentence ends at every full stop: unlike ours, also behind Dr."""
    for found in re.finditer(r"[^.\\s][^.]*\\.", text):
        yield found.span()
'''


def found(*asked: ParagraphQuestion, text: str = ROME, counts: Counter[str] | None = None) -> list[tuple[str, str]]:
    """Each question with the sentence that answers it."""
    made = questions(
        [SourceParagraph("Grey", text, list(asked))], sentences.spans, counts if counts is not None else Counter()
    )
    return [(each.text, each.passage.sentences[each.sentence]) for each in made]


# The rules


def test_every_answer_counts_and_an_answering_sentence_once() -> None:
    answers = [(ROME.index("Rome"), "Rome"), (0, "Dr. Grey"), (ROME.index("rained"), "rained")]
    assert found(ParagraphQuestion("Where?", answers)) == [
        ("Where?", "Dr. Grey moved to Rome."),
        ("Where?", "It rained in Rome."),
    ]


def test_an_answer_of_several_sentences_has_the_place_that_was_marked_and_is_counted() -> None:
    counts: Counter[str] = Counter()
    start = ROME.index("Rome", ROME.index("rained"))
    assert found(ParagraphQuestion("Where?", [(start, "Rome")]), counts=counts) == [("Where?", "It rained in Rome.")]
    assert (counts["ambiguous"], counts["inputs"], counts["asked"]) == (1, 1, 1)


def test_a_sentence_that_a_passage_says_twice_is_one_candidate() -> None:
    (question,) = questions(
        [SourceParagraph("Grey", ROME, [ParagraphQuestion("?", [(len(ROME) - 5, "Rome")])])], sentences.spans, Counter()
    )
    assert question.passage.sentences == ("Dr. Grey moved to Rome.", "She loved Rome.", "It rained in Rome.")
    assert question.sentence == 1
    assert question.passage.text == " ".join(ROME.split())


def test_questions_that_differ_in_blanks_are_one_and_counted_as_the_evaluation_does() -> None:
    counts: Counter[str] = Counter()
    twice = [ParagraphQuestion("Where ?", [(0, "Dr.")]), ParagraphQuestion("Where  ? ", [(0, "Dr.")])]
    made = list(questions([SourceParagraph("Grey", ROME, twice)], sentences.spans, counts))
    assert made[0] == made[1]
    assert (counts["published_queries"], counts["published_tuples"], counts["inputs"]) == (2, 2, 2)


def test_a_paragraph_of_one_sentence_is_kept_and_one_that_nobody_asked_about_is_no_candidate() -> None:
    counts: Counter[str] = Counter()
    given = [
        SourceParagraph("A", "Only this.", [ParagraphQuestion("What?", [(5, "this")])]),
        SourceParagraph("B", "Not asked about."),
    ]
    made = list(questions(given, sentences.spans, counts))
    assert [each.passage.sentences for each in made] == [("Only this.",)]
    assert (counts["paragraphs"], counts["paragraphs_not_asked_about"]) == (2, 1)


def test_answers_in_odd_places_are_counted() -> None:
    counts: Counter[str] = Counter()
    assert found(ParagraphQuestion("?", [(999, "x"), (ROME.index("\n"), "\n"), (4, "grey")]), counts=counts) == [
        ("?", "Dr. Grey moved to Rome.")
    ]
    assert counts["answers_outside_all_sentences"] == 2
    assert counts["answers_not_where_they_are_said_to_be"] == 2


def test_spans_are_the_places_of_our_sentences() -> None:
    text = '  Dr. Grey  moved.\n\nNo 7 "left." (He did!)\tThen\u00a0she went.  '
    assert [" ".join(text[start:end].split()) for start, end in sentences.spans(text)] == sentences.split(text)
    assert all(text[start:end] == text[start:end].strip() for start, end in sentences.spans(text))
    assert sentences.spans(" \n") == []


# SQuAD


def squad_file(path: Path, count: int = 12) -> None:
    """SQuAD's JSON with one article of ``count`` paragraphs, each asked about twice."""
    paragraphs = []
    for n in range(count):
        text = f"Mr. Town {n} is old. It has {n} gates. The river of {n} is slow."
        asking = [(f"How many gates has town {n}?", f"{n} gates"), (f"What is slow in {n}?", "river")]
        qas = [
            {"id": f"{n}-{text}", "question": ask, "answers": [{"answer_start": text.index(answer), "text": answer}]}
            for ask, answer in asking
        ]
        paragraphs.append({"context": text, "qas": qas})
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "Old_towns", "paragraphs": paragraphs}]}))


def fields(folder: Path | None, **given: Any) -> PublishedReqaFields:
    entry = {"kind": "squad-reqa", "path": str(folder) if folder else None, "files": ["train.json", "dev.json"]}
    return PublishedReqaFields.model_validate(entry | {"ratios": [10, 50], "draws": 2} | given)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    squad_file(folder / "train.json")
    squad_file(folder / "dev.json", 14)
    (folder / "rules.py").write_text(BY_FULL_STOP)
    return folder


def build(files: Path, folder: Path, **given: Any) -> dict[str, Any]:
    return kinds.build_collection("squad-reqa", {"impl": 1, **fields(files, **given).resolve()}, folder, source=files)


def test_equal_paragraphs_of_two_files_are_one_passage(files: Path, tmp_path: Path) -> None:
    counts = build(files, tmp_path / "c")
    assert (counts["queries"], counts["tuples"], counts["candidates"]) == (28, 28, 14 * 3)
    assert counts["files"]["inputs"] == 2 * (12 + 14)
    rows = list(Collection(tmp_path / "c").corpus())
    assert (rows[0]["title"], rows[1]["sentence"]) == ("Old towns", "It has 0 gates.")
    assert set(Collection(tmp_path / "c").clusters().values()) == {"Old towns"}


def test_shares_and_draws_part_the_questions_without_a_leak(files: Path, tmp_path: Path) -> None:
    build(files, tmp_path / "c")
    collection = Collection(tmp_path / "c")
    for draw in ("10", "50", "10-s1", "50-s1"):
        train, valid, test = (set(collection.qrels(f"{role}-{draw}")) for role in ("train", "valid", "test"))
        assert len(train | valid | test) == len(train) + len(valid) + len(test) == 28


def test_the_rules_for_sentences_decide_the_candidates_and_the_identity(files: Path, tmp_path: Path) -> None:
    ours, theirs = fields(files).resolve(), fields(files, sentences="rules.py").resolve()
    assert ours["rules"] == sentences.RULES
    assert "rules" not in theirs
    assert "rules.py" in theirs["content"]
    assert build(files, tmp_path / "a")["candidates"] == 42
    assert build(files, tmp_path / "b", sentences="rules.py")["candidates"] == 56, "'Mr.' is a sentence there"


def test_published_rules_must_have_their_function(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text("x = 1\n")
    with pytest.raises(EncoreError, match=r"rules\.py has no infer_sentence_breaks"):
        splitter(tmp_path / "rules.py")
    (tmp_path / "rules.py").write_text("not python")
    with pytest.raises(EncoreError, match="has no infer_sentence_breaks"):
        splitter(tmp_path / "rules.py")


def test_other_counts_than_published_are_said_and_stay_on_record(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(files, tmp_path / "c", expected={"queries": 28, "candidates": 99})
    assert capsys.readouterr().out.splitlines() == [
        f"warning: 42 candidates, 99 are published; sentences are split by {sentences.RULES}"
    ]
    kept = json.loads((tmp_path / "c/statistics.json").read_text())
    assert (kept["published"], kept["sentence_rules"]) == ({"queries": 28, "candidates": 99}, sentences.RULES)


def test_tables_say_that_sentences_are_not_the_papers() -> None:
    ours, theirs = fields(None, expected={"queries": 1}), fields(None, expected={"queries": 1}, sentences="a:b.py")
    assert ours.note is not None
    assert f"split by {sentences.RULES}" in ours.note
    assert theirs.note is fields(None).note is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", r"train\.json: not JSON"),
        ("[]", r"train\.json: has no list `data`"),
        ('{"data": [{}]}', "article 0: has no list `paragraphs`"),
        ('{"data": [{"paragraphs": [{"context": "A."}]}]}', "article 0, paragraph 0: has no list `qas`"),
        ('{"data": [{"paragraphs": [{"context": " ", "qas": []}]}]}', "paragraph 0: has no `context`"),
        ('{"data": [{"paragraphs": [{"context": "A.", "qas": [{"answers": []}]}]}]}', "question 0: needs `question`"),
        (
            '{"data": [{"paragraphs": [{"context": "A.", "qas": [{"question": "?", "answers": []}]}]}]}',
            "question 0: is empty or has no answer",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "A.", "qas": [{"question": "?", "answers": '
            '[{"answer_start": "0", "text": "A"}]}]}]}]}',
            "question 0: `answer_start` must be a number",
        ),
    ],
)
def test_what_is_not_squads_form_is_refused_with_its_place(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "train.json").write_text(content)
    with pytest.raises(EncoreError, match=said):
        list(squad_reqa.squad_paragraphs([tmp_path / "train.json"], Counter()))


# Natural Questions

WORDS = [
    "<H1>",
    "Rain",
    "</H1>",
    "<P>",
    "The",
    "Big",
    "<B>",
    "Rain",
    "</B>",
    "(",
    "storm",
    ")",
    "began",
    ".",
    "It",
    "'s",
]
WORDS += ["over", ",", "now", "<SUP>", "2", "</SUP>", ".", "</P>"]
PAGE = "<H1>Rain</H1>\n<P>The Big <B>Rain</B> (storm) began. It's over, now<SUP class='a b'>2</SUP>.</P>"
TEXT = "The Big Rain (storm) began. It's over, now2."


def row(form: str, short: tuple[int, int] = (14, 17), long: tuple[int, int] = (3, 24), **given: Any) -> dict[str, Any]:
    """A row of the original or of the simplified form; ``short`` and ``long`` are places of tokens."""
    spans = [dict(zip(("start_token", "end_token"), short, strict=True))] if short else []
    answer = {"short_answers": spans, "long_answer": {"start_token": long[0], "end_token": long[1]}}
    common = {"question_text": "is it over", "example_id": 7, "annotations": [answer]}
    if form == "simplified":
        address = "https://en.wikipedia.org//w/index.php?title=Big_Rain_%28film%29&amp;oldid=81"
        return {**common, "document_url": address, "document_text": " ".join(WORDS), **given}
    tokens, at = [], 0
    for word in WORDS:
        start = PAGE.index(word[:-1] if word.startswith("<S") else word, at)
        at = PAGE.index(">", start) + 1 if word.startswith("<") else start + len(word)
        tokens.append({"token": word, "start_byte": start, "end_byte": at, "html_token": word.startswith("<")})
    return {**common, "document_title": "Big Rain (film)", "document_html": PAGE, "document_tokens": tokens, **given}


def read(path: Path, rows: list[dict[str, Any]], counts: Counter[str] | None = None) -> list[SourceParagraph]:
    path.write_bytes(gzip.compress("".join(json.dumps(each) + "\n" for each in rows).encode()))
    return list(nq_reqa.nq_paragraphs([path], counts if counts is not None else Counter()))


@pytest.mark.parametrize(("form", "text"), [("original", TEXT), ("simplified", TEXT.replace("now2", "now 2"))])
def test_a_row_becomes_a_paragraph_with_the_place_of_its_answer(tmp_path: Path, form: str, text: str) -> None:
    (paragraph,) = read(tmp_path / "nq.jsonl.gz", [row(form)])
    assert (paragraph.title, paragraph.text) == ("Big Rain (film)", text)
    assert paragraph.questions == [ParagraphQuestion("is it over", [(text.index("It's"), "It's over")])]


@pytest.mark.parametrize("form", ["original", "simplified"])
def test_rows_count_with_one_short_answer_in_a_paragraph(tmp_path: Path, form: str) -> None:
    counts: Counter[str] = Counter()
    heading = row(form, (1, 2), (0, 3))
    several = row(form)
    several["annotations"][0]["short_answers"] *= 2
    assert (
        len(read(tmp_path / "nq.gz", [row(form), row(form, ()), several, row(form, long=(-1, -1)), heading], counts))
        == 1
    )
    assert counts == {
        "rows": 5,
        "rows_without_one_short_answer": 2,
        "rows_without_long_answer": 1,
        "rows_whose_long_answer_is_no_paragraph": 1,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        "{}",
        json.dumps(row("simplified", annotations=[])),
        json.dumps(row("simplified", (1, 2))),
        json.dumps({**row("simplified"), "document_text": None}),
        json.dumps({**row("original"), "document_html": None}),
    ],
)
def test_a_wrong_row_is_named_by_its_line(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "nq.jsonl").write_text(json.dumps(row("simplified")) + "\n" + wrong + "\n")
    with pytest.raises(EncoreError, match=r"nq\.jsonl, line 2: no row of Natural Questions"):
        list(nq_reqa.nq_paragraphs([tmp_path / "nq.jsonl"], Counter()))


# The open domain


def test_the_open_domain_adds_sentences_of_another_collection(files: Path, tmp_path: Path) -> None:
    asked_about = "Mr. Town 3 is old.  It has 3 GATES. The river of 3 is slow."
    wiki = [{"_id": f"w{n}", "title": f"T{n}", "text": f"One of {n}. Two of {n}."} for n in range(10)]
    write_collection(tmp_path / "wiki", [{"_id": "w-copy", "title": "", "text": asked_about}, *wiki], [], {})
    spec = fields(files, of="wikipedia", distractors=20).resolve()
    counts = kinds.build_collection("squad-reqa", spec, tmp_path / "c", source=files, base=tmp_path / "wiki")
    assert (counts["candidates"], counts["distractors"], counts["passages"]) == (42, 20, 62)
    rows = [each for each in Collection(tmp_path / "c").corpus() if each["_id"].startswith("w")]
    assert {each["_id"].partition("#")[0] for each in rows} == {f"w{n}" for n in range(10)}, "not the asked passage"
    plain = fields(files)
    assert fields(files, of="wikipedia", distractors=20).questions_identity == plain.questions_identity
    with pytest.raises(EncoreError, match="there are 20 distractors, 21 are asked for"):
        kinds.build_collection(
            "squad-reqa", spec | {"distractors": 21}, tmp_path / "d", source=files, base=tmp_path / "wiki"
        )
    with pytest.raises(EncoreError, match="needs --collection"):
        kinds.build_collection("squad-reqa", spec, tmp_path / "e", source=files)


@pytest.mark.parametrize("given", [{"of": "wikipedia"}, {"distractors": 5}])
def test_distractors_and_where_they_come_from_go_together(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="give both, or none"):
        fields(None, **given)


@pytest.mark.usefixtures("at_the_root")
def test_they_are_planned_without_their_files() -> None:
    plan = load_plan(Path("config/nano.yaml"))
    opened = plan.collection("nq-reqa-open")
    assert set(opened.inputs) == {"source.nq-simplified", "source.reqa-sentences", "collection"}
    assert opened.inputs["collection"].stage == "collection.wikipedia"
    asked = plan.collection("squad-reqa")
    assert asked.spec["source.squad"] == asked.inputs["source.squad"].name
    assert (
        plan.resolve.dataset("nq-reqa").fields.questions_identity
        == plan.resolve.dataset("nq-reqa-open").fields.questions_identity
        != plan.resolve.dataset("squad-reqa").fields.questions_identity
    )
    assert (
        published.PublishedReqaFields.model_validate(plan.resolve.dataset("squad-reqa").fields.model_dump()).draws == 3
    )


def test_a_forecast_counts_the_files(files: Path, tmp_path: Path) -> None:
    entry = {"kind": "squad-reqa", "path": str(files), "files": ["train.json", "dev.json"], "draws": 1}
    made, size = (
        build(files, tmp_path / "made"),
        kinds.load_kind("squad-reqa").fields.model_validate(entry).known_size(),
    )
    assert size.passages == pytest.approx(made["candidates"], rel=0.1)
    assert size.queries == {"all": 28.0}, "of 14 paragraphs, which both files have"
    entry["files"] = ["squad:train.json"]
    assert kinds.load_kind("squad-reqa").fields.model_validate(entry).known_size().passages is None
