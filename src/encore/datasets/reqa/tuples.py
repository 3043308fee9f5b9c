"""Passages, questions and candidates of ReQA, whatever they come from (Ahmad et al. 2019; Chang et al. 2020, 4.1)."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from encore.data.collection import Row

IDENTITY = 16  # hexadecimal digits of a question's id


@dataclass(frozen=True)
class Passage:
    """A passage in sentences; ``id`` has no white space. ``whole`` is its text, where the sentences joined are not."""

    id: str
    title: str
    sentences: tuple[str, ...]
    whole: str = ""

    @property
    def text(self) -> str:
        """The passage as one string."""
        return self.whole or " ".join(self.sentences)

    def candidate(self, sentence: int) -> str:
        """The id of the pair (sentence, passage)."""
        return f"{self.id}#{sentence}"


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question, and the candidate that answers it: sentence number ``sentence`` of ``passage``."""

    text: str
    passage: Passage
    sentence: int
    cluster: str = ""  # what its errors go with: an article, a module; its own without

    @property
    def id(self) -> str:
        """A function of the string: identical questions are one query."""
        return "q:" + hashlib.sha256(self.text.encode()).hexdigest()[:IDENTITY]

    @property
    def candidate(self) -> str:
        """The id of the pair (sentence, passage) that answers the question."""
        return self.passage.candidate(self.sentence)


def candidates(passages: Iterable[Passage]) -> Iterator[Row]:
    """Every pair of a sentence and its passage, in order: rows of a corpus with a further field, ``sentence``."""
    for passage in passages:
        for number, sentence in enumerate(passage.sentences):
            yield {"_id": passage.candidate(number), "title": passage.title, "text": passage.text, "sentence": sentence}


def queries(questions: Iterable[AnsweredQuestion]) -> list[Row]:
    """One row a distinct string, in order of first mention; its cluster is that of the first mention.

    A question that several passages answer may be in several clusters, of which this is one.
    """
    rows: dict[str, Row] = {}
    for each in questions:
        row: Row = {"_id": each.id, "text": each.text}
        rows.setdefault(each.id, {**row, "metadata": {"cluster": each.cluster}} if each.cluster else row)
    return list(rows.values())


def exact(questions: Iterable[AnsweredQuestion]) -> dict[str, set[str]]:
    """Gold pairs by query: the sentence in its passage, and nothing else. A question asked twice may have two."""
    gold: dict[str, set[str]] = {}
    for each in questions:
        gold.setdefault(each.id, set()).add(each.candidate)
    return gold


def same_sentence(gold: dict[str, set[str]], passages: Iterable[Passage]) -> dict[str, set[str]]:
    """ReQA's own rule: every candidate whose sentence is, as a string, that of a gold pair.

    With `Success@k` on these judgments a query counts by its best rank, as identical questions do in ReQA's evaluator.
    """
    passages = list(passages)
    wanted = {name for pairs in gold.values() for name in pairs}
    sentence_of = {name: sentence for name, sentence in _named(passages) if name in wanted}
    # Of few among a million candidates.
    alike: dict[str, set[str]] = {sentence: set() for sentence in sentence_of.values()}
    for name, sentence in _named(passages):
        if sentence in alike:
            alike[sentence].add(name)
    return {query: set().union(*(alike[sentence_of[name]] for name in pairs)) for query, pairs in gold.items()}


def _named(passages: Iterable[Passage]) -> Iterator[tuple[str, str]]:
    for passage in passages:
        for number, sentence in enumerate(passage.sentences):
            yield passage.candidate(number), sentence
