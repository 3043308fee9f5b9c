"""Which questions train, validate and test: several shares of training, several draws of each (Chang et al., 4.2)."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from encore.data.collection import Judgment, smallest
from encore.datasets.reqa.fields import SENTENCE, ReqaFields
from encore.errors import EncoreError


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
