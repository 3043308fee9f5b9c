"""What counts as the answer to a query that has graded judgments."""

from collections.abc import Mapping


def highest(judged: Mapping[str, int]) -> set[str]:
    """The documents of a query's highest grade, none if nothing is relevant.

    Known-item collections grade the own passage above those that are merely related: only the first is the answer.
    """
    best = max(judged.values(), default=0)
    return {document for document, grade in judged.items() if grade == best > 0}
