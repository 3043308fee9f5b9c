"""Paragraphs that people have asked about, and what becomes of them by the rules of the ReQA evaluation.

The rules are those of google/retrieval-qa-eval, squad_eval.py (Ahmad et al. 2019). Every answer of a question counts,
not the first alone; it is in the sentence that holds its first character. A question has each answering sentence once,
and a paragraph each sentence; paragraphs of one text are one passage. Nothing is left out for being ambiguous or short:
an answer whose text is in several sentences has the place that its author marked, and a paragraph of one sentence
has one candidate. The paper counts a tuple (question, sentence, passage) once (Chang et al. 2020, table 2).

A paragraph is split into sentences by our rules or by those published with the evaluation, on which the number of
candidates depends. The published rules are a Python file (sb_sed.py) that is fetched by its digest and run as it is;
its ``infer_sentence_breaks(text)`` gives the places of sentences.
"""

import hashlib
import runpy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from encore.data import sentences
from encore.datasets.reqa.tuples import IDENTITY, AnsweredQuestion, Passage
from encore.errors import EncoreError

Spans = Callable[[str], list[tuple[int, int]]]  # where each sentence of a text begins and ends
OWN = "encore"
_FUNCTION = "infer_sentence_breaks"


def splitter(rules: Path | None) -> Spans:
    """The sentences of a text by rules that were published as a file; by our own without one."""
    if rules is None:
        return sentences.spans
    try:
        breaks = runpy.run_path(str(rules))[_FUNCTION]
    except Exception as error:
        raise EncoreError(f"{rules} has no {_FUNCTION} ({error!r}); name the published rules, or `{OWN}`") from error
    return lambda text: list(breaks(text))


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
        name = "p:" + hashlib.sha256(paragraph.text.encode()).hexdigest()[:IDENTITY]
        lines = tuple(dict.fromkeys(filter(None, map(_line, sentences))))
        passage = Passage(name, paragraph.title, lines, _line(paragraph.text))
        for question in paragraph.questions:
            counts["asked"] += 1
            # Where an answer's text is in more than one sentence, only its place shows which is meant.
            said = (sum(answer in sentence for sentence in sentences) for _, answer in question.answers)
            counts["ambiguous"] += any(times > 1 for times in said)
            for sentence in dict.fromkeys(_answering(question, paragraph.text, places, sentences, counts)):
                counts["inputs"] += 1
                found = AnsweredQuestion(
                    _line(question.text), passage, passage.sentences.index(_line(sentence)), paragraph.title
                )
                strings.add((question.text, found.candidate))
                yield found
    counts["published_queries"] = len({text for text, _ in strings})
    counts["published_tuples"] = len(strings)


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


def _line(text: str) -> str:
    return " ".join(text.split())
