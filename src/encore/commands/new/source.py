"""What ``encore new`` finds in a collection, here in a folder in BEIR's layout."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import regex
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from encore.config.languages import ENGLISH
from encore.data.collection import NEGATIVES, Collection, left_out
from encore.data.copies import Overlap, overlap_with_training, own_documents
from encore.data.sentences import split
from encore.data.vocabulary import fewest_pieces, unknown_share
from encore.datasets.foreign.conversion import SHOWN, naming_drop
from encore.datasets.kinds import build_collection, load_kind
from encore.datasets.source_files import chosen_to_validate
from encore.errors import EncoreError
from encore.evaluation.significance import can_be_tested
from encore.storage.text_files import PACKED

TRAIN, TESTED = "train", ("test", "dev", "dev1", "dev2", "valid", "validation", "val")  # usual names of judgments
CHANGES = {  # by kind, what else than --zero-shot there is if none tests, none trains, or too few do
    "beir": ("move some to a test.tsv", "add a train.tsv, or ", "give {enough}, move some to a dev.tsv, or "),
    "ir-datasets": ("name another id", "", ""),
}
LEAST, MOST = 10, 400  # queries that are held out for validation: a tenth of those that train
REPEATED = {"repeated_passages": "passages", "repeated_queries": "queries"}  # as a collection's statistics count them
ENOUGH = 0.9  # of the training queries, to learn from the negatives that these list
LOOKED_AT, UNLIKE = 1000, 0.5  # texts, for their script; more of their letters are of another one
AS_ENGLISH = "The texts are read as English, since no --language is named."
CROSS_LINGUAL = "queries are in another {}: BM25 reads them like passages, and finds only words that both write alike."
LONG, CLOSE = 128, 20  # words of a text, and of two sentences, that every objective is content with
_JUDGED = re.compile(r"qrels[/.](\w[\w-]*)\.(?:tsv|txt)(?:\.gz|\.xz|\.zst)?")
_LETTER, _LATIN = regex.compile(r"\p{L}"), regex.compile(r"\p{Latin}")
_WITHOUT_BLANKS = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Hiragana}\p{Katakana}]{1,4}")
NOTHING = Overlap(frozenset(), {})


@dataclass
class Source:
    """Your own collection: the fields of its entry except for the splits, and where each split's judgments are.

    ``given`` is where: ``{"file": "qrels/dev.tsv"}`` or ``{"id": "beir/scifact/test"}``.
    """

    fields: dict[str, Any]
    given: dict[str, dict[str, Any]]
    passages: int = 0
    queries: dict[str, int] = field(default_factory=dict)
    grades: Mapping[int, int] = field(default_factory=dict)  # judgments of each, of what is tested
    means: Mapping[int, str] = field(default_factory=dict)  # of each grade, where its publisher says so
    least: int = 1  # grade that is relevant
    own: int = 0  # queries that are documents, too
    copies: Mapping[str, int] = field(default_factory=dict)  # texts that repeat an earlier one, by kind
    held_out: int | None = None
    pairs_of_sentences: bool = True  # whether any text has two; unknown before a download
    overlap: Overlap = NOTHING  # of what is tested with what trains
    pretrains: bool = False  # on its passages, and learns from queries of another collection
    characters: int = 0  # pieces that a vocabulary has for them at least
    unknown: float = 0.0  # the share of queries' tokens that no vocabulary of its texts has characters for
    foreign: float = 0.0  # the share of letters that are not Latin, in the first passages
    longest: int = LONG  # words of a text, as far as it matters
    closest: int = 0  # words of the shortest two sentences of a text, as far as it matters
    unsuited: Mapping[str, Set[str]] = field(default_factory=dict)  # objectives by what they lack here
    scale: dict[str, Any] = field(default_factory=dict)  # what the first models are given for it
    notes: list[str] = field(default_factory=list)  # and what is to be said of that
    name: str = ""  # of the dataset
    rows: Sequence[str] = ()  # that are trained, by id; all without
    zero_shot: bool = False  # nothing of it trains here, whatever it has
    tested: str = ""  # which judgments test, in a sentence, if they are not called so

    @property
    def trains(self) -> bool:
        """True if a split of it trains in this run."""
        return self.has_training and not self.zero_shot

    @property
    def has_training(self) -> bool:
        """True if a split of it is there to train on: the collection is the same whether or not one does."""
        return "train" in self.given

    @property
    def is_graded(self) -> bool:
        """True if relevant documents have several grades."""
        return sum(grade > 0 for grade in self.grades) > 1


def beir_source(
    folder: Path, language: str = ENGLISH, *, zero_shot: bool, drop: bool, pretrain: bool = False
) -> Source:
    """Read a folder in BEIR's layout whole, as its job will.

    Where nothing trains, judgments that could train are a part of the collection all the same, if they are in order: a
    run that trains on it then has the same collection, and all that was made of it.

    Args:
        language: of its texts, by ISO 639's code.
        zero_shot: nothing of it trains.
        pretrain: on its passages, which may be all that there is.
        drop: leave out empty texts, rows that are there again and judgments of what does not exist, unrefused.
    """
    if not folder.is_dir():
        raise EncoreError(f"there is no folder {folder}; name another one, or make it of other files, with --from")
    found = _judged_files(folder)
    if not zero_shot or TRAIN not in found or pretrain:
        return _read(folder, found, language, only_test=zero_shot or pretrain, drop=drop, pretrain=pretrain)
    try:
        source = _read(folder, found, language, only_test=False, drop=drop)
    except EncoreError as error:  # of what trains, unless it is said again
        source = _read(folder, found, language, only_test=True, drop=drop)
        source.notes.append(f"Its training queries could not train: {error}.")
    source.zero_shot = True
    return source


def _read(
    folder: Path, found: dict[str, str], language: str, *, only_test: bool, drop: bool, pretrain: bool = False
) -> Source:
    """What is found in a folder, and in those of its files of judgments that are taken."""
    there = sorted(path.relative_to(folder).as_posix() for path in (*folder.glob("*"), *folder.glob("qrels/*")))
    shown = f"{folder}/qrels (there: {', '.join(there[:SHOWN]) or 'nothing'})"
    if not found and not pretrain:
        raise EncoreError(
            f"{shown} holds no judgments; give it a test.tsv, and a train.tsv to train on, or only pre-train on its "
            "passages, with --pretrain; --from reads other forms"
        )
    named = named_splits(list(found), shown, "beir", zero_shot=only_test) if found else {}
    given = {role: {} if found[name] == f"qrels/{role}.tsv" else {"file": found[name]} for role, name in named.items()}
    fields: dict[str, Any] = {"kind": "beir", "path": str(folder), **language_field(language)}
    fields |= {"empty_documents": "drop", "unknown_judgments": "drop"} if drop else {}
    listed = TRAIN in given and any((folder / f"{NEGATIVES}/{TRAIN}.tsv{end}").exists() for end in PACKED)
    fields |= {"listed_negatives": True} if listed else {}
    with TemporaryDirectory() as place:
        splits = {role: {"role": role, **where} for role, where in given.items()}
        spec = load_kind("beir").fields.model_validate({**fields, "splits": splits}).resolve()
        with naming_drop():
            build_collection("beir", spec, Path(place), source=folder)
        made = Collection(Path(place))
        source = _counted(made, Source(fields, given, pretrains=pretrain))
        _look_at_texts(made, source, language)
        if (asked := made.queries()) and abs(source.foreign - _foreign(asked.values())) > UNLIKE:
            source.notes.append("The " + CROSS_LINGUAL.format("script"))
            fields["note"] = f"{folder.name}: {CROSS_LINGUAL.format('script')}"
    if named.get("test", "test") != "test":
        source.tested = f"Tested on {named['test']} ({found[named['test']]}), since no judgments are called test."
    read = {"qrels", *(found[name] for name in named.values())}
    unread = [name for name in there if "qrels" in name and "/." not in name and name not in read]
    for name in unread[:SHOWN]:
        known = name in found.values()
        why = "no split of this run takes it" if known else "judgments are qrels/SPLIT.tsv or .txt; --from reads others"
        source.notes.append(f"Not read: {name} ({why}).")
    fields |= {"ignore_identical_ids": True} if source.own else {}
    fields |= {"ignore_copies": True} if source.copies else {}
    return source


def _counted(made: Collection, source: Source) -> Source:
    """The same with the counts of a collection, some of whose training queries are held out to validate."""
    counts = json.loads((made.folder / "statistics.json").read_text())
    _refuse_without_negatives(made, counts["passages"])
    tested = made.qrels("test") if source.given else {}
    if tested:
        _refuse_one_cluster(made, tested)
    source.passages = counts["passages"]
    source.queries = {name: each["queries"] for name, each in counts["splits"].items()}
    source.grades = Counter(grade for judged in tested.values() for grade in judged.values())
    if source.has_training:
        source.queries[TRAIN] -= counts["splits"][TRAIN].get("queries_without_relevant", 0)  # which teach nothing
    source = with_validation(source)
    held_out = chosen_to_validate(made.qrels(TRAIN), source.held_out) if source.held_out else ()
    source.overlap = overlap_with_training(made, "test", held_out) if source.given else NOTHING
    source.notes = [*left_out(counts), *_listed_negatives(made, source)]
    source.own = own_documents(made)
    source.copies = {name: counts[name] for name in REPEATED if name in counts}
    return source


def _look_at_texts(made: Collection, source: Source, language: str) -> None:
    """Enter what decides which models fit a collection's texts: letters, characters and lengths."""
    closest = _closest(made, language)
    source.pairs_of_sentences, source.closest = closest is not None, closest or 0
    pieces = fewest_pieces(_texts(made), language)
    source.characters = len(pieces) if language != ENGLISH else 0  # whose are never too many
    source.unknown = unknown_share(made.queries().values(), pieces, language)
    source.foreign, source.longest = _foreign(row["text"] for row in made.corpus()), _longest(made)


def _listed_negatives(made: Collection, source: Source) -> Iterator[str]:
    """Let steps take the negatives that training queries list, if nearly all do; what there is to say of it."""
    if not source.has_training:
        return
    judged = made.qrels(TRAIN)
    if source.fields.pop("listed_negatives", False):
        positives = {(query, document) for query in judged for document, grade in judged[query].items() if grade > 0}
        listed = {query for query, document, *_ in made.negatives(TRAIN) if (query, document) not in positives}
        listing = len(listed & judged.keys())
    else:
        listing = sum(min(grades.values()) <= 0 < max(grades.values()) for grades in judged.values())
    if listing >= ENOUGH * sum(max(grades.values()) > 0 for grades in judged.values()):
        source.fields["listed_negatives"] = True
        yield f"{listing:,} training queries list negatives, which replace BM25's (listed_negatives)."
    elif listing:
        yield (
            f"Only {listing:,} training queries list negatives, so BM25's are drawn; with `listed_negatives: true` the "
            "dataset's entry takes those."
        )


def _refuse_without_negatives(made: Collection, passages: int) -> None:
    """Every training query needs passages that do not answer it, or nothing is left to learn from."""
    judged = made.qrels(TRAIN) if TRAIN in made.splits() else {}
    if judged and min(map(len, judged.values())) == passages:
        raise EncoreError(
            f"each training query judges all {passages} passages, so none can be its negative; give "
            "more passages, or evaluate models that learned elsewhere, with --zero-shot"
        )


def _refuse_one_cluster(made: Collection, tested: Iterable[str]) -> None:
    """Nearly all test queries in one cluster, as a single one is, say nothing about the spread of a difference."""
    clusters = made.clusters()
    found = [clusters[query] for query in tested]
    if not can_be_tested(found):
        raise EncoreError(
            f"test queries: {len(found)}, all or nearly all of one cluster, so no difference can be tested; judge more "
            "queries (a query without a cluster is its own)"
        )


def _texts(made: Collection) -> Iterator[str]:
    """What a vocabulary is trained on."""
    yield from (row["text"] for row in made.corpus())
    queries = made.queries()
    yield from (queries[name] for name in (made.qrels(TRAIN) if TRAIN in made.splits() else ()))


def _foreign(texts: Iterable[str]) -> float:
    """The share of letters that are not Latin, in the first texts."""
    letters = "".join("".join(_LETTER.findall(text)) for text in islice(texts, LOOKED_AT))
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
        for pair in pairwise(split(row["text"], language)):
            words = sum(map(_words, pair))
            fewest = min(words, fewest or words)
        if fewest is not None and fewest <= CLOSE:
            break
    return fewest


def _words(text: str) -> int:
    """Words, of which an ideograph is one, and any four letters where no blank is between words."""
    words = BertPreTokenizer().pre_tokenize_str(BertNormalizer().normalize_str(text))
    return sum(max(1, len(_WITHOUT_BLANKS.findall(word))) for word, _ in words)


def language_field(language: str) -> dict[str, str]:
    """The field of an entry that says its language, unless that is English."""
    return {} if language == ENGLISH else {"language": language}


def _judged_files(folder: Path) -> dict[str, str]:
    """The file of each split's judgments: ``qrels/test.tsv``, also with ``.txt`` or packed, or ``qrels.test.tsv``."""
    found: dict[str, str] = {}
    in_layout = any(folder.glob("corpus.jsonl*"))  # else its files are of another form
    for path in sorted((*folder.glob("qrels/*"), *(folder.glob("qrels.*") if in_layout else ()))):
        name = path.relative_to(folder).as_posix()
        if split := _JUDGED.fullmatch(name):
            other = found.setdefault(split[1], name)
            if other != name:
                raise EncoreError(f"{folder} has {other} and {name}, both of {split[1]}; take one of them away")
    return found


def named_splits(found: list[str], where: str, kind: str, *, zero_shot: bool) -> dict[str, str]:
    """The name of each split there: of `test`, and to train of `train` and, if there is one, of `valid`."""
    to_test, to_train, _ = CHANGES[kind]
    tested = [name for name in TESTED if name in found]
    tested = tested or [name for name in found if name != TRAIN][:1]
    if not tested:
        raise EncoreError(f"{where} has no judgments to test on, only {', '.join(found) or 'texts'}; {to_test}")
    if zero_shot:
        return {"test": tested[0]}
    if TRAIN not in found:
        raise EncoreError(
            f"{where} has no judgments to train on, only {', '.join(found)}; {to_train}evaluate models that learned "
            "elsewhere, with --zero-shot"
        )
    return {"train": TRAIN, "test": tested[0]} | ({"valid": tested[1]} if len(tested) > 1 else {})


def with_validation(source: Source) -> Source:
    """The same with validation queries held out of training, if it has no judgments for them."""
    if not source.has_training or "valid" in source.given:
        return source
    held_out = min(MOST, source.queries["train"] // 10)
    if held_out < LEAST:
        raise EncoreError(
            f"{source.queries['train']} training queries are too few: a tenth validates, at least {LEAST}; "
            f"{CHANGES[source.fields['kind']][2].format(enough=10 * LEAST)}evaluate models that learned elsewhere, "
            "with --zero-shot"
        )
    source.held_out = held_out
    source.queries |= {"train": source.queries["train"] - held_out, "valid": held_out}
    return source
