"""From passages and questions to a ReQA collection in the common form, whatever their source.

Questions are split into training, validation and test for several shares of training, with several draws of each
(Chang et al. 2020, section 4.2).
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from encore.data.collection import Judgment, Row, smallest, write_collection
from encore.datasets.reqa import tuples
from encore.datasets.reqa.distractors import Pool, distractors
from encore.datasets.reqa.fields import SENTENCE, ReqaFields
from encore.datasets.reqa.tuples import AnsweredQuestion, Passage
from encore.errors import EncoreError


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
    """A passage as an article, so that a vocabulary or an objective reads each sentence once."""
    section = {"title": "", "sentences": list(passage.sentences)}
    return {"_id": passage.id, "title": passage.title, "sections": [section], "links": []}


class QuestionSplits(NamedTuple):
    """One way to part the questions; ``name`` is that of the draw, as in ``train-1-s2``: 1 %, third draw."""

    name: str
    train: list[str]
    valid: list[str]
    test: list[str]


def split_questions(queries: Iterable[str], fields: ReqaFields) -> list[QuestionSplits]:
    """Part the questions by their ids, which are those of distinct strings: no test question was ever trained on.

    A draw is an order by hash. The first ``ratio`` percent of it are for training, of which the first ``valid_share``
    percent validate; the rest is the test. Within a draw a larger share of training holds a smaller one.

    Raises:
        EncoreError: so few questions that a part would be empty.
    """
    known = list(queries)
    found = []
    for draw in range(fields.draws):
        order = smallest(known, len(known), f"{fields.salt}:{draw}")
        for ratio in fields.ratios:
            learned = round(len(order) * ratio / 100)
            held = round(learned * fields.valid_share / 100) or 1
            part = QuestionSplits(fields.draw(ratio, draw), order[held:learned], order[:held], order[learned:])
            if not (part.train and part.test):
                raise EncoreError(
                    f"{len(order)} questions are too few to train on {ratio} % of them; take larger `ratios`"
                )
            found.append(part)
    return found


def qrels(
    found: Iterable[QuestionSplits], gold: Mapping[str, set[str]], alike: Mapping[str, set[str]]
) -> dict[str, list[Judgment]]:
    """Judgments by split: gold pairs everywhere, and those of ReQA's own rule for the tests."""
    splits: dict[str, list[Judgment]] = {}
    for part in found:
        for role in ("train", "valid", "test"):
            splits[f"{role}-{part.name}"] = _judgments(getattr(part, role), gold)
        splits[f"test-{part.name}{SENTENCE}"] = _judgments(part.test, alike)
    return splits


def _judgments(queries: list[str], relevant: Mapping[str, set[str]]) -> list[Judgment]:
    return [Judgment(query, name, 1) for query in sorted(queries) for name in sorted(relevant[query])]
