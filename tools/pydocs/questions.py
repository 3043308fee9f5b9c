"""Questions about docstrings: "To sort an array, what is axis?", answered by the sentence that explains ``axis``.

They replace SQuAD and Natural Questions. A question is made of an object's summary and the name of a parameter, an
attribute or a field that its body explains in a sentence of the form ``axis (int): Axis along which to sort.``

Only objects whose summaries are queries of pydocs' validation and test are asked about: those summaries are in no text,
vocabulary or pair that pydocs gives to pre-training, so nothing has read a part of a question.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from encore.data.collection import Collection
from encore.storage.files import write_json, write_jsonl
from tools.pydocs.derived import PydocsObject, objects

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


Passage = dict[str, Any]  # {"_id", "title", "sentences", "questions"}: a row that kind ``prepared-reqa`` reads


def write_questions(folder: Path, base: Collection, packages: list[str]) -> None:
    """Write the passages of a pydocs that the packages have, with what is asked about them."""
    found = [passage for each in objects(base) if each.package in packages for passage in passages(each)]
    asked = sorted({passage["title"].partition(".")[0] for passage in found if passage["questions"]})
    write_jsonl(folder / "passages.jsonl", found)
    write_json(folder / "statistics.json", {"packages": asked})


def passages(each: PydocsObject) -> list[Passage]:
    """An object's body in passages: as many whole sentences as have 100 words together, a longer one by itself."""
    runs: list[list[str]] = [[]]
    for sentence in each.sentences:
        if runs[-1] and sum(len(text.split()) for text in (*runs[-1], sentence)) > PASSAGE_WORDS:
            runs.append([])
        runs[-1].append(sentence)
    return [
        {"_id": f"{each.id}:{number}", "title": each.module, "sentences": run, "questions": questions(each, run)}
        for number, run in enumerate(runs)
        if run
    ]


def questions(each: PydocsObject, sentences: list[str]) -> list[dict[str, Any]]:
    """The questions that some sentences of an object's body answer, in order; none without a held-out query."""
    if each.query is None or each.role not in ("valid", "test"):
        return []
    return [
        {"text": question(each.query, name), "sentence": number}
        for number, sentence in enumerate(sentences)
        if (name := explained(sentence))
    ]


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
