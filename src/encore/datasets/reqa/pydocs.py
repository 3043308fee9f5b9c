"""Questions about docstrings: "To sort an array, what is axis?", answered by the sentence that explains ``axis``.

They stand for SQuAD and Natural Questions. A question is made of an object's summary and the name of a parameter, an
attribute or a field that its body explains in a sentence of the form ``axis (int): Axis along which to sort.``

Only objects whose summaries are queries of pydocs' validation and test are asked about: those summaries are in no text,
vocabulary or pair that pydocs gives to pre-training, so nothing has read a part of a question.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from encore.config.datasets import MadeFrom
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.pydocs.derived import PydocsObject, objects
from encore.datasets.reqa.build import write_reqa
from encore.datasets.reqa.distractors import ready
from encore.datasets.reqa.fields import ReqaFields
from encore.datasets.reqa.tuples import AnsweredQuestion, Passage

PASSAGE_WORDS = 100
LEAST_WORDS = 3  # of an explanation
_EXPLAINED = re.compile(r"\*{0,2}(?P<name>[a-z_]\w*|[A-Z]\w?) ?(?:\([^()]*(?:\([^()]*\)[^()]*)*\) ?)?: (?P<text>.+)")
_NO_NAME = re.compile(
    "(?i)notes?|warning|examples?|defaults?|returns|see|todo|tip|hint|true|false|none|or|and|i|e|__.*",
)
_VERB = re.compile(
    "add|apply|append|assert|build|calculate|cast|check|clear|close|collect|combine|compare|compile|compute|concatenate"
    "|construct|convert|copy|count|create|decode|define|delete|describe|determine|display|divide|draw|drop|encode|estimate"
    "|evaluate|execute|expand|extract|fill|filter|find|fit|format|generate|get|give|handle|implement|indicate|insert"
    "|interpolate|iterate|join|load|make|map|mark|match|merge|minimize|move|multiply|normalize|open|parse|perform|plot"
    "|predict|print|process|provide|query|raise|read|register|remove|rename|replace|reset|resolve|retrieve|return|run"
    "|sample|save|scale|search|select|send|set|shift|show|simplify|simulate|solve|sort|split|start|stop|store|subtract"
    "|test|transform|translate|try|turn|update|use|validate|verify|write|yield"
)


class PydocsReqaFields(ReqaFields):
    """An entry of the catalogue with ``kind: pydocs-reqa``."""

    embedded: ClassVar[bool] = True

    kind: Literal["pydocs-reqa"]
    of: str = Field(description="the pydocs whose objects are asked about")
    packages: list[str] = Field(description="import names of the packages whose objects are asked about")
    distractors_from: list[str] = Field([], description="import names of the packages that distractors come from")

    @property
    def made_from(self) -> MadeFrom:
        """The collection of docstrings."""
        return MadeFrom(base=self.of)


def build_pydocs_reqa(spec: dict[str, Any], folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, resolved fields, describes; returns its counts.

    Raises:
        EncoreError: the collection that it is made of is missing or no pydocs, or has too few questions or
            distractors.
    """
    fields = PydocsReqaFields.model_validate({**{key: spec[key] for key in spec if key not in _ADDED}, "of": "pydocs"})
    found = list(objects(inputs.needed_base()))
    chosen = [each for each in found if each.package in fields.packages and each.role in ("valid", "test")]
    others = (passage for each in found if each.package in fields.distractors_from for passage in passages(each))
    made = [question for each in chosen for question in questions(each)]
    packages = {question.cluster.partition(".")[0] for question in made}
    return write_reqa(folder, made, ready(others), fields, packages=sorted(packages))


_ADDED = ("impl", "collection")  # what the plan adds to a spec


def passages(each: PydocsObject) -> list[Passage]:
    """An object's body in passages: as many whole sentences as have 100 words together, a longer one by itself."""
    runs: list[list[str]] = [[]]
    for sentence in each.sentences:
        if runs[-1] and sum(len(text.split()) for text in (*runs[-1], sentence)) > PASSAGE_WORDS:
            runs.append([])
        runs[-1].append(sentence)
    return [Passage(f"{each.id}:{number}", each.module, tuple(run)) for number, run in enumerate(runs) if run]


def questions(each: PydocsObject) -> Iterator[AnsweredQuestion]:
    """The questions that an object's body answers, in order."""
    for passage in passages(each):
        for number, sentence in enumerate(passage.sentences):
            if name := explained(sentence):
                yield AnsweredQuestion(question(each.query or "", name), passage, number, each.module)


def explained(sentence: str) -> str | None:
    """The name that a sentence explains: ``axis (int): Axis along which to sort.`` -> ``axis``; None for others."""
    found = _EXPLAINED.fullmatch(sentence)
    if found is None or _NO_NAME.fullmatch(found["name"]):
        return None
    return found["name"] if len(found["text"].split()) >= LEAST_WORDS else None


def question(summary: str, name: str) -> str:
    """``Sorts an array`` -> ``To sort an array, what is axis?``; ``For …`` before what begins with no known verb."""
    first, _, rest = summary.partition(" ")
    verb = next((form for form in _base_forms(first.lower()) if _VERB.fullmatch(form)), None)
    if verb is not None:
        return f"To {verb} {rest}, what is {name}?"
    lowered = first.lower() if first in ("A", "An", "The", "This", "These", "Class") else first
    return f"For {lowered} {rest}, what is {name}?"


def _base_forms(word: str) -> Iterable[str]:
    """A verb's possible base forms: ``applies`` -> apply, ``matches`` -> match, ``returns`` -> return, itself."""
    yield word
    for ending, base in (("ies", "y"), ("es", ""), ("s", "")):
        if word.endswith(ending):
            yield word.removesuffix(ending) + base


KIND = Kind(PydocsReqaFields, build_pydocs_reqa)
