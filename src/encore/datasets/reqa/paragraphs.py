"""Paragraphs that people have asked about, and what becomes of them by the rules of the ReQA evaluation.

The rules are those of google/retrieval-qa-eval, squad_eval.py (Ahmad et al. 2019). Every answer of a question counts,
not the first alone; it is in the sentence that holds its first character. A question has each answering sentence once,
and a paragraph each sentence; paragraphs of one text are one passage. Nothing is left out for being ambiguous or short:
an answer whose text stands in several sentences has the place that its author marked, and a paragraph of one sentence
has one candidate. The paper counts a tuple (question, sentence, passage) once (Chang et al. 2020, table 2).
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from encore.datasets.reqa.splitters import Spans
from encore.datasets.reqa.tuples import IDENTITY, AnsweredQuestion, Passage


@dataclass
class ParagraphQuestion:
    """A question about a paragraph, with its answers: where each begins, and its text."""

    text: str
    answers: list[tuple[int, str]]


@dataclass
class SourceParagraph:
    """A paragraph of an article, as it was published, and what was asked about it."""

    title: str
    text: str
    questions: list[ParagraphQuestion] = field(default_factory=list)


def questions(paragraphs: Iterable[SourceParagraph], spans: Spans, counts: Counter[str]) -> Iterator[AnsweredQuestion]:
    """Every (question, answering sentence, passage), in order; what is odd goes to ``counts``.

    Questions that differ in white space alone are one, or it would train and be tested; the evaluation counts strings,
    so these are counted as well, as `published_queries` and `published_tuples`.
    """
    strings: set[tuple[str, str]] = set()
    for paragraph in paragraphs:
        counts["paragraphs"] += 1
        if not paragraph.questions:
            counts["paragraphs_not_asked_about"] += 1
            continue
        places = spans(paragraph.text)
        sentences = [paragraph.text[start:end] for start, end in places]
        passage = _passage(paragraph, sentences)
        for question in paragraph.questions:
            counts["asked"] += 1
            counts["ambiguous"] += _ambiguous(question, sentences)
            for sentence in dict.fromkeys(_answering(question, paragraph.text, places, sentences, counts)):
                counts["inputs"] += 1
                found = AnsweredQuestion(
                    _line(question.text), passage, passage.sentences.index(_line(sentence)), paragraph.title
                )
                strings.add((question.text, found.candidate))
                yield found
    counts["published_queries"] = len({text for text, _ in strings})
    counts["published_tuples"] = len(strings)


def _passage(paragraph: SourceParagraph, sentences: list[str]) -> Passage:
    """The passage of a paragraph, called after its text."""
    name = "p:" + hashlib.sha256(paragraph.text.encode()).hexdigest()[:IDENTITY]
    return Passage(
        name, paragraph.title, tuple(dict.fromkeys(filter(None, map(_line, sentences)))), _line(paragraph.text)
    )


def _answering(
    question: ParagraphQuestion, text: str, places: list[tuple[int, int]], sentences: list[str], counts: Counter[str]
) -> Iterator[str]:
    for first, answer in question.answers:
        sentence = next((number for number, (start, end) in enumerate(places) if start <= first < end), None)
        counts["answers"] += 1
        counts["answers_not_where_they_are_said_to_be"] += not text.startswith(answer, first)
        if sentence is None:
            counts["answers_outside_all_sentences"] += 1
        else:
            yield sentences[sentence]


def _ambiguous(question: ParagraphQuestion, sentences: list[str]) -> bool:
    """Whether an answer's text stands in more than one sentence, so that its place alone tells which is meant."""
    return any(sum(answer in sentence for sentence in sentences) > 1 for _, answer in question.answers)


def _line(text: str) -> str:
    return " ".join(text.split())
