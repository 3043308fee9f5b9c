"""Open-domain questions over Wikipedia in passages of 100 words, as DPR publishes them (Karpukhin et al. 2020).

Three forms of files (``dpr_files.py``): passages, training questions with passages of three kinds, and questions with
answers alone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, model_validator

from encore.config.datasets import CollectionFields, KnownSize, MadeFrom, Split
from encore.data.collection import NEGATIVES, NEGATIVES_HEADER, Judgment, Located, Row, write_collection
from encore.datasets import dpr_files, source_files
from encore.datasets.dpr_files import DprQuestion
from encore.datasets.kinds import BuildInputs, Kind
from encore.storage.files import open_text_writer

COUNTED = ("queries", "judgments", "negatives")


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
    lists_negatives: ClassVar[bool] = True

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
        return {
            "kind": self.kind,
            "passages": self.passages,
            "splits": {
                name: {"file": split.file, "with_passages": split.with_passages} for name, split in self.splits.items()
            },
            "expected": self.expected,
            **source_files.identity(self.files(), self.path),
        }


def build_dpr(spec: dict[str, Any], folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, a resolved ``DprFields``, describes; returns its counts.

    Questions are numbered in the order of their file: ``train-0``, ``test-0``. A question whose file lists no positive
    passage has no judgments, so it is in no split. Empty passages are left out and counted.

    Raises:
        EncoreError: a file is missing or not the planned one, a line of it is wrong, or it holds other counts than
            are expected.
    """
    files = [spec["passages"], *(split["file"] for split in spec["splits"].values())]
    paths = source_files.located(dict.fromkeys(files), inputs.source, inputs.sources, spec)
    counts: Counter[str] = Counter()
    rows: list[Row] = []
    answers: list[Row] = []
    judged: dict[str, list[Judgment]] = {}
    query_ids: dict[str, list[str]] = {}
    for split, each in spec["splits"].items():
        read = dpr_files.with_passages if each["with_passages"] else dpr_files.with_answers
        found = _kept(read(paths[each["file"]]), split, rows, answers, counts)
        if each["with_passages"]:
            judged[split] = list(_judgments(_listing(folder, split, found), split, counts))
        else:
            query_ids[split] = [name for name, _ in found]
    corpus = paths[spec["passages"]]
    written = write_collection(
        folder,
        Located(corpus, _documents(dpr_files.passages(corpus), counts)),
        rows,
        judged,
        answers=answers,
        questions=query_ids,
    )
    source_files.refuse_other_counts(counts, spec["expected"], spec["passages"])
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
    """Write down the negatives that questions list, as they come by."""
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


def _documents(found: Iterable[tuple[int, Row]], counts: Counter[str]) -> Iterator[tuple[int, Row]]:
    for line, row in found:
        counts["passages"] += 1
        if row["text"].strip() or row["title"].strip():
            yield line, row
        else:
            counts["empty"] += 1


KIND = Kind(DprFields, build_dpr)
