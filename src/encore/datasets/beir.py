"""A folder in BEIR's layout: ``corpus.jsonl``, ``queries.jsonl`` (packed or not) and ``qrels/<split>.tsv``.

``answers.jsonl`` next to them may have the right answers to queries that are questions: ``{"_id", "answers": [...]}``.

Anybody's data can come this way, so every row is checked, and a bad one is named with its file and line.
"""

from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from encore.config.datasets import KnownSize, Split, role_of
from encore.config.validation import Positive
from encore.data import qrels as judged
from encore.data.collection import NEGATIVES, QRELS_HEADER, Judgment, refuse_shared, write_collection
from encore.data.judgments import JudgedFields, JudgedSpec, not_relevant
from encore.data.qrels import read_negatives
from encore.data.validation import Located, Row, asked, once, without_empty
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.source_files import estimated, hold_out, refuse_changed
from encore.errors import EncoreError, quoted
from encore.storage.files import contents, remembered_contents
from encore.storage.text_files import PACKED, numbered_objects, opened


class BeirSplit(Split):
    """One file of judgments."""

    grades: dict[int, int] = Field({}, description="the grades that are kept, and as which; all as they are without")


class BeirFields(JudgedFields):
    """An entry of the catalogue with ``kind: beir``."""

    only_passages: ClassVar[bool] = True

    path: str = Field(description="the folder; relative to the repository's root")
    splits: Mapping[str, BeirSplit] = Field(description="the splits that are used, by name")
    valid_queries: Positive | None = Field(
        None,
        description="training queries held out, by hash of their id, as the split of role valid; it then has no file",
    )
    windows: tuple[Positive, Positive] | None = Field(
        None,
        description="words of a passage that a long document is cut into, and from one's beginning to the next's; its "
        "score is then the highest of its passages (MaxP)",
    )
    empty_documents: Literal["refuse", "drop"] = Field(
        "refuse",
        description="`drop` leaves them out, with empty queries, their judgments, and rows that are there twice",
    )

    @property
    def missing(self) -> str | None:
        """What to do about a folder that cannot be downloaded; None if it is there, or its files are simply read."""
        return super().missing if self.access else None

    @model_validator(mode="after")
    def _can_be_cut(self) -> "BeirFields":
        if self.windows and self.ignore_identical_ids:
            raise ValueError("documents cut into `windows` have no query's id; leave out `ignore_identical_ids`")
        if self.windows and self.unknown_judgments == "keep":
            raise ValueError("`windows` are cut from documents that are here; leave out `unknown_judgments: keep`")
        if self.windows and self.windows[0] < self.windows[1]:
            raise ValueError("`windows` that begin further apart than they are long leave words out; lower the second")
        return self

    @model_validator(mode="after")
    def _know_where_validation_comes_from(self) -> "BeirFields":
        valid = [split for split in self.splits.values() if split.role == "valid"]
        if self.valid_queries and (any(split.file for split in valid) or len(valid) != 1 or not self._named("train")):
            raise ValueError(
                "valid_queries holds out training queries: it needs one split of role valid, without a file, and one "
                "of role train"
            )
        return self

    def _named(self, role: str) -> str | None:
        return next((name for name, split in self.splits.items() if split.role == role), None)

    @property
    def _held_out(self) -> str | None:
        return self._named("valid") if self.valid_queries else None

    def _files(self) -> dict[str, str]:
        return {
            name: split.file or f"qrels/{name}.tsv" for name, split in self.splits.items() if name != self._held_out
        }

    def paths(self) -> dict[str, Path]:
        """The files that are read: ``corpus``, ``queries``, ``qrels of`` each split, and if there are any ``answers``.

        With ``listed_negatives`` also ``negatives of`` each split that has some.

        Without splits there are passages alone, to pre-train on.
        """
        return _paths(Path(self.path), self._files(), self.listed_negatives)

    def resolve(self) -> dict[str, Any]:
        """The content's identity: digests of the files that are read, whatever the folder is called.

        A folder that is brought by hand and not there yet counts by its name, so that a run with it can be planned.
        """
        held_out = self._held_out
        files = self._files()
        grades = {name: list(map(list, self.splits[name].grades.items())) for name in files if self.splits[name].grades}
        holding = {"source": self._named("train"), "split": held_out, "queries": self.valid_queries}
        return {
            "kind": self.kind,
            "files": files,
            "held_out": holding if held_out else None,
            "empty_documents": self.empty_documents,
            "content": {"absent": Path(self.path).name} if self.missing else remembered_contents(self.paths()),
            **({"grades": grades} if grades else {}),
            **({"windows": list(self.windows)} if self.windows else {}),
            **self.to_spec(),
            **self.form.to_spec(),
        }

    def check_files(self) -> None:
        """Check the first document, and all judgments."""
        spec, paths = BeirSpec.model_validate(self.resolve()), self.paths()
        if next(numbered_objects(paths["corpus"]), None) is None:
            raise EncoreError(f"{paths['corpus']} holds no document; give it some, or name another file")
        judgments, _ = _judgments(spec, paths)
        judgments |= hold_out(judgments, *spec.held_out) if spec.held_out else {}
        for each in _negatives(spec, paths, judgments).values():
            next(iter(each), None)
        refuse_shared({split: {each.query for each in own} for split, own in judgments.items()}, judgments)

    def known_size(self) -> KnownSize:
        """Counts and mean words of its files, estimated from the first part of large ones."""
        try:
            paths = self.paths()
            passages, words = _count_texts(paths["corpus"])
            if self.windows:
                passages, words = passages * max(1, words // self.windows[1]), min(words, self.windows[0])
            _, query_words = _count_texts(paths["queries"]) if "queries" in paths else (0, None)
            queries = {name: _count_queries(paths[_qrels(name)]) for name in self._files()}
        except (EncoreError, OSError, EOFError, ValueError, AttributeError, ZeroDivisionError):
            return KnownSize()  # the collection's own job says what is wrong, with file and line
        return KnownSize(passages, words, queries=queries, query_words=query_words).holding_out(self.valid_queries)


class HeldOut(NamedTuple):
    """The split that training queries are held out of, the one that they make, and how many."""

    source: str
    split: str
    queries: int


class BeirSpec(JudgedSpec):
    """The same fields, resolved."""

    files: dict[str, str]
    held_out: HeldOut | None
    empty_documents: Literal["refuse", "drop"]
    grades: dict[str, list[tuple[int, int]]] = {}
    windows: tuple[int, int] | None = None


def build_beir(spec: BeirSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, a resolved ``BeirFields``, describes; returns its counts."""
    source = inputs.needed_source()
    paths = _paths(source, spec.files, spec.listed_negatives)
    refuse_changed(source, contents(paths), spec.content)
    qrels, other_grades = _judgments(spec, paths)
    if spec.held_out:
        qrels |= hold_out(qrels, *spec.held_out)
    empty, left_out = set[str](), Counter[str]()
    unseen = spec.form.fields - {"title", "text"}
    corpus = _documents(paths["corpus"], tuple(sorted(unseen)), unseen)
    queries = _queries(paths["queries"]) if "queries" in paths else iter(())
    if spec.empty_documents == "drop":
        corpus = without_empty(paths["corpus"], once(corpus, left_out, set()), empty)
        queries = asked(once(queries, left_out, set()), left_out)
    judgments: dict[str, Iterable[Judgment]] = {**qrels}
    negatives = _negatives(spec, paths, qrels)
    if spec.windows:
        parts, (words, stride) = dict[str, list[str]](), spec.windows
        corpus = _windows(corpus, words, stride, parts)
        judgments = {split: _of_windows(own, parts) for split, own in qrels.items()}
        negatives = {split: _of_windows(own, parts) for split, own in negatives.items()}
    counts = write_collection(
        folder,
        Located(paths["corpus"], corpus),
        Located(paths.get("queries", source), queries),
        judgments,
        statistics=ChainMap({"judgments_of_other_grades": other_grades} if other_grades else {}, left_out),
        form=spec.form,
        answers=Located(paths["answers"], numbered_objects(paths["answers"])) if "answers" in paths else (),
        negatives=negatives,
        empty=empty,
        unknown_judgments=spec.unknown_judgments,
    )
    if unseen:
        raise EncoreError(
            f"{paths['corpus']}: no document has {min(unseen)!r}, which `segments` reads; correct its name"
        )
    return counts


def _judgments(spec: BeirSpec, paths: Mapping[str, Path]) -> tuple[dict[str, list[Judgment]], dict[str, int]]:
    """Judgments by split, and how many were left out for their grade, where any were."""
    left_out = Counter[str]()
    found = {
        split: list(judged.read_qrels(paths[_qrels(split)], dict(spec.grades.get(split, ())), left_out, split))
        for split in spec.files
    }
    return found, dict(left_out)


def _negatives(
    spec: BeirSpec, paths: Mapping[str, Path], qrels: Mapping[str, list[Judgment]]
) -> dict[str, Iterable[Judgment]]:
    """The passages that each training split lists as negatives: in its file, in its judgments, or both."""
    found: dict[str, Iterable[Judgment]] = {}
    for split in (each for each in spec.files if spec.listed_negatives and role_of(each) == "train"):
        path = paths.get(_listed(split))
        judged_so = not_relevant(qrels[split])
        if path is None and not judged_so:
            raise EncoreError(
                f"{paths[_qrels(split)]} judges no passage as not relevant (0), and negatives/{split}.tsv is missing; "
                "add one, or leave `listed_negatives` out"
            )
        found[split] = chain(read_negatives(path) if path else (), judged_so)
    return found


def _paths(folder: Path, files: dict[str, str], with_negatives: bool) -> dict[str, Path]:
    paths = {name: _data_file(folder, name) for name in ("corpus", "queries") if files or name == "corpus"}
    if any((folder / f"answers.jsonl{packed}").exists() for packed in PACKED):
        paths["answers"] = _data_file(folder, "answers")
    for split in files if with_negatives else ():
        packed = (folder / f"{NEGATIVES}/{split}.tsv{end}" for end in PACKED)
        paths |= {_listed(split): path for path in packed if path.exists()}
    return paths | {_qrels(split): _existing(folder / file) for split, file in files.items()}


def _listed(split: str) -> str:
    return f"negatives of {split}"


def _qrels(split: str) -> str:
    return f"qrels of {split}"


def _data_file(folder: Path, name: str) -> Path:
    there = [path for end in PACKED if (path := folder / f"{name}.jsonl{end}").exists()]
    if len(there) > 1:
        raise EncoreError(f"{there[0]} and {there[1].name} both exist, and only one can be read; move the other away")
    return _existing(there[0] if there else folder / f"{name}.jsonl")


def _existing(path: Path) -> Path:
    if not path.is_file():
        fault = "is not a file" if path.exists() else "is missing"
        there = sorted(each.name for each in path.parent.iterdir())[:8] if path.parent.is_dir() else []
        raise EncoreError(
            f"{path} {fault} ({path.parent} has {', '.join(there) or 'nothing'}); a collection of kind beir needs it, "
            "so name the right folder or split file"
        )
    return path


def _rows(path: Path, others: tuple[str, ...] = ()) -> Iterator[tuple[int, Row]]:
    """Rows with ``_id``, ``text`` and perhaps ``title`` and ``others``, which are texts; empty fields left out."""
    texts = ("_id", "title", "text", *others)
    for number, read in numbered_objects(path):
        row = {key: value for key, value in read.items() if value is not None or key in ("_id", "text")}
        for key in ("_id", "text"):
            if row.get(key) is None:
                raise EncoreError(f'{path}, line {number}: "{key}" is missing or null; add it, or remove the row')
        for key in texts:
            if not isinstance(row.get(key, ""), str):
                raise EncoreError(
                    f'{path}, line {number}: "{key}" is {quoted(row[key])} and not text; put it in quotes'
                )
        yield number, row


def _documents(path: Path, others: tuple[str, ...], unseen: set[str]) -> Iterator[tuple[int, Row]]:
    """``_id``, ``title`` and ``text``, and ``others``: further fields of a document's text, which leave ``unseen``."""
    for number, row in _rows(path, others):
        unseen -= {name for name in unseen if row.get(name)}
        found = {"_id": row["_id"], "title": row.get("title", ""), "text": row["text"]}
        yield number, {**found, **{name: row.get(name, "") for name in others}} if others else found


def _queries(path: Path) -> Iterator[tuple[int, Row]]:
    """``_id``, ``title`` and ``text``, and ``metadata.cluster`` as a text if present."""
    for number, row in _rows(path):
        metadata = row.get("metadata")
        cluster = metadata.get("cluster") if isinstance(metadata, dict) else None
        if isinstance(cluster, bool) or not isinstance(cluster, str | int | None):
            raise EncoreError(
                f"{path}, line {number}: the cluster {quoted(cluster)} is neither a text nor a whole number; put it "
                "in quotes"
            )
        kept = {"_id": row["_id"], "title": row.get("title", ""), "text": row["text"]}
        yield number, kept if cluster in (None, "") else {**kept, "metadata": {"cluster": str(cluster)}}


def _windows(
    rows: Iterable[tuple[int, Row]], words: int, stride: int, parts: dict[str, list[str]]
) -> Iterator[tuple[int, Row]]:
    """Each document's passages, whose ids go to ``parts``: the document's with a number behind (``whole_id``)."""
    for number, row in rows:
        text = row["text"].split()
        starts = range(0, max(len(text) - words, 0) + stride, stride)
        parts[row["_id"]] = [f"{row['_id']}#{place}" for place in range(len(starts))]
        for name, start in zip(parts[row["_id"]], starts, strict=True):
            yield number, {**row, "_id": name, "text": " ".join(text[start : start + words])}


def _of_windows(judgments: Iterable[Judgment], parts: Mapping[str, list[str]]) -> Iterator[Judgment]:
    """A judgment of each passage of a judged document (Dai and Callan 2019, 3); of an unknown one, of itself."""
    for each in judgments:
        yield from (each._replace(document=name) for name in parts.get(each.document, [each.document]))


def _count_texts(path: Path) -> tuple[int, int]:
    """Rows of a file of JSON lines, and mean words of their titles and texts; 1 at least of both."""
    found = estimated(
        path, lambda row: {"rows": 1, "words": len(f"{row.get('title') or ''} {row.get('text') or ''}".split())}
    )
    rows = found.get("rows", 1.0)
    return max(1, round(rows)), max(1, round(found.get("words", 1.0) / rows))


def _count_queries(path: Path) -> int:
    """Queries of a file of judgments, in which the lines of a query follow each other."""
    queries, last = 0, b""
    with opened(path) as file:
        for line in file:
            name = line.split(None, 1)[0] if line.strip() and QRELS_HEADER.encode() not in line else last
            queries, last = queries + (name != last), name
    return max(1, queries)


KIND = Kind(BeirFields, BeirSpec, build_beir, impl=2)
