"""Validation from training queries, for collections that have no judgments for it, or whose only ones are reported."""

from encore.data.collection import Judgment, smallest
from encore.errors import EncoreError


def hold_out(qrels: dict[str, list[Judgment]], source: str, split: str, queries: int) -> dict[str, list[Judgment]]:
    """Training judgments parted into those that stay and those of the ``queries`` held out for validation.

    Raises:
        EncoreError: there are not more training queries than that.
    """
    judged = dict.fromkeys(judgment.query for judgment in qrels[source])
    if queries >= len(judged):
        last = qrels[source][-1].place
        raise EncoreError(
            f"{last + ': ' if last else ''}valid_queries is {queries}, but {source} ends with query {len(judged)}, and "
            "some must stay to train on; hold out fewer"
        )
    held_out = set(smallest(judged, queries, "valid"))
    return {
        source: [judgment for judgment in qrels[source] if judgment.query not in held_out],
        split: [judgment for judgment in qrels[source] if judgment.query in held_out],
    }
