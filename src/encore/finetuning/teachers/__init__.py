"""Teachers' scores or vectors of training queries and passages, computed once for every student."""

from typing import Any, Literal

from encore.config.datasets import Ignored


class TeacherRequest(Ignored):
    """What a teacher gives, of which queries: scores of pairs, vectors of texts, or the scores listed in a run.

    Of published scores it has the digests of the user's files alone.
    """

    form: Literal["scores", "vectors", "listed", "published"]
    content: dict[str, str] | None = None  # None for fetched files, whose manifest has the digests
    split: str = ""
    queries: int | None = None
    sample: int = 0
    least_negatives: int = 0
    fill: int = 0  # negatives of a query that are scored
    numerics: dict[str, Any] = {}
