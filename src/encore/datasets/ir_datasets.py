"""A collection that the library ir_datasets knows: documents by one id, queries and judgments of a split by another.

A separate rule fetches what it needs (``download/ir_datasets.py``); here nothing is downloaded.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, Field, model_validator

from encore.config.datasets import KnownSize, MadeFrom, Split, role_of
from encore.config.languages import SPOKEN, language_code
from encore.config.validation import Positive
from encore.data.collection import Judgment, Row, rows_of_answers, write_collection
from encore.data.judgments import JudgedFields, JudgedSpec, not_relevant
from encore.data.validation import says_something
from encore.datasets.download.ir_datasets import count, explained, offline
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.source_files import hold_out, refuse_other_counts, refuse_uncounted
from encore.errors import EncoreError

Load = Callable[[str], Any]


class IrDatasetsSplit(Split):
    """One set of queries and judgments of ir_datasets."""

    id: str | None = Field(
        None, description="as ir_datasets names it; without, the collection's, if nothing is held out"
    )
    prefix: str = Field("", pattern=r"^\S*$", description="of its queries' ids, where two splits number alike")
    grades: dict[int, int] = Field({}, description="the grades that are kept, and as which; all as they are without")


class QuerySet(BaseModel):
    """Queries and judgments by the id of one set, and the grades that are kept, each with what it becomes."""

    id: str
    prefix: str = ""
    grades: list[tuple[int, int]] = []


class IrDatasetsFields(JudgedFields):
    """An entry of the catalogue with ``kind: ir-datasets``."""

    only_passages: ClassVar[bool] = True

    id: str = Field(description="whose documents these are")
    splits: Mapping[str, IrDatasetsSplit] = Field(description="the splits that are used, by name")
    rename: dict[str, str] = Field({}, description="a document's field here: its name at ir_datasets, if it differs")
    valid_queries: Positive | None = Field(
        None, description="training queries held out, by hash of their id, as the split `valid`, which then has no `id`"
    )
    expected: dict[str, Positive] = Field(
        {}, description="`passages`, `queries.<split>` or `judgments.<split>` as published; other counts are refused"
    )
    licence: str = Field(exclude=True, description="in a few words")
    terms: str = Field(exclude=True, description="the address of the page that offers it and has its terms")

    @model_validator(mode="after")
    def _know_where_validation_comes_from_and_what_is_counted(self) -> "IrDatasetsFields":
        if self.valid_queries and ("train" not in self.splits or "valid" not in self.splits or self.splits["valid"].id):
            raise ValueError(
                "valid_queries holds out training queries: it needs a split `train`, and `valid` without an id"
            )
        counted = {"passages"} | {f"{what}.{split}" for what in ("queries", "judgments") for split in self._sets()}
        refuse_uncounted(self.expected, counted)
        return self

    @property
    def made_from(self) -> MadeFrom:
        """What is downloaded: the documents' id, then those of the splits, each once."""
        return MadeFrom(ids=[self.id, *sorted({split.id for split in self._sets().values()})])

    def known_size(self) -> KnownSize:
        """The published counts, or else the library's; of a split, queries or judgments, whatever is fewer."""
        found = {"passages": count(self.id, "docs")}
        for name, each in self._sets().items():
            both = (count(each.id, "queries"), count(each.id, "qrels"))
            found[f"queries.{name}"] = min(filter(None, both), default=None)
        known = {name: number for name, number in found.items() if number}
        return KnownSize.published(known | self.expected).holding_out(self.valid_queries)

    def resolve(self) -> dict[str, Any]:
        """All that decides the content."""
        named = self.model_dump(include={"kind", "id", "rename", "expected"})
        splits = {name: each.model_dump(mode="json") for name, each in self._sets().items()}
        ours = {"splits": splits, "held_out": self.valid_queries}
        return {**named, **ours, **self.to_spec(), **self.form.to_spec()}

    def _sets(self) -> dict[str, QuerySet]:
        held_out = {"valid"} if self.valid_queries else set()
        return {
            name: QuerySet(id=split.id or self.id, prefix=split.prefix, grades=list(split.grades.items()))
            for name, split in self.splits.items()
            if name not in held_out
        }


class IrDatasetsSpec(JudgedSpec):
    """The same fields, resolved."""

    id: str
    splits: dict[str, QuerySet]
    rename: dict[str, str] = {}
    expected: dict[str, int] = {}
    held_out: int | None = None


def build_ir_datasets(spec: IrDatasetsSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, a resolved ``IrDatasetsFields``, describes; returns its counts.

    Documents that say nothing are left out with their judgments, and counted.
    """
    load = offline(inputs.needed_data_root())
    counts = dict[str, int]()
    qrels = {split: list(_judgments(load, each, split, counts)) for split, each in spec.splits.items()}
    if spec.held_out:
        qrels |= hold_out(qrels, "train", "valid", spec.held_out)
    training = [split for split in qrels if spec.listed_negatives and role_of(split) == "train"]
    negatives = {split: not_relevant(qrels[split]) for split in training}
    if not all(negatives.values()):
        raise EncoreError(f"{spec.id} judges no training passage as not relevant (0); leave `listed_negatives` out")
    empty: set[str] = set()
    with explained(spec.id):
        names = sorted(spec.form.fields | {"title", "text"})
        theirs = {name: spec.rename.get(name, name) for name in names}
        answers: dict[str, list[str]] = {}
        written = write_collection(
            folder,
            _documents(load(spec.id), theirs, empty, counts),
            _queries(load, spec.splits.values(), answers),
            qrels,
            form=spec.form,
            answers=rows_of_answers(answers),
            negatives=negatives,
            empty=empty,
            unknown_judgments=spec.unknown_judgments,
        )
    refuse_other_counts(counts, spec.expected, spec.id)
    return {**written, "empty": len(empty), **_other_languages(load, spec)}


def _other_languages(load: Load, spec: IrDatasetsSpec) -> dict[str, str]:
    """Languages of passages and queries other than the dataset's, as far as ir_datasets knows them."""
    queries = {load(each.id).queries_lang() for each in spec.splits.values()}
    codes = {"passages": {load(spec.id).docs_lang()}, "queries": queries}
    found = {kind: {language_code(code) for code in own if code} for kind, own in codes.items()}
    others = {kind: ", ".join(sorted(own - {spec.language})) for kind, own in found.items()}
    return {SPOKEN[kind]: named for kind, named in others.items() if named}


def _documents(dataset: Any, theirs: Mapping[str, str], empty: set[str], counts: dict[str, int]) -> Iterator[Row]:
    """Documents that say something; ids of the others go to ``empty``, how many there are to ``counts``.

    Args:
        theirs: the library's name of each of our fields.
    """
    has = dataset.docs_cls()._fields
    for name, field in theirs.items():
        if field not in has and (field, name) != ("title", "title"):
            raise EncoreError(f"documents of {dataset.dataset_id()} have no {field!r}; they have {', '.join(has)}")
    counts["passages"] = 0
    for document in dataset.docs_iter():
        counts["passages"] += 1
        row = {name: getattr(document, field, "") or "" for name, field in theirs.items()}
        if any(map(says_something, row.values())):
            yield {"_id": document.doc_id, **row}
        else:
            empty.add(document.doc_id)


def _queries(load: Load, sets: Iterable[QuerySet], answers: dict[str, list[str]]) -> Iterator[Row]:
    """Every query once; its answers, if known, are added to ``answers``."""
    seen: dict[str, str] = {}
    for each in sets:
        for query in load(each.id).queries_iter():
            name = each.prefix + query.query_id
            text = query.text if hasattr(query, "text") else query.default_text()  # of TREC's topics, the title
            if name not in seen:
                seen[name] = text
                if given := [answer for answer in getattr(query, "answers", ()) if answer.strip()]:
                    answers[name] = given
                yield {"_id": name, "text": text}
            elif seen[name] != text:
                raise EncoreError(f"{each.id}: query {name!r} is another one in another split; give one a `prefix:`")


def _judgments(load: Load, own: QuerySet, split: str, counts: dict[str, int]) -> Iterator[Judgment]:
    kept = dict(own.grades)
    judged = set()
    judgments = 0
    with explained(own.id):
        for each in load(own.id).qrels_iter():
            judged.add(each.query_id)
            judgments += 1
            if not kept or each.relevance in kept:
                yield Judgment(
                    own.prefix + each.query_id, each.doc_id, kept.get(each.relevance, each.relevance), own.id
                )
    counts |= {f"queries.{split}": len(judged), f"judgments.{split}": judgments}


KIND = Kind(IrDatasetsFields, IrDatasetsSpec, build_ir_datasets)
