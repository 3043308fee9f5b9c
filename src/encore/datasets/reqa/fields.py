"""What the configuration says about every ReQA collection, whatever its source."""

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from encore.config.datasets import KnownSize
from encore.config.strict import Positive
from encore.data.text_fields import FormFields, Segments

SENTENCE = ".sentence"  # how the splits end that are judged by ReQA's own rule, the sentence's string
CUTS = (1, 5, 10, 50, 100)
SENTENCE_IN_PASSAGE: Segments = (("sentence",), ("title", "text"))


class ReqaFields(FormFields):
    """Fields of all ReQA collections. Their splits follow from the shares and the draws, with roles and measures."""

    segments: Segments = SENTENCE_IN_PASSAGE
    ratios: tuple[Annotated[int, Field(gt=0, lt=100)], ...] = Field(
        (1, 5, 10, 80), description="percentages of the questions that train"
    )
    draws: Positive = Field(3, description="ways to draw each of them; all but the first are called -s1, -s2, …")
    valid_share: Annotated[int, Field(gt=0, lt=100)] = Field(10, description="percentage of these that validates")
    salt: str = Field("reqa-1", description="hashed with a question's string to order a draw")
    distractors: int = Field(0, ge=0, description="further candidates that answer nothing, for the open domain")

    @model_validator(mode="before")
    @classmethod
    def _name_the_splits(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "splits" in given:
            return given
        ratios, draws = (given.get(name, cls.model_fields[name].default) for name in ("ratios", "draws"))
        if not isinstance(ratios, list | tuple) or not isinstance(draws, int):  # their own checks say what is wrong
            return {**given, "splits": {}}
        return {**given, "splits": _splits([cls.draw(ratio, draw) for draw in range(draws) for ratio in ratios])}

    @staticmethod
    def draw(ratio: int, draw: int) -> str:
        """The name of a share and a draw: ``80``, ``80-s1``."""
        return f"{ratio}-s{draw}" if draw else str(ratio)

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
        named = self.model_dump(exclude={"splits", "absent", "of", "segments"}, mode="json")
        return {**named, **self.form.to_spec()}


def _splits(draws: list[str]) -> dict[str, Any]:
    recall = {f"R@{cut}": f"R@{cut}" for cut in CUTS}
    best = {f"R@{cut}": f"Success@{cut}" for cut in CUTS}
    splits: dict[str, Any] = {}
    for name in draws:
        splits[f"train-{name}"] = {"role": "train"}
        splits[f"valid-{name}"] = {"role": "valid", "measures": {"R@10": "R@10"}}
        splits[f"test-{name}"] = {"role": "test", "measures": recall}
        splits[f"test-{name}{SENTENCE}"] = {"role": "test", "topics": f"test-{name}", "measures": best}
    return splits
