"""From DPR's files to a collection in the common form."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from encore.data.collection import NEGATIVES, NEGATIVES_HEADER, Judgment, Located, Row, write_collection
from encore.datasets import source_files
from encore.datasets.dpr import questions
from encore.datasets.dpr.fields import DprFields
from encore.datasets.dpr.passages import passages
from encore.datasets.dpr.questions import DprQuestion
from encore.datasets.kinds import BuildInputs, Kind
from encore.errors import EncoreError
from encore.storage.files import open_text_writer


def build_dpr(spec: dict[str, Any], folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, a resolved ``DprFields``, describes; returns its counts.

    Questions are numbered in the order of their file: ``train-0``, ``test-0``. A question whose file lists no positive
    passage has no judgments, so it stands in no split. Passages that say nothing are left out and counted.

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
        read = questions.with_passages if each["with_passages"] else questions.with_answers
        found = _kept(read(paths[each["file"]]), split, rows, answers, counts)
        if each["with_passages"]:
            judged[split] = list(_judgments(_listing(folder, split, found), split, counts))
        else:
            query_ids[split] = [name for name, _ in found]
    corpus = paths[spec["passages"]]
    written = write_collection(
        folder,
        Located(corpus, _documents(passages(corpus), counts)),
        rows,
        judged,
        answers=answers,
        questions=query_ids,
    )
    _compare(counts, spec["expected"])
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


def _compare(counts: Mapping[str, int], expected: Mapping[str, int]) -> None:
    for what, published in expected.items():
        if counts.get(what, 0) != published:
            raise EncoreError(
                f"{counts.get(what, 0)} {what} were read, {published} are published; fetch the file again, or correct "
                "`expected:`"
            )


KIND = Kind(DprFields, build_dpr)
