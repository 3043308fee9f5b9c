"""What ``encore new`` finds in a collection: a folder in BEIR's layout, or an id of ir_datasets."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import regex
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from encore.config.languages import ENGLISH, language_code
from encore.config.validation import nearest
from encore.data.collection import Collection
from encore.data.overlap import Overlap, overlap_with_training, own_documents
from encore.data.sentences import split
from encore.data.vocabulary import fewest_pieces
from encore.datasets.download.ir_datasets import offline
from encore.datasets.kinds import build_collection, load_kind
from encore.errors import EncoreError

TRAIN, TESTED = "train", ("test", "dev", "valid", "validation", "val")  # usual names of judgments
# The least relevant grade of sets whose publishers say another than 1: Hashemi et al. 2020; TREC's deep learning track.
RELEVANT_FROM = {"antique": 3, "msmarco-passage/trec-dl": 2, "msmarco-passage-v2/trec-dl": 2}
LEAST, MOST = 10, 400  # queries that are held out for validation: a tenth of those that train
REPEATED = {"repeated_passages": "passages", "repeated_queries": "queries"}  # as a collection's statistics count them
IDEOGRAPHS = {"ja": 4000, "ko": 3000, "yue": 5000, "zh": 5000}  # characters of a collection that is not there yet
LOOKED_AT = 1000  # passages, for their script
LONG, CLOSE = 128, 20  # words of a text, and of two sentences, that every objective is content with
_LETTER, _LATIN = regex.compile(r"\p{L}"), regex.compile(r"\p{Latin}")
TEXTS = ("text", "body", "abstract", "main_content", "default_text")  # a document's text as ir_datasets calls it


NOTHING = Overlap(frozenset(), {})


@dataclass
class Source:
    """Your own collection: the fields of its entry except for the splits, and where each split's judgments are.

    ``given`` is where: ``{"file": "qrels/dev.tsv"}`` or ``{"id": "beir/scifact/test"}``.
    """

    fields: dict[str, Any]
    given: dict[str, dict[str, str]]
    passages: int
    queries: dict[str, int]
    grades: Mapping[int, int]  # judgments of each, of what is tested
    means: Mapping[int, str] = field(default_factory=dict)  # of each grade, where its publisher says so
    least: int = 1  # grade that is relevant
    own: int = 0  # queries that are documents, too
    copies: Mapping[str, int] = field(default_factory=dict)  # texts that repeat an earlier one, by kind
    held_out: int | None = None
    pairs_of_sentences: bool = True  # whether any text has two; unknown before a download
    overlap: Overlap = NOTHING  # of what is tested with what trains
    pretrains: bool = False  # on its passages, and learns from queries of another collection
    characters: int = 0  # pieces that a vocabulary has for them at least
    foreign: float = 0.0  # the share of letters that are not Latin, in the first passages
    longest: int = LONG  # words of a text, as far as it matters
    closest: int = 0  # words of the shortest two sentences of a text, as far as it matters
    unsuited: Mapping[str, Set[str]] = field(default_factory=dict)  # objectives by what they lack here (limits.py)
    scale: dict[str, Any] = field(default_factory=dict)  # what the first models are given for it (limits.py)
    notes: Sequence[str] = ()  # and what is to be said of that

    @property
    def trains(self) -> bool:
        """True if a split of it trains."""
        return "train" in self.given

    @property
    def is_graded(self) -> bool:
        """True if relevant documents have several grades."""
        return sum(grade > 0 for grade in self.grades) > 1


def beir_source(
    folder: Path, language: str = ENGLISH, *, zero_shot: bool, drop: bool, pretrain: bool = False
) -> Source:
    """Read a folder in BEIR's layout whole, as its job will.

    Args:
        language: of its texts, by ISO 639's code.
        zero_shot: nothing of it trains.
        pretrain: on its passages, which may be all that there is.
        drop: leave out empty texts, rows that are there again and judgments of what does not exist, unrefused.

    Raises:
        EncoreError: a file is missing, or anything in it is wrong, with file and line.
    """
    found = sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))
    if not found and not pretrain:
        there = sorted(path.relative_to(folder).as_posix() for path in (*folder.glob("*"), *folder.glob("qrels/*")))
        raise EncoreError(
            f"{folder}/qrels holds no .tsv of judgments (there: {', '.join(there[:8]) or 'nothing'}); give it a "
            "test.tsv, and a train.tsv to train on, or only pre-train on its passages, with --pretrain; --from reads "
            "other forms"
        )
    named = _named(found, f"{folder}/qrels", zero_shot=zero_shot or pretrain) if found else {}
    given = {role: {} if name == role else {"file": f"qrels/{name}.tsv"} for role, name in named.items()}
    fields: dict[str, Any] = {"kind": "beir", "path": str(folder), **_named_language(language)}
    fields |= {"empty_documents": "drop", "unknown_judgments": "drop"} if drop else {}
    with TemporaryDirectory() as place:
        splits = {role: {"role": role, **where} for role, where in given.items()}
        spec = load_kind("beir").fields.model_validate({**fields, "splits": splits}).resolve()
        try:
            build_collection("beir", spec, Path(place), source=folder)
        except EncoreError as error:
            hint = " (here: `--drop`)" if "drop`" in str(error) else ""
            raise EncoreError(f"{error}{hint}") from error
        counts = json.loads((Path(place) / "statistics.json").read_text())
        made = Collection(Path(place))
        _refuse_without_negatives(made, counts["passages"])
        tested = made.qrels("test") if named else {}
        grades = Counter(grade for judged in tested.values() for grade in judged.values())
        closest = _closest(made, language)
        overlap, own = overlap_with_training(made, "test") if named else NOTHING, own_documents(made)
        characters = fewest_pieces(_texts(made), language) if language != ENGLISH else 0  # whose are never too many
        foreign, longest = _foreign(made), _longest(made)
    queries = {name: each["queries"] for name, each in counts["splits"].items()}
    if TRAIN in queries:
        queries[TRAIN] -= counts["splits"][TRAIN].get("queries_without_relevant", 0)  # which teach nothing
    copies = {name: counts[name] for name in REPEATED if name in counts}
    fields |= {"ignore_identical_ids": True} if own else {}
    fields |= {"ignore_copies": True} if copies else {}
    source = Source(fields, given, counts["passages"], queries, grades, own=own, overlap=overlap)
    source.pairs_of_sentences, source.closest = closest is not None, closest or 0
    source.copies, source.pretrains = copies, pretrain
    source.characters, source.foreign, source.longest = characters, foreign, longest
    return _with_validation(source)


def ir_datasets_source(name: str, data_root: Path, language: str | None = None, *, zero_shot: bool) -> Source:
    """What ir_datasets knows of a dataset, without downloading anything.

    Raises:
        EncoreError: the dataset is unknown, has no judgments, or has no field that is known as its text.
    """
    load = offline(data_root)
    known = {split: f"{name}/{split}" for split in (TRAIN, *TESTED)}
    loaded = {split: each for split, found in known.items() if (each := _loaded(load, found)) and each.has_qrels()}
    whole = _loaded(load, name)
    if whole is None:
        import ir_datasets

        raise EncoreError(f"ir_datasets has no {name!r}{nearest(name, ir_datasets.registry)}")
    known["test"], loaded["test"] = (known["test"], loaded["test"]) if "test" in loaded else (name, whole)
    if not loaded["test"].has_qrels():
        del loaded["test"]
    named = _named(list(loaded), f"ir_datasets' {name}", zero_shot=zero_shot)
    terms = f"https://ir-datasets.com/{name.partition('/')[0]}.html"
    fields: dict[str, Any] = {
        "kind": "ir-datasets",
        "id": name,
        "licence": "see its terms",
        "terms": terms,
        **_renamed(whole, name),
    }
    spoken = language or language_code(whole.docs_lang() or ENGLISH)
    fields |= _named_language(spoken)
    about = {split: loaded[found].metadata() for split, found in named.items()}
    queries = {split: int(each.get("queries", {}).get("count", 0)) for split, each in about.items()}
    judged = about["test"].get("qrels", {}).get("fields", {}).get("relevance", {}).get("counts_by_value", {})
    given = {split: {"id": known[found]} for split, found in named.items()}
    passages = int(whole.metadata().get("docs", {}).get("count", 0))
    defined = {
        int(grade): " ".join(str(text).split()) for grade, text in (loaded[named["test"]].qrels_defs() or {}).items()
    }
    if name.startswith("beir/"):  # as BEIR's own evaluation
        fields["ignore_identical_ids"] = True
    if TRAIN in named:  # whether there are any shows when it is downloaded
        fields["ignore_copies"] = True
    counts = {int(grade): int(count) for grade, count in judged.items()}
    least = next((grade for family, grade in RELEVANT_FROM.items() if name.startswith(family)), 1)
    signs = IDEOGRAPHS.get(spoken, 0)
    return _with_validation(Source(fields, given, passages, queries, counts, defined, least, characters=signs))


def _refuse_without_negatives(made: Collection, passages: int) -> None:
    """Every training query needs passages that do not answer it, or nothing is left to learn from."""
    judged = made.qrels(TRAIN) if TRAIN in made.splits() else {}
    if judged and min(map(len, judged.values())) == passages:
        raise EncoreError(
            f"each training query judges all {passages} passages, so none can be its negative; give "
            "more passages, or evaluate models that learned elsewhere, with --zero-shot"
        )


def _texts(made: Collection) -> Iterator[str]:
    """What a vocabulary is trained on."""
    yield from (row["text"] for row in made.corpus())
    queries = made.queries()
    yield from (queries[name] for name in (made.qrels(TRAIN) if TRAIN in made.splits() else ()))


def _foreign(made: Collection) -> float:
    """The share of letters that are not Latin, in the first passages."""
    letters = "".join("".join(_LETTER.findall(row["text"])) for row in islice(made.corpus(), LOOKED_AT))
    return 1 - len(_LATIN.findall(letters)) / len(letters) if letters else 0.0


def _longest(made: Collection) -> int:
    """The words of the longest text, which are no more than its pieces; of one of ``LONG`` no further is looked for."""
    most = 0
    for row in made.corpus():
        most = max(most, _words(row["text"]))
        if most >= LONG:
            return LONG
    return most


def _closest(made: Collection, language: str) -> int | None:
    """The words of the shortest two sentences in a row, if any text has two; below ``CLOSE`` none is looked for."""
    fewest = None
    for row in made.corpus():
        for one, other in pairwise(map(_words, split(row["text"], language))):
            fewest = min(one + other, fewest or one + other)
        if fewest is not None and fewest <= CLOSE:
            break
    return fewest


def _words(text: str) -> int:
    return len(BertPreTokenizer().pre_tokenize_str(BertNormalizer().normalize_str(text)))  # an ideograph is a word


def _named_language(language: str) -> dict[str, str]:
    """The field of an entry that says its language, unless that is English."""
    return {} if language == ENGLISH else {"language": language}


def _named(found: list[str], where: str, *, zero_shot: bool) -> dict[str, str]:
    """The name of each split there: of `test`, and to train of `train` and, if there is one, of `valid`."""
    tested = [name for name in TESTED if name in found]
    tested = tested or [name for name in found if name != TRAIN][:1]
    if not tested:
        raise EncoreError(f"{where} has no judgments to test on; name them test, next to {', '.join(found)}")
    if zero_shot:
        return {"test": tested[0]}
    if TRAIN not in found:
        raise EncoreError(
            f"{where} has no judgments to train on, only {', '.join(found)}; add a train.tsv, or evaluate models that "
            "learned elsewhere, with --zero-shot"
        )
    return {"train": TRAIN, "test": tested[0]} | ({"valid": tested[1]} if len(tested) > 1 else {})


def _with_validation(source: Source) -> Source:
    """The same with validation queries held out of training, if it has no judgments for them.

    Raises:
        EncoreError: too few queries train.
    """
    if not source.trains or "valid" in source.given:
        return source
    held_out = min(MOST, source.queries["train"] // 10)
    if held_out < LEAST:
        raise EncoreError(
            f"{source.queries['train']} training queries are too few: a tenth validates, at least {LEAST}; give "
            f"{10 * LEAST}, move some to a dev.tsv, or evaluate models that learned elsewhere, with --zero-shot"
        )
    source.held_out = held_out
    source.queries |= {"train": source.queries["train"] - held_out, "valid": held_out}
    return source


def _loaded(load: Any, name: str) -> Any:
    try:
        return load(name)
    except KeyError:
        return None


def _renamed(dataset: Any, name: str) -> dict[str, dict[str, str]]:
    """The library's name of a document's text, if it differs from ours."""
    has = dataset.docs_cls()._fields
    text = next((each for each in TEXTS if each in has), None)
    if text is None:
        raise EncoreError(
            f"documents of {name} have {', '.join(has)}, and which is their text is not known; see `rename`"
        )
    return {} if text == "text" else {"rename": {"text": text}}
