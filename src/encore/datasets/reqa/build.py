"""From passages and questions to a ReQA collection in the common form, whatever their source."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encore.data.collection import Row, write_collection
from encore.datasets.reqa import tuples
from encore.datasets.reqa.distractors import Pool, distractors
from encore.datasets.reqa.fields import ReqaFields
from encore.datasets.reqa.parts import qrels, split_questions
from encore.datasets.reqa.tuples import AnsweredQuestion, Passage


def write_reqa(
    folder: Path, questions: Sequence[AnsweredQuestion], others: Pool, fields: ReqaFields, **statistics: Any
) -> dict[str, Any]:
    """Write the collection and return its counts.

    Args:
        questions: what is asked; the passages that these are about are the candidates.
        others: passages that distractors are drawn from, where the fields ask for some.

    Raises:
        EncoreError: too few questions for the shares, or too few distractors.
    """
    questioned = tuples.in_use(questions)
    added = distractors(others, questioned, fields.distractors, fields.salt)
    passages = [*questioned, *added]
    gold = tuples.exact(questions)
    found = split_questions(gold, fields)
    return write_collection(
        folder,
        tuples.candidates(passages),
        tuples.queries(questions),
        qrels(found, gold, tuples.same_sentence(gold, passages)),
        map(_article, passages),
        statistics={
            "tuples": sum(map(len, gold.values())),
            "candidates": sum(len(passage.sentences) for passage in questioned),
            "distractors": sum(len(passage.sentences) for passage in added),
            **statistics,
        },
        form=fields.form,
    )


def _article(passage: Passage) -> Row:
    """A passage as an article, so that each sentence stands once in what a vocabulary or an objective may read."""
    section = {"title": "", "sentences": list(passage.sentences)}
    return {"_id": passage.id, "title": passage.title, "sections": [section], "links": []}
