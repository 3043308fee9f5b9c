"""The common form of a collection: passages, queries, graded judgments and, if there are any, linked articles.

The folder has BEIR's layout (``corpus.jsonl.gz``, ``queries.jsonl.gz``, ``qrels/<split>.tsv``) and next to it
where the queries are questions ``answers.jsonl.gz`` (``{"_id", "answers": [...]}``) and for splits that answers judge
``questions/<split>.txt`` (an id a line), where its publisher lists negatives ``negatives/<split>.tsv.gz``, and where
there is structure
``articles.jsonl.gz``: ``{"_id", "title", "sections": [{"title", "sentences"}], "links": [{"section", "to", "anchor",
"origin"}]}``, where section ``section`` of the article links to section ``anchor`` of article ``to``. Where a
document's text is not its title and text, ``form.json`` says which fields it is (``text_fields.py``); where texts are
not English, ``language.json`` names their language.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple

from encore.config.datasets import role_of, same_draw
from encore.config.languages import ENGLISH
from encore.data.articles import write_articles
from encore.data.judgments import Judging, Judgment, Unknown
from encore.data.text_fields import Form
from encore.data.validation import Located, Row, place_of, write_rows
from encore.errors import EncoreError
from encore.storage import files

USES = {"train": "train", "valid": "validate"}  # what queries are used for before they are tested, by role
QRELS_HEADER = "query-id\tcorpus-id\tscore"
ANSWERS = "answers.jsonl.gz"
LANGUAGE = "language.json"  # of texts that are not English
QUESTIONS = "questions"
NEGATIVES, NEGATIVES_HEADER = "negatives", "query-id\tcorpus-id\trank"
LEFT_OUT: Mapping[str, str] = {  # by the names of their counts
    "empty_documents": "passages without text",
    "empty_queries": "queries without text",
    "repeated_rows": "duplicate rows",
    "repeated": "duplicate judgments",
    "of_unknown_queries": "judgments of queries that do not exist",
    "of_unknown_documents": "judgments of passages that do not exist",
    "of_empty_documents": "judgments of passages without text",
    "negatives_of_unknown_queries": "listed negatives of queries that do not exist",
    "negatives_of_unknown_documents": "listed negatives that do not exist",
    "negatives_of_empty_documents": "listed negatives without text",
}


def judgments_of(qrels: Mapping[str, Mapping[str, int]]) -> Iterator[Judgment]:
    """Grades by document and query as judgments, in their order."""
    for query, grades in qrels.items():
        for document, grade in grades.items():
            yield Judgment(query, document, grade)


class Collection:
    """A finished collection folder, opened for reading."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def language(self) -> str:
        """The language of its texts, by ISO 639's code."""
        return files.read_object(self.folder / LANGUAGE, "make the collection again").get("language", ENGLISH)

    def corpus(self) -> Iterator[dict[str, str]]:
        """Rows ``{"_id", "title", "text"}`` in file order, which is the order of every array made from them."""
        return files.read_jsonl(self.folder / "corpus.jsonl.gz")

    def documents(self, wanted: Container[str]) -> Iterator[dict[str, str]]:
        """The rows of ``wanted`` ids, in file order; no other is held, or even read as JSON."""
        return files.chosen_rows(self.folder / "corpus.jsonl.gz", wanted)

    def texts(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each document's id and what is read of it, in file order: one text, or a pair."""
        form = Form.read(self.folder)
        return ((row["_id"], form.texts(row)) for row in self.corpus())

    def queries(self) -> dict[str, str]:
        """Text by query id, in file order."""
        return {row["_id"]: row["text"] for row in self.query_rows()}

    def clusters(self) -> dict[str, str]:
        """The unit that a query's errors are clustered by; a query without one is its own cluster."""
        return {row["_id"]: row.get("metadata", {}).get("cluster", row["_id"]) for row in self.query_rows()}

    def splits(self) -> list[str]:
        """Names of the splits, judged by people or by answers."""
        judged, questions = (self.folder / "qrels").glob("*.tsv"), (self.folder / QUESTIONS).glob("*.txt")
        return sorted(path.stem for path in (*judged, *questions))

    def is_judged(self, split: str) -> bool:
        """True if people have judged a split's documents; if not, answers do."""
        return not (self.folder / QUESTIONS / f"{split}.txt").is_file()

    def query_ids(self, split: str) -> list[str]:
        """Ids of a split's queries: those that are judged, or whose answers judge."""
        if self.is_judged(split):
            return list(self.qrels(split))
        return (self.folder / QUESTIONS / f"{split}.txt").read_text(encoding="utf-8").split()

    def qrels(self, split: str) -> dict[str, dict[str, int]]:
        """Grades by document and query of one split, in file order."""
        path = self.folder / "qrels" / f"{split}.tsv"
        if not path.is_file():
            raise EncoreError(f"{self.folder} has no split {split!r}; it has {', '.join(self.splits()) or 'none'}")
        judged: dict[str, dict[str, int]] = {}
        with files.open_text(path) as file:
            next(file, None)  # the header
            for line in file:
                query, document, grade = line.rstrip("\n").split("\t")
                judged.setdefault(query, {})[document] = int(grade)
        return judged

    def negatives(self, split: str) -> Iterator[tuple[str, str, int]]:
        """Query, document and rank of the negatives that were published with a split's questions, in file order."""
        path = self.folder / NEGATIVES / f"{split}.tsv.gz"
        if not path.is_file():
            raise EncoreError(f"{self.folder} lists no negatives of {split}; let the step draw BM25's")
        with files.open_text(path) as file:
            next(file, None)  # the header
            for line in file:
                query, document, rank = line.rstrip("\n").split("\t")
                yield query, document, int(rank)

    def answers(self) -> dict[str, list[str]]:
        """Right answers, as strings, by the id of the query that asks for them."""
        path = self.folder / ANSWERS
        if not path.is_file():
            raise EncoreError(
                f"{self.folder} has no {ANSWERS}, so nothing says which passages answer a question; let the step have "
                f"`positives: judged` and `exclude_answers: false`, or give its source an {ANSWERS}"
            )
        return {row["_id"]: row["answers"] for row in files.read_jsonl(path)}

    def has_articles(self) -> bool:
        """True if the collection has articles, which pre-training objectives read."""
        return (self.folder / "articles.jsonl.gz").is_file()

    def articles(self) -> Iterator[Row]:
        """Articles in file order; none when the collection has passages only."""
        return files.read_jsonl(self.folder / "articles.jsonl.gz") if self.has_articles() else iter(())

    def query_rows(self) -> Iterator[Row]:
        """Queries as stored: id, text and perhaps metadata."""
        return files.read_jsonl(self.folder / "queries.jsonl.gz")

    def answer_rows(self) -> Iterator[Row]:
        """Right answers as stored; none if the queries are not questions."""
        return files.read_jsonl(self.folder / ANSWERS) if (self.folder / ANSWERS).is_file() else iter(())


class QuerySample(NamedTuple):
    """Which queries, as ``topics`` finds them: those of a split, or a sample of at most ``queries`` of them."""

    split: str
    queries: int | None = None
    sample: int = 0


def topics(collection: Collection, split: str, queries: int | None = None, sample: int = 0) -> list[str]:
    """Ids of a split's queries, in file order; with ``queries``, a sample of at most that many.

    The sample is the ids whose sha256 of ``"<sample>:<id>"`` is smallest, so that a larger sample contains a smaller
    one and a query's luck does not depend on the other queries.
    """
    return sampled(collection.query_ids(split), queries, sample)


def sampled(ids: Sequence[str], count: int | None, sample: int) -> list[str]:
    """A sample of at most ``count`` ids, in their order, as ``topics`` draws it; all of them without ``count``."""
    if count is None or count >= len(ids):
        return list(ids)
    chosen = set(smallest(ids, count, str(sample)))
    return [name for name in ids if name in chosen]


def smallest(ids: Iterable[str], count: int, salt: str) -> list[str]:
    """The ``count`` ids whose ``order`` comes first; no more than that are held."""
    return heapq.nsmallest(count, ids, key=lambda name: order(name, salt))


def order(name: str, salt: str) -> str:
    """An id's place in a shuffle of all possible ids: the sha256 of ``"<salt>:<id>"``."""
    return hashlib.sha256(f"{salt}:{name}".encode()).hexdigest()


def write_collection(
    folder: Path,
    corpus: Iterable[Row],
    queries: Iterable[Row],
    qrels: Mapping[str, Iterable[Judgment]],
    articles: Iterable[Row] = (),
    statistics: Mapping[str, Any] | None = None,
    form: Form = Form(),  # noqa: B008  # frozen
    answers: Iterable[Row] = (),
    questions: Mapping[str, Sequence[str]] | None = None,
    negatives: Mapping[str, Iterable[Judgment]] | None = None,
    empty: AbstractSet[str] = frozenset(),
    unknown_judgments: Unknown | None = None,
) -> dict[str, Any]:
    """Write a collection in the common form and return its counts (also in ``statistics.json``).

    Rows are streamed, and read in the order of the arguments. ``statistics`` adds to the counts. Judgments are in the
    order of their queries' first mention. ``questions`` are the queries of splits without judgments: what they retrieve
    is judged by their answers. ``negatives`` are passages listed as negatives, with a rank in place of the grade.
    ``empty`` are ids that ``corpus`` leaves out, and enters there as it does so.
    """
    form.write(folder)
    documents = write_rows(folder / "corpus.jsonl.gz", corpus, "corpus")
    known = write_rows(folder / "queries.jsonl.gz", queries, "queries")
    if not len(documents):
        source = corpus.path if isinstance(corpus, Located) else "the corpus"
        raise EncoreError(f"{source} holds no document; name another source")
    judging = Judging(known, documents, empty, unknown_judgments)
    topics_of: dict[str, Iterable[str]] = {}
    counts: dict[str, Any] = {"passages": len(documents), "queries": len(known), "splits": {}}
    for split, judgments in qrels.items():
        grades, counts["splits"][split] = judging.judged(split, judgments)
        with files.open_text_writer(folder / "qrels" / f"{split}.tsv") as file:
            file.write(QRELS_HEADER + "\n")
            file.writelines(f"{each.query}\t{each.document}\t{each.grade}\n" for each in judgments_of(grades))
        topics_of[split] = grades.keys()
    for split, listed in (negatives or {}).items():
        counts["splits"][split] |= _write_negatives(folder, split, listed, judging)
    for split, named in (questions or {}).items():
        if strange := [name for name in named if name not in known]:
            raise EncoreError(f"question {strange[0]!r} of split {split!r} is not among the queries; add it there")
        files.write_text(folder / QUESTIONS / f"{split}.txt", "".join(f"{name}\n" for name in named))
        topics_of[split] = named
        counts["splits"][split] = {"queries": len(named)}
    unjudged = len(known) - len(set().union(*topics_of.values()))  # of no split, so they are never searched
    others = {"empty_documents": len(empty), "unjudged_queries": unjudged}
    counts |= {name: count for name, count in others.items() if count}
    refuse_shared(topics_of, qrels)
    counts |= _write_answers(folder, answers, known)
    counts |= write_articles(folder / "articles.jsonl.gz", articles) | dict(statistics or {})
    files.write_json(folder / "statistics.json", counts)
    return counts


def _write_negatives(folder: Path, split: str, listed: Iterable[Judgment], judging: Judging) -> dict[str, int]:
    """Write lines ``query-id corpus-id rank`` and count them, and those that are left out."""
    left_out, counts = Counter[str](), Counter(negatives=0)
    with files.open_text_writer(folder / NEGATIVES / f"{split}.tsv.gz") as file:
        file.write(NEGATIVES_HEADER + "\n")
        for each in judging.known(listed, left_out):
            file.write(f"{each.query}\t{each.document}\t{each.grade}\n")
            counts["negatives"] += 1
    return {**counts, **{f"negatives_{reason}": count for reason, count in left_out.items()}}


def left_out(counts: Mapping[str, Any]) -> list[str]:
    """A sentence on what was left out of a collection, by its counts; none if nothing was."""
    found = Counter[str]()
    for each in (counts, *counts["splits"].values()):
        found.update({LEFT_OUT[name]: count for name, count in each.items() if name in LEFT_OUT})
    return [f"Left out: {', '.join(f'{count:,} {what}' for what, count in found.items())}."] if found else []


def rows_of_answers(answers: Mapping[str, list[str]]) -> Iterator[Row]:
    """Rows of answers by query, read only when they are needed: reading queries may still add answers."""
    for name, given in answers.items():
        yield {"_id": name, "answers": given}


def _write_answers(folder: Path, rows: Iterable[Row], queries: Container[str]) -> dict[str, int]:
    """Write the answers to questions and count the answered ones; no file without rows."""
    path, seen = folder / ANSWERS, dict[str, list[str]]()
    path.unlink(missing_ok=True)
    for number, row in enumerate(rows, 1):
        place = place_of(rows, number, "answers")
        name, given = row.get("_id"), row.get("answers")
        if not isinstance(name, str) or name not in queries or name in seen:
            reason = "is answered twice; keep one row" if name in seen else "is not among the queries; remove the row"
            raise EncoreError(f"{place}: query {name!r} {reason}")
        if (
            not isinstance(given, list)
            or not given
            or not all(isinstance(each, str) and each.strip() for each in given)
        ):
            raise EncoreError(f"{place}: query {name!r} needs a list of answers, each a text; fix or remove the row")
        seen[name] = given
    if not seen:
        return {}
    files.write_jsonl(path, ({"_id": name, "answers": given} for name, given in seen.items()))
    return {"answered": len(seen)}


def refuse_shared(queries_by_split: Mapping[str, Iterable[str]], judgments: Mapping[str, Iterable[Judgment]]) -> None:
    """No query that trains may validate or be tested in its draw (``same_draw``), and none that validates be tested.

    Args:
        queries_by_split: the queries of each split.
        judgments: by split; those that are still there tell the place.
    """
    used = {split: set(queries) for split, queries in queries_by_split.items() if role_of(split) in USES}
    for split, queries in queries_by_split.items():
        for name, earlier in used.items():
            together = _place_of_use(name) < _place_of_use(split) and same_draw(name, split)
            if together and (shared := earlier.intersection(queries)):
                first = min(shared)
                place = next((each.place for each in judgments.get(split, ()) if each.query == first), "")
                raise EncoreError(
                    f"{f'{place}: ' if place else ''}{len(shared)} queries of split {split!r} also "
                    f"{USES[role_of(name)]}, such as {first!r}; remove them from one of the two"
                )


def _place_of_use(split: str) -> int:
    return [*USES, role_of(split)].index(role_of(split))
