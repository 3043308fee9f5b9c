"""Candidates that answer nothing, for search in an open domain (Chang et al. 2020, table 6)."""

from collections.abc import Iterable

from encore.collections.common import smallest
from encore.collections.reqa.tuples import Passage
from encore.errors import EncoreError


def distractors(pool: Iterable[Passage], gold: Iterable[Passage], count: int, salt: str) -> list[Passage]:
    """A uniform sample of passages that together have ``count`` sentences; the last is cut there.

    The paper says neither how it sampled nor how it kept answers out. Here passages are taken in the order of a hash of
    their id, and one whose text is that of a passage that is asked about is passed over.

    Raises:
        EncoreError: the pool has fewer sentences than that.
    """
    known = {_text(passage) for passage in gold}
    free = {passage.id: passage for passage in pool if _text(passage) not in known}
    taken: list[Passage] = []
    missing = count
    for passage in (free[name] for name in smallest(free, len(free), salt)):
        if missing <= 0:
            break
        sentences = passage.sentences[:missing]
        taken.append(Passage(passage.id, passage.title, sentences))
        missing -= len(sentences)
    if missing > 0:
        raise EncoreError(f"there are {count - missing} distractors, {count} are asked for; lower `distractors`")
    return sorted(taken, key=lambda each: each.id)


def _text(passage: Passage) -> str:
    return " ".join(passage.text.lower().split())
