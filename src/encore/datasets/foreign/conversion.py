"""Conversion of a file or folder in any known form to BEIR's layout, and what was taken for what."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from encore.data.collection import Judgment, left_out, rows_of_answers, write_collection
from encore.data.columns import IDS, NEEDED, Asked, Meaning, Taken, What, expected, hinted, meaning, refuse_twice, taken
from encore.data.validation import Located, LocatedFiles, Row, asked, once, says_something, without_empty
from encore.datasets.foreign.forms import Form, form_of
from encore.errors import EncoreError
from encore.storage.files import appearing, writing
from encore.storage.progress import Progress
from encore.storage.text_files import numbered_records

_SPLIT = re.compile(r"((?<![a-z])|(?<=doc))(train|validation|valid|val|dev|test)(ing|elopment)?(?![a-z])")
_ABOUT = re.compile(
    r"(?i)(readme|licen[cs]e|copying|notice|changelog|citation|state|dataset_(info|dict))(\..*)?|.*\.(md|py|sh)"
)
_SHARD = re.compile(r"\d+-of-\d+")  # of one table, as Hugging Face writes them
USES: Mapping[What, str] = {"training": "train", "judgments": "test"}  # where no name says another
SHOWN = 8  # names in a message


@dataclass(frozen=True, eq=False)
class Part:
    """A file that is understood, and how many rows of each kind it gave."""

    path: Path
    form: Form
    meaning: Meaning
    split: str  # of judgments and training rows
    place: int = 1  # among the files of its kind and split
    counts: Counter[str] = field(default_factory=Counter)
    first: str = ""  # row, where no header names its columns

    @property
    def description(self) -> str:
        """Its form and columns, in words."""
        columns = sorted(self.meaning.columns.items(), key=lambda each: each[1] if self.first else "")
        read = [ours if theirs.isdigit() else theirs for ours, theirs in columns]
        unread = [name for name in self.meaning.others if not name.isdigit()]
        place = ", no header, by position" if self.first else ""
        return f"{self.form.name}{place}: {', '.join(read)}{'; not read: ' if unread else ''}{', '.join(unread)}"

    def read(self, take: Callable[[Row], Taken]) -> Iterator[tuple[int, Taken]]:
        """What is taken of each row, with its number."""
        progress = Progress(str(self.path))
        for found in taken(self.form.rows(self.path), take, f"{self.path}, {self.form.unit}"):
            yield found
            progress.more()

    def asked(self) -> Iterator[tuple[int, Asked]]:
        """Queries with their passages; one without an id is named by split, file and row: ``train-2-7``."""
        named = self.split if self.place == 1 else f"{self.split}-{self.place}"
        for number, row in self.read(self.meaning.asked):
            yield number, row._replace(query={"_id": f"{named}-{number}", **row.query})

    def judged(self) -> Iterator[tuple[int, Judgment]]:
        """Judgments; those of a subtopic, which the second of TREC's columns may name, are counted."""

        def take(row: Row) -> Judgment:
            if row.get("iteration", "0").upper() not in ("0", "Q0"):
                self.counts["judgments of a subtopic, which count for its topic"] += 1
            return self.meaning.judgment(row)

        return self.read(take)

    def listed(self) -> Iterator[tuple[int, Row]]:
        """Every passage that a row lists."""
        for number, row in self.asked():
            yield from ((number, passage) for passage in (*row.positives, *row.negatives))


def recognised(source: Path) -> tuple[list[Part], dict[str, str]]:
    """The files of a folder, or one file, that are understood; and why each other one is not, by name."""
    if not source.exists():
        raise EncoreError(f"{source} is missing; name a file or a folder")
    there = source.rglob("*") if source.is_dir() else [source]
    files = sorted(path for path in there if path.is_file() or path.is_symlink())  # a linked folder is not read
    parts, others = list[Part](), dict[str, str]()
    for path in files:
        name = path.relative_to(source).as_posix() if source.is_dir() else path.name
        if any(part.startswith(".") for part in Path(name).parts):
            continue
        try:
            part = _part(path, name)
            before = sum((each.meaning.what, each.split) == (part.meaning.what, part.split) for each in parts)
            parts.append(replace(part, place=before + 1))
        except EncoreError as error:
            if _is_needed(Path(name)):
                raise
            others[name] = str(error)
    return parts, others


def _is_needed(name: Path) -> bool:
    """True if a file's name, its folder's, or a split for its name says that it is of the collection."""
    about = _ABOUT.fullmatch(name.name) and not hinted(name.name)  # the others, and none of them
    return not about and bool(hinted(str(name)) or _SPLIT.fullmatch(name.name.partition(".")[0].lower()))


def _part(path: Path, name: str) -> Part:
    """A file, as its first row says; one that is not understood is refused."""
    form = form_of(path)
    if form is None:
        raise EncoreError(f"{path} is empty, or its form is not known{_by_blanks(path, name)}; convert or remove it")
    first = next(form.rows(path), None)
    columns = first[1] if first else {}
    refuse_twice(columns, str(path))
    known = meaning(columns, name)
    is_row = "1" not in columns or columns["1"].split() == [columns["1"]]  # prose is not, nor is a header
    is_row = is_row and columns.get("1", "").lower() not in IDS
    if known is None or not is_row:
        first_row = ", ".join(map(str, columns.values()))[:60]
        shown = f"no known header ({first_row})" if "1" in columns else ", ".join(columns) or "no row"
        raise EncoreError(
            f"{path}: {form.name} with {shown} is not understood; rename its columns or the file, or remove it"
        )
    split = next((found for part in reversed(Path(name).parts) if (found := _SPLIT.search(part.lower()))), None)
    shown = ", ".join(columns.values())[:60] if "1" in columns else ""
    return Part(path, form, known, split[2] if split else USES.get(known.what, ""), first=shown)


def _by_blanks(path: Path, name: str) -> str:
    """The columns of a first line that blanks part, and what judgments need, for a message."""
    columns = list[str]()
    with suppress(EncoreError):  # no text
        columns = next((line.split() for _, line in numbered_records(path)), [])
    if (count := len(columns)) < 2:
        return ""
    shown = f" ({count} columns separated by blanks: {' '.join(columns)[:60]})"
    if hinted(name) != "judgments":
        return shown
    if count == 6:
        return f"{shown}: six are a run of a system, and no judgments"
    return f"{shown}: judgments are four such columns, the last a whole number, or three separated by tabs"


def convert(source: Path, folder: Path, *, drop: bool = False) -> list[str]:
    """Write the collection that a file or folder holds, in BEIR's layout; returns in sentences what was taken for what.

    Passages are those of files of passages; where there are none, those that training rows list. The passages that
    training rows list as negatives are in ``negatives/<split>.tsv.gz``.

    Args:
        drop: leave out passages without text and judgments of what does not exist, instead of refusing them.
    """
    parts, others = recognised(source)
    by_kind: dict[What, list[Part]] = {what: [part for part in parts if part.meaning.what == what] for what in NEEDED}
    if not by_kind["passages"] and not by_kind["training"]:
        there = [f"{part.path.name} has {part.meaning.what} ({part.description})" for part in parts]
        raise EncoreError(
            f"{source} has no passages (there: {'. '.join([*there, *others.values()][:SHOWN]) or 'nothing'}); a file "
            f"of them has {expected('passages')}, and, where that is only an id and a text, corpus or doc in its name"
        )
    with writing(folder), appearing(folder) as made, naming_drop():
        counts = _write(made, by_kind, drop)
    return [
        *_sentences(source, parts),
        *left_out(counts),
        *(f"Not read: {error}." for error in [*others.values()][:SHOWN]),
        *([f"Not read either: {len(others) - SHOWN:,} more files."] if len(others) > SHOWN else []),
    ]


@contextmanager
def naming_drop() -> Iterator[None]:
    """Add the name of the flag to errors that name the field of a dataset's entry."""
    try:
        yield
    except EncoreError as error:
        hint = " (here: `--drop`)" if "drop`" in str(error) else ""
        raise EncoreError(f"{error}{hint}") from error


def _write(folder: Path, by_kind: Mapping[What, Sequence[Part]], drop: bool) -> dict[str, Any]:
    """Write the collection; returns its counts."""
    answers: dict[str, list[str]] = {}
    empty, dropped, seen = set[str](), Counter[str](), (set[bytes](), set[bytes]())

    def documents(part: Part) -> Iterator[tuple[int, Row]]:
        listed = part.meaning.what == "training"
        rows = part.listed() if listed else part.read(part.meaning.passage)
        rows = once(rows, dropped, seen[0]) if listed or drop else rows
        return without_empty(part.path, rows, empty) if drop else rows

    def queries(part: Part) -> Iterator[tuple[int, Row]]:
        training = part.meaning.what == "training"
        rows = _asked(part, answers) if training else part.read(part.meaning.query)
        rows = once(rows, dropped, seen[1])  # parts of a set are often published next to the whole
        return asked(rows, dropped) if drop else rows

    corpus, topics = by_kind["passages"] or by_kind["training"], [*by_kind["queries"], *by_kind["training"]]
    texts = [Located(part.path, documents(part), part.form.unit) for part in corpus]
    questions = [Located(part.path, queries(part), part.form.unit) for part in topics]
    counts = write_collection(
        folder,
        LocatedFiles(texts),
        LocatedFiles(questions) if questions else (),
        _judgments(by_kind),
        statistics=dropped,
        answers=rows_of_answers(answers),
        negatives=_negatives(by_kind["training"]),
        empty=empty,
        unknown_judgments="drop" if drop else "refuse",
    )
    for what, parts, rows in (("passages", corpus, texts), ("queries", topics, questions)):
        for part, own in zip(parts, rows, strict=True):
            part.counts[what] = own.given
    return counts


def _asked(part: Part, answers: dict[str, list[str]]) -> Iterator[tuple[int, Row]]:
    """The queries of training rows; their answers, if any, are added to ``answers``."""
    for number, row in part.asked():
        if row.answers and says_something(row.query["text"]):
            answers.setdefault(row.query["_id"], row.answers)
            part.counts["queries with answers"] += 1
        yield number, row.query


def _judgments(by_kind: Mapping[What, Sequence[Part]]) -> dict[str, list[Judgment]]:
    """Judgments by split; what a training row lists as relevant has grade 1."""
    found: dict[str, list[Judgment]] = {}
    first: dict[str, Part] = {}
    for part in by_kind["judgments"]:
        other = first.setdefault(part.split, part)
        if _SHARD.sub("", str(part.path)) != _SHARD.sub("", str(other.path)):
            raise EncoreError(f"{other.path} and {part.path} both judge {part.split!r}; take one of them away")
    for part in (*by_kind["judgments"], *by_kind["training"]):
        place, own = f"{part.path}, {part.form.unit}", found.setdefault(part.split, [])
        before = len(own)
        if part.meaning.what == "judgments":
            own += (each._replace(place=f"{place} {number}") for number, each in part.judged())
        else:
            own += (
                Judgment(row.query["_id"], passage["_id"], 1, f"{place} {number}")
                for number, row in part.asked()
                for passage in row.positives
            )
        part.counts[f"judgments of {part.split}"] = len(own) - before
    return found


def _negatives(training: Sequence[Part]) -> dict[str, Iterator[Judgment]]:
    """The passages listed as negatives, by split, with their place in the list as the grade."""

    def listed(split: str) -> Iterator[Judgment]:
        for part in (each for each in training if each.split == split):
            for number, row in part.asked():
                part.counts["listed negatives"] += len(row.negatives)
                for rank, each in enumerate(row.negatives, 1):
                    yield Judgment(row.query["_id"], each["_id"], rank, f"{part.path}, {part.form.unit} {number}")

    return {split: listed(split) for split in dict.fromkeys(part.split for part in training)}


def _sentences(source: Path, parts: Sequence[Part]) -> Iterator[str]:
    """What was taken of each file, and of files of one form together."""
    alike: dict[tuple[str, ...], list[Part]] = defaultdict(list)
    for part in parts:
        alike[part.description, *part.counts].append(part)
    for (description, *labels), together in alike.items():
        sums = (f"{sum(part.counts[label] for part in together):,} {label}" for label in labels)
        names = [part.path.relative_to(source).as_posix() if source.is_dir() else part.path.name for part in together]
        shown = ", ".join(names) if len(names) < 4 else f"{len(names):,} files, {names[0]} to {names[-1]}"
        first = f"; first row: {together[0].first}" if together[0].first else ""
        yield f"{', '.join(sums)} from {shown} ({description}{first})."
