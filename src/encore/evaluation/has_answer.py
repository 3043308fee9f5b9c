"""Judgments of what a run retrieved, by the answers to the questions: DPR's top-k accuracy is Success@k on them.

Nobody judged the passages of such a split. One is right if its text has an answer (``data/answers.py``), so only
passages that a measure may look at are matched. Every question of the split counts, whether or not anything was
retrieved for it (Karpukhin et al. 2020, section 4).
"""

from collections.abc import Iterable, Sequence

from encore.data import answer_matching
from encore.data.collection import Collection
from encore.data.rankings import Ranking, Run
from encore.evaluation.measures import Grades, Measure


def grades(run: Run, collection: Collection, questions: Sequence[str], wanted: Iterable[Measure]) -> Grades:
    """1 for a retrieved passage whose text has an answer, 0 for any other that the measures may look at.

    Raises:
        EncoreError: a question has no answers, or a retrieved document is not in the collection.
    """
    depths = [measure.cutoff for measure in wanted]
    deepest = max((depth for depth in depths if depth is not None), default=None) if all(depths) else None
    looked_at = {query: _head(run[query], deepest) if query in run else [] for query in questions}
    right = answer_matching.answering(looked_at, collection)
    return {query: {each: int(each in right[query]) for each in found} for query, found in looked_at.items()}


def _head(ranking: Ranking, depth: int | None) -> list[str]:
    """The documents down to a rank, and those behind it of the same score, which another order could bring forward."""
    if depth is None or depth >= len(ranking):
        return ranking.documents
    end = depth
    while end < len(ranking) and ranking.scores[end] == ranking.scores[depth - 1]:
        end += 1
    return ranking.documents[:end]
