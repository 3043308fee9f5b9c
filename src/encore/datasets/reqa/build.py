"""What the configuration says of every ReQA collection, and from passages and questions to one in the common form.

Questions are split into training, validation and test for several shares of training, with several draws of each
(Chang et al. 2020, section 4.2).
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from encore.config.datasets import KnownSize, role_of
from encore.config.validation import Positive
from encore.data.articles import article
from encore.data.collection import Judgment, order, smallest, write_collection
from encore.data.text_fields import FormFields, Segments
from encore.datasets.reqa import tuples
from encore.datasets.reqa.tuples import AnsweredQuestion, Passage
from encore.errors import EncoreError

SENTENCE = ".sentence"  # how the splits end that are judged by ReQA's own rule, the sentence's string
CUTS = (1, 5, 10, 50, 100)
SALT = "reqa-1"  # hashed with a question's string to order a draw
SENTENCE_IN_PASSAGE: Segments = (("sentence",), ("title", "text"))
Pool = Iterable[tuple[str, Callable[[], Passage]]]  # each passage's id, and how it is read when it is wanted


class ReqaFields(FormFields):
    """Fields of all ReQA collections. Their splits follow from the shares and the draws, with roles and measures."""

    segments: Segments = SENTENCE_IN_PASSAGE
    ratios: tuple[Annotated[int, Field(gt=0, lt=100)], ...] = Field(
        (1, 5, 10, 80), description="percentages of the questions that train"
    )
    draws: Positive = Field(3, description="ways to draw each of them; all but the first are called -s1, -s2, …")
    valid_share: Annotated[int, Field(gt=0, lt=100)] = Field(10, description="percentage of these that validates")
    validation: Literal["each", "common"] = Field(
        "each",
        description="whether a part of each share validates it, or one part of the largest share validates all, which "
        "no share trains on or tests",
    )
    distractors: int = Field(0, ge=0, description="further candidates that answer nothing, for the open domain")

    @model_validator(mode="before")
    @classmethod
    def _name_the_splits(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "splits" in given:
            return given
        ratios, draws = (given.get(name, cls.model_fields[name].default) for name in ("ratios", "draws"))
        if not isinstance(ratios, list | tuple) or not isinstance(draws, int):  # their own checks say what is wrong
            return {**given, "splits": {}}
        common = given.get("validation") == "common"
        parts = [
            cls.split(role, None if role == "valid" and common else ratio, draw)
            for draw in range(draws)
            for ratio in ratios
            for role in ("train", "valid", "test")
        ]
        return {**given, "splits": _splits(parts)}

    @staticmethod
    def split(role: str, ratio: int | None, draw: int) -> str:
        """The name of a split of a share, or of all, and a draw: ``train-80``, ``test-80-s1``, ``valid``."""
        return "-".join([role, *([str(ratio)] if ratio else []), *([f"s{draw}"] if draw else [])])

    def serves(self, split: str, other: str) -> bool:
        """As of any collection; a common validation is also apart from what each share of its draw trains on."""
        number = [name.partition("-s")[2] for name in (split, other)]
        common = self.validation == "common" and "valid" in map(role_of, (split, other))
        return number[0] == number[1] if common else super().serves(split, other)

    takes_articles: ClassVar[bool] = True  # distractors are cut from them as they are read

    @property
    def questions_identity(self) -> dict[str, Any]:
        """What decides the questions and how they are split: with other distractors they are the same."""
        others = {"splits", "absent", "segments", "distractors", "distractors_from"}
        return self.model_dump(exclude=others, mode="json")

    def derived_size(self, base: KnownSize) -> None:
        """None: answers are like no passages of the collection that distractors are drawn from."""
        return

    def resolve(self) -> dict[str, Any]:
        """The content's identity: all fields but those that only say how it is used."""
        usual = {"validation"} if self.validation == "each" else set[str]()  # so that collections keep their names
        named = self.model_dump(exclude={"splits", "absent", "of", "segments", *usual}, mode="json")
        return {**named, "salt": SALT, **self.form.to_spec()}


def _splits(names: Iterable[str]) -> dict[str, Any]:
    recall = {f"R@{cut}": f"R@{cut}" for cut in CUTS}
    best = {f"R@{cut}": f"Success@{cut}" for cut in CUTS}
    splits: dict[str, Any] = {}
    for name in names:
        role = role_of(name)
        measures = {"train": {}, "valid": {"R@10": "R@10"}, "test": recall}[role]
        splits[name] = {"role": role} | ({"measures": measures} if measures else {})
        if role == "test":
            splits[name + SENTENCE] = {"role": role, "topics": name, "measures": best}
    return splits


def write_reqa(
    folder: Path, questions: Sequence[AnsweredQuestion], others: Pool, fields: ReqaFields, **statistics: Any
) -> dict[str, Any]:
    """Write the collection and return its counts.

    Args:
        questions: what is asked; the passages that these are about are the candidates.
        others: passages that distractors are drawn from, where the fields ask for some.
    """
    questioned = list({each.passage.id: each.passage for each in questions}.values())  # in order of first mention
    added = distractors(others, questioned, fields.distractors, SALT)
    passages = [*questioned, *added]
    gold = tuples.exact(questions)
    return write_collection(
        folder,
        tuples.candidates(passages),
        tuples.queries(questions),
        qrels(split_questions(gold, fields), gold, tuples.same_sentence(gold, passages)),
        # As articles, so that a vocabulary or an objective reads each sentence once.
        (article(each.id, each.title, [("", each.sentences)]) for each in passages),
        statistics={
            "tuples": sum(map(len, gold.values())),
            "candidates": sum(len(passage.sentences) for passage in questioned),
            "distractors": sum(len(passage.sentences) for passage in added),
            **statistics,
        },
        form=fields.form,
    )


def split_questions(queries: Iterable[str], fields: ReqaFields) -> dict[str, list[str]]:
    """Part the questions by their ids, which are those of distinct strings: no test question was ever trained on.

    Splits are named by their share and draw, as in ``train-1-s2``: 1 %, third draw.

    A draw is an order by hash. The first ``ratio`` percent of it are for training, of which the first ``valid_share``
    percent validate; the rest is the test. Within a draw a larger share of training holds a smaller one. A ``common``
    validation is the end of the largest share.
    """
    known, splits = list(queries), dict[str, list[str]]()
    for draw in range(fields.draws):
        drawn = smallest(known, len(known), f"{SALT}:{draw}")
        most = round(len(drawn) * max(fields.ratios) / 100)
        common = range(most - (round(most * fields.valid_share / 100) or 1), most)
        for ratio in fields.ratios:
            learned = round(len(drawn) * ratio / 100)
            valid = common if fields.validation == "common" else range(round(learned * fields.valid_share / 100) or 1)
            parts = {
                fields.split("train", ratio, draw): [i for i in range(learned) if i not in valid],
                fields.split("valid", None if fields.validation == "common" else ratio, draw): valid,
                fields.split("test", ratio, draw): [i for i in range(learned, len(drawn)) if i not in valid],
            }
            if not all(parts.values()):
                raise EncoreError(
                    f"{len(drawn)} questions are too few to train on {ratio} % of them; take larger `ratios`"
                )
            splits |= {name: [drawn[i] for i in places] for name, places in parts.items()}
    return splits


def qrels(
    splits: Mapping[str, list[str]], gold: Mapping[str, set[str]], alike: Mapping[str, set[str]]
) -> dict[str, list[Judgment]]:
    """Judgments by split: gold pairs everywhere, and those of ReQA's own rule for the tests."""
    judged: dict[str, list[Judgment]] = {}
    for split, queries in splits.items():
        judged[split] = _judgments(queries, gold)
        if role_of(split) == "test":
            judged[split + SENTENCE] = _judgments(queries, alike)
    return judged


def _judgments(queries: list[str], relevant: Mapping[str, set[str]]) -> list[Judgment]:
    return [Judgment(query, name, 1) for query in sorted(queries) for name in sorted(relevant[query])]


def ready(passages: Iterable[Passage]) -> Pool:
    """Passages that are read already, as a pool."""
    for passage in passages:
        yield passage.id, lambda passage=passage: passage  # type: ignore[misc]  # bound now, not when it is called


def distractors(pool: Pool, gold: Iterable[Passage], count: int, salt: str) -> list[Passage]:
    """A uniform sample of passages that together have ``count`` sentences; the last is cut there.

    The paper says neither how it sampled nor how it kept answers out. Here passages are taken in the order of a hash of
    their id, and one whose text is that of a passage that is asked about is passed over. Of a pool, however large, no
    more is held than what may be taken, and no more read into sentences.
    """
    known = {_text(passage) for passage in gold}
    taken: list[tuple[int, Passage]] = []  # a heap, the last in order on top
    held = 0
    for name, read in pool if count else ():
        place = -int(order(name, salt), 16)  # a heap has the smallest on top
        if held >= count and place <= taken[0][0]:
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


def _text(passage: Passage) -> str:
    return " ".join(passage.text.lower().split())
