"""Open-domain questions over Wikipedia in passages of 100 words, as DPR publishes them (Karpukhin et al. 2020).

Files have three forms: passages, training questions with passages of three kinds (a JSON array, larger than memory and
read as a stream), and questions with answers alone. Rows are tab-separated, with the quoting of CSV.
"""

import ast
import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import ijson
from pydantic import BaseModel, Field, model_validator

from encore.config.datasets import CollectionFields, CollectionSpec, KnownSize, MadeFrom, Split
from encore.data.collection import NEGATIVES, NEGATIVES_HEADER, Judgment, Located, Row, write_collection
from encore.datasets import source_files
from encore.datasets.kinds import BuildInputs, Kind
from encore.errors import EncoreError
from encore.storage.files import open_text_writer
from encore.storage.text_files import DAMAGED, numbered_lines, opened

COUNTED = ("queries", "judgments", "negatives")
HEADER = ["id", "text", "title"]  # of passages
BY_PEOPLE = 1000  # the score that DPR gives to the passage that people had marked
IDS = ("passage_id", "psg_id")  # of a passage: in files of Natural Questions, in those of TriviaQA
DEEPEST = 100  # brackets within brackets: what ijson's own ``items`` keeps grows with the square of the depth


@dataclass
class DprQuestion:
    """A question, its place in the file, and the passages that the file lists for it, by id."""

    text: str
    answers: list[str]
    place: str
    positives: dict[str, int] = field(default_factory=dict)  # 2: marked by people, 1: retrieved with an answer in it
    negatives: list[str] = field(default_factory=list)  # retrieved by BM25, without an answer, best first


class DprSplit(Split):
    """Questions of one file: with passages (a JSON array) to train on, or with answers alone (``.csv``) for a test."""

    file: str = Field(description="`source:file`, or a file in the dataset's `path`")

    @property
    def with_passages(self) -> bool:
        """True if the file lists passages for each question, so the split has judgments."""
        return self.judged_by == "judgments"


class DprFields(CollectionFields):
    """An entry of the catalogue with ``kind: dpr``."""

    only_passages: ClassVar[bool] = True

    path: str | None = Field(None, exclude=True, description="the folder of your own files")
    passages: str = Field(description="the file of passages: `source:file`, or a file in `path`")
    splits: Mapping[str, DprSplit] = Field(description="the splits that are used, by name")
    expected: dict[str, int] = Field(
        {}, description="`passages`, `queries.<split>`, `judgments.<split>`, … as published; other counts are refused"
    )

    @model_validator(mode="after")
    def _expect_what_is_counted(self) -> "DprFields":
        counted = {"passages", *(f"{what}.{split}" for what in COUNTED for split in self.splits)}
        source_files.refuse_uncounted(self.expected, counted)
        return self

    listed_negatives_used: ClassVar[Literal["if asked"]] = "if asked"  # files of training questions list some

    def files(self) -> list[str]:
        """Every file that is read, by its place."""
        return list(dict.fromkeys([self.passages, *(split.file for split in self.splits.values())]))

    @property
    def made_from(self) -> MadeFrom:
        """The user's folder, and the sources that files are named of."""
        return MadeFrom(path=self.path, sources=source_files.sources(self.files()))

    def known_size(self) -> KnownSize:
        """The published counts."""
        return KnownSize.published(self.expected)

    def resolve(self) -> dict[str, Any]:
        """All that decides the content."""
        named = self.model_dump(include={"kind", "passages", "expected"})
        splits = {name: {"file": each.file, "with_passages": each.with_passages} for name, each in self.splits.items()}
        return {**named, "splits": splits, **source_files.identity(self.files(), self.path)}


class DprFile(BaseModel):
    """The file of a split, and whether it lists passages for each question."""

    file: str
    with_passages: bool


class DprSpec(CollectionSpec):
    """The same fields, resolved."""

    passages: str
    splits: dict[str, DprFile]
    expected: dict[str, int]


def build_dpr(spec: DprSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, a resolved ``DprFields``, describes; returns its counts.

    Questions are numbered in the order of their file: ``train-0``, ``test-0``. A question whose file lists no positive
    passage has no judgments, so it is in no split. Empty passages are left out and counted.
    """
    files = [spec.passages, *(split.file for split in spec.splits.values())]
    paths = source_files.located(dict.fromkeys(files), inputs.source, inputs.sources, spec.content)
    counts: Counter[str] = Counter()
    rows: list[Row] = []
    answers: list[Row] = []
    judged: dict[str, list[Judgment]] = {}
    query_ids: dict[str, list[str]] = {}
    for split, each in spec.splits.items():
        read = with_passages if each.with_passages else with_answers
        found = _kept(read(paths[each.file]), split, rows, answers, counts)
        if each.with_passages:
            judged[split] = list(_judgments(_listing(folder, split, found), split, counts))
        else:
            query_ids[split] = [name for name, _ in found]
    corpus = paths[spec.passages]
    written = write_collection(
        folder, Located(corpus, _documents(corpus, counts)), rows, judged, answers=answers, questions=query_ids
    )
    source_files.refuse_other_counts(counts, spec.expected, spec.passages)
    return {**written, "files": dict(counts)}


def _kept(
    found: Iterable[DprQuestion], split: str, rows: list[Row], answers: list[Row], counts: Counter[str]
) -> Iterator[tuple[str, DprQuestion]]:
    """Questions with their ids; their texts and answers are kept, and nothing of the passages that they list."""
    for number, question in enumerate(found):
        name = f"{split}-{number}"
        rows.append({"_id": name, "text": question.text})
        answers.append({"_id": name, "answers": question.answers})
        counts[f"queries.{split}"] += 1
        yield name, question


def _listing(folder: Path, split: str, found: Iterable[tuple[str, DprQuestion]]) -> Iterator[tuple[str, DprQuestion]]:
    with open_text_writer(folder / NEGATIVES / f"{split}.tsv.gz") as file:
        file.write(NEGATIVES_HEADER + "\n")
        for name, question in found:
            file.writelines(f"{name}\t{document}\t{rank}\n" for rank, document in enumerate(question.negatives, 1))
            yield name, question


def _judgments(found: Iterable[tuple[str, DprQuestion]], split: str, counts: Counter[str]) -> Iterator[Judgment]:
    for name, question in found:
        counts[f"judgments.{split}"] += len(question.positives)
        counts[f"negatives.{split}"] += len(question.negatives)
        counts[f"without_positive.{split}"] += not question.positives
        for document, grade in question.positives.items():
            yield Judgment(name, document, grade, question.place)


def _documents(corpus: Path, counts: Counter[str]) -> Iterator[tuple[int, Row]]:
    for line, row in passages(corpus):
        counts["passages"] += 1
        if row["text"].strip() or row["title"].strip():
            yield line, row
        else:
            counts["empty"] += 1


def passages(path: Path) -> Iterator[tuple[int, Row]]:
    """Rows of a corpus, with their lines; those without text or title too."""
    for number, row in columns(path):
        if number == 1:
            if row != HEADER:
                raise EncoreError(f"{path}, line 1: the header must be id, text and title, tab-separated; add it")
        elif len(row) != len(HEADER):
            raise EncoreError(
                f"{path}, line {number}: {len(row)} columns, 3 separated by tabs are expected; fix or remove the line"
            )
        else:
            yield number, {"_id": row[0], "title": row[2], "text": row[1]}


def with_answers(path: Path) -> Iterator[DprQuestion]:
    """Rows ``question<TAB>['answer', …]``, the answers as a Python list."""
    for number, row in columns(path):
        place = f"{path}, line {number}"
        if len(row) != 2:
            raise EncoreError(
                f"{place}: {len(row)} columns, a question and its answers separated by a tab are expected"
            )
        try:
            answers = ast.literal_eval(row[1])
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
            raise EncoreError(f"{place}: {row[1][:60]!r} is not a Python list of answers; fix or remove it") from error
        yield _question(row[0], answers, place)


def with_passages(path: Path) -> Iterator[DprQuestion]:
    """Elements ``{"question", "answers", "positive_ctxs", "hard_negative_ctxs", …}`` of a JSON array.

    A passage that is listed twice counts where it comes first, positives before negatives.
    """
    for number, element in enumerate(elements(path), 1):
        place = f"{path}, element {number}"
        try:
            question = _question(element["question"], element["answers"], place)
            for each in element["positive_ctxs"]:
                question.positives.setdefault(_id(each), 2 if float(each.get("score", 0)) == BY_PEOPLE else 1)
            listed = dict.fromkeys(map(_id, element.get("hard_negative_ctxs", ())))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EncoreError(
                f'{place}: needs "question", "answers", "positive_ctxs" and passages with "passage_id" ({error!r}); '
                "fix or remove it"
            ) from error
        question.negatives = [name for name in listed if name not in question.positives]
        yield question


def _question(text: Any, answers: Any, place: str) -> DprQuestion:
    """A question as DPR reads it, with straight apostrophes."""
    if not isinstance(text, str) or not text.strip():
        raise EncoreError(f"{place}: the question is empty; fix or remove it")
    if not isinstance(answers, list | tuple) or not all(isinstance(each, str) for each in answers):
        raise EncoreError(f"{place}: the answers of {text!r} are not a list of texts; fix or remove it")
    kept = [each for each in answers if each.strip()]
    if not kept:
        raise EncoreError(f"{place}: {text!r} has no answer, so nothing can be right; add one or remove it")
    try:
        "".join([text, *kept]).encode()
    except UnicodeEncodeError as error:
        raise EncoreError(
            f"{place}: {text!r} or an answer to it holds half of a surrogate pair, which no UTF-8 can say; fix it"
        ) from error
    return DprQuestion(text.replace("\u2019", "'"), kept, place)


def _id(passage: dict[str, Any]) -> str:
    return str(passage[IDS[0]] if IDS[0] in passage else passage[IDS[1]])


def columns(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows with their lines. Every line is read for itself, so that one with a quote too many cannot swallow others."""
    for number, line in numbered_lines(path):
        try:
            yield number, next(csv.reader([line], delimiter="\t", strict=True), [])
        except csv.Error as error:
            raise EncoreError(
                f"{path}, line {number}: cannot be split into columns ({error}); fix its quotes, or remove the line"
            ) from error


def elements(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of an array in UTF-8, one after another; a packed file is unpacked."""
    number = 1
    with opened(path) as file:
        try:
            if not file.peek(1024).lstrip().startswith(b"["):
                raise EncoreError(f"{path}: a JSON array is expected, which begins with `[`; replace the file")
            for element in _items(file):
                if not isinstance(element, dict):
                    raise EncoreError(f"{path}, element {number}: an object is expected; replace the file")
                yield element
                number += 1
        except (*DAMAGED, ijson.JSONError) as error:
            reason = str(error).partition("\n")[0].partition("\\n")[0]  # then come the text and a mark below it
            raise EncoreError(f"{path}, element {number}: damaged or cut short ({reason}); replace the file") from error


def _items(file: Any) -> Iterator[Any]:
    events = ijson.basic_parse(file, use_float=True)
    next(events)  # where the array begins
    depth, builder = 0, ijson.ObjectBuilder()
    for event, value in events:
        depth += (event in ("start_map", "start_array")) - (event in ("end_map", "end_array"))
        if depth > DEEPEST:
            raise ijson.JSONError(f"nested more than {DEEPEST} deep")
        if depth >= 0:  # below is where the array ends
            builder.event(event, value)
        if depth == 0:
            yield builder.value
            builder = ijson.ObjectBuilder()


KIND = Kind(DprFields, DprSpec, build_dpr)
