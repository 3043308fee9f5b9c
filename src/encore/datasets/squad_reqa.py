"""SQuAD as ReQA. Its JSON, version 1.1, has articles of paragraphs, each with questions and the places of answers."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from encore.config.datasets import KnownSize
from encore.data.sentences import spans
from encore.datasets.reqa.paragraphs import ParagraphQuestion, SourceParagraph
from encore.datasets.reqa.published import PublishedReqaFields, published_kind
from encore.errors import EncoreError
from encore.storage.files import open_text

SAMPLE = 1000  # paragraphs whose sentences are counted


class SquadReqaFields(PublishedReqaFields):
    """An entry of the catalogue with ``kind: squad-reqa``."""

    def known_size(self) -> KnownSize:
        """Questions of the user's files, and candidates by the sentences of an even sample of paragraphs."""
        try:
            paragraphs = list(squad_paragraphs([Path(self.path or "", file) for file in self.files], Counter()))
        except EncoreError:  # they are fetched, or the collection's own job says what is wrong
            return KnownSize()
        asked = {each.text for paragraph in paragraphs for each in paragraph.questions}
        found = list(dict.fromkeys(each.text for each in paragraphs))
        sample = found[:: -(-len(found) // SAMPLE) or 1]
        if not asked:
            return KnownSize()
        sentences = sum(len(spans(text)) for text in sample)
        whole, words = len(found) / len(sample), [len(text.split()) for text in sample]
        return KnownSize(
            sentences * whole + self.distractors,
            sum(words) / sentences + sum(words) / len(words),  # a sentence, and its paragraph
            queries={"all": float(len(asked))},
            query_words=sum(len(text.split()) for text in asked) / len(asked),
        )


def squad_paragraphs(paths: Iterable[Path], counts: Counter[str]) -> Iterator[SourceParagraph]:
    """The paragraphs of all files, in order."""
    for path in paths:
        for number, article in enumerate(_articles(path)):
            for place, paragraph in enumerate(_list(article, "paragraphs", f"{path}, article {number}")):
                yield _paragraph(article, paragraph, f"{path}, article {number}, paragraph {place}")


def _articles(path: Path) -> list[Any]:
    try:
        with open_text(path) as file:
            content = json.load(file)
    except (ValueError, OSError, EOFError, RecursionError) as error:
        raise EncoreError(f"{path}: not JSON in UTF-8 ({error}); replace the file") from error
    return _list(content, "data", str(path))


def _paragraph(article: Any, paragraph: Any, place: str) -> SourceParagraph:
    questions = [
        _question(each, f"{place}, question {number}") for number, each in enumerate(_list(paragraph, "qas", place))
    ]
    if not isinstance(paragraph.get("context"), str) or not paragraph["context"].strip():
        raise EncoreError(f"{place}: has no `context`; fix or remove it")
    return SourceParagraph(str(article.get("title", "")).replace("_", " "), paragraph["context"], questions)


def _question(each: Any, place: str) -> ParagraphQuestion:
    answers = _list(each, "answers", place)
    try:
        question, found = each["question"], [(answer["answer_start"], answer["text"]) for answer in answers]
    except (KeyError, TypeError) as error:
        raise EncoreError(f"{place}: needs `question`, and `text` and `answer_start` of its answers; fix it") from error
    if not isinstance(question, str) or not question.strip() or not found:
        raise EncoreError(f"{place}: is empty or has no answer; fix or remove it")
    if not all(isinstance(start, int) and start >= 0 and isinstance(text, str) for start, text in found):
        raise EncoreError(f"{place}: `answer_start` must be a number of characters, and `text` a text; fix it")
    return ParagraphQuestion(question, found)


def _list(holder: Any, name: str, place: str) -> list[Any]:
    if not isinstance(holder, dict) or not isinstance(holder.get(name), list):
        raise EncoreError(f"{place}: has no list `{name}`, as SQuAD's files have; name such a file, or fix it")
    found: list[Any] = holder[name]
    return found


KIND = published_kind(squad_paragraphs, SquadReqaFields)
