"""Who belongs to training, validation and test, and what must not be read before the test."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from tools.pydocs.objects import Object, words
from tools.pydocs.passages import SHINGLE


def split_of(module: str, salt: str, train: int, valid: int) -> str:
    """The split of all queries of a module: ``train`` and ``valid`` are percentages, the rest is test."""
    place = int(hashlib.sha1(f"{salt}:{module}".encode()).hexdigest(), 16) % 100
    return "train" if place < train else "valid" if place < train + valid else "test"


class HeldOutQueries:
    """Queries of validation and test, which no text that is learned from may say.

    A body says a query when it holds more than half of the query's runs of six words (a shorter query is one run), so
    that slight rewordings count as well.
    """

    def __init__(self, queries: Iterable[str]) -> None:
        self._of_run: dict[tuple[str, ...], list[int]] = {}
        self._runs: list[int] = []
        for query in queries:
            runs = set(_runs(words(query)))
            for run in runs:
                self._of_run.setdefault(run, []).append(len(self._runs))
            self._runs.append(len(runs))
        self._openings = {run[:2] for run in self._of_run}
        self._lengths = sorted({len(run) for run in self._of_run})

    def without(self, each: Object) -> Object:
        """The object with the sentences removed that say a held-out query."""
        found = self.containing(each.sentences)
        if not found:
            return each
        return replace(each, sentences=tuple(text for number, text in enumerate(each.sentences) if number not in found))

    def containing(self, sentences: Iterable[str]) -> set[int]:
        """Numbers of the sentences that say a held-out query, alone or together with their neighbours."""
        found: dict[int, dict[tuple[str, ...], set[int]]] = {}
        for run, touched in self._hits(list(sentences)):
            for query in self._of_run[run]:
                found.setdefault(query, {}).setdefault(run, set()).update(touched)
        full = [runs.values() for query, runs in found.items() if 2 * len(runs) > self._runs[query]]
        return set().union(*(touched for runs in full for touched in runs))

    def _hits(self, sentences: list[str]) -> Iterator[tuple[tuple[str, ...], list[int]]]:
        """Held-out runs in a text, with the numbers of the sentences that they touch."""
        placed = [(word, number) for number, sentence in enumerate(sentences) for word in words(sentence)]
        text = [word for word, _ in placed]
        for start, opening in enumerate(pairwise(text)):
            if opening in self._openings:
                for length in self._lengths:
                    run = tuple(text[start : start + length])
                    if len(run) == length and run in self._of_run:
                        yield run, [number for _, number in placed[start : start + length]]


def _runs(query: list[str]) -> Iterator[tuple[str, ...]]:
    for start in range(max(1, len(query) - SHINGLE + 1)):
        yield tuple(query[start : start + SHINGLE])
