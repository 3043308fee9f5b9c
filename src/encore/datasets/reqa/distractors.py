"""Candidates that answer nothing, for search in an open domain (Chang et al. 2020, section 4.4 and table 6)."""

import heapq
from collections.abc import Callable, Iterable

from encore.data.collection import order
from encore.datasets.reqa.tuples import Passage
from encore.errors import EncoreError

Pool = Iterable[tuple[str, Callable[[], Passage]]]  # each passage's id, and how it is read when it is wanted


def ready(passages: Iterable[Passage]) -> Pool:
    """Passages that are read already, as a pool."""
    for passage in passages:
        yield passage.id, lambda passage=passage: passage  # type: ignore[misc]  # bound now, not when it is called


def distractors(pool: Pool, gold: Iterable[Passage], count: int, salt: str) -> list[Passage]:
    """A uniform sample of passages that together have ``count`` sentences; the last is cut there.

    The paper says neither how it sampled nor how it kept answers out. Here passages are taken in the order of a hash of
    their id, and one whose text is that of a passage that is asked about is passed over. Of a pool, however large, no
    more is held than what may be taken, and no more read into sentences.

    Raises:
        EncoreError: the pool has fewer sentences than that.
    """
    known = {_text(passage) for passage in gold}
    taken: list[tuple[_Descending, Passage]] = []  # a heap, the last in order on top
    held = 0
    for name, read in pool if count else ():
        place = _Descending(order(name, salt))
        if held >= count and not taken[0][0] < place:
            continue
        passage = read()
        if not passage.sentences or _text(passage) in known:
            continue
        heapq.heappush(taken, (place, passage))
        held += len(passage.sentences)
        while held - len(taken[0][1].sentences) >= count:
            held -= len(heapq.heappop(taken)[1].sentences)
    if held < count:
        raise EncoreError(f"there are {held} distractors, {count} are asked for; lower `distractors`")
    if held > count:
        place, last = taken[0]
        taken[0] = place, Passage(last.id, last.title, last.sentences[: count - held])
    return sorted((passage for _, passage in taken), key=lambda each: each.id)


class _Descending(str):
    """A text that a heap, which has the smallest on top, takes the other way round."""

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


def _text(passage: Passage) -> str:
    return " ".join(passage.text.lower().split())
