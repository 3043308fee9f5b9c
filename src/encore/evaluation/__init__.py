"""Measures of runs, and tests of differences."""

from encore.config.validation import Strict


class EvaluationProtocol(Strict):
    """The measures of each split, and how a run's queries are judged."""

    splits: dict[str, dict[str, str]]  # each split's measures as ir-measures writes them, by their names in tables
    judged_by_answers: list[str] = []  # splits without judgments: passages are relevant if they contain an answer
    ignore_identical_ids: bool = False  # a document of the query's id counts as not retrieved; those below it move up
    scored_by_passages: bool = False  # passages are retrieved: documents are ranked by the best of their own
    queries: int | None = None  # of the sample that the run was made for
    sample: int = 0
