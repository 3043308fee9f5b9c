"""What ir_datasets says of a collection, for ``encore new``; nothing is downloaded."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from encore.commands.new.source import (
    AS_ENGLISH,
    CROSS_LINGUAL,
    TESTED,
    TRAIN,
    Source,
    language_field,
    named_splits,
    with_validation,
)
from encore.config.languages import ENGLISH, NOT_LATIN, language_code
from encore.config.validation import nearest
from encore.datasets.download.ir_datasets import offline
from encore.errors import EncoreError

# The least relevant grade of sets whose publishers say another than 1: Hashemi et al. 2020; TREC's deep learning track,
# of passages (of documents it is 1: trec.nist.gov/data/deep2019.html).
RELEVANT_FROM = {"antique": 3, "msmarco-passage/trec-dl": 2, "msmarco-passage-v2/trec-dl": 2}
TURNED = {"cranfield": {-1: -1, 1: 4, 2: 3, 3: 2, 4: 1}}  # grades whose definitions at ir_datasets are of the new ones
SCORED = ("/small", "/judged")  # ends of names of the part of a split that is usually scored, or is judged (MS MARCO)
IDEOGRAPHS = {"ja": 4000, "ko": 3000, "yue": 5000, "zh": 5000}  # characters of a collection that is not there yet
Load = Callable[[str], Any]
TEXTS = ("text", "body", "abstract", "main_content", "default_text")  # a document's text as ir_datasets calls it


def ir_datasets_source(name: str, data_root: Path, language: str | None = None, *, zero_shot: bool) -> Source:
    """What ir_datasets knows of a dataset, without downloading anything.

    As of a folder (``beir_source``), judgments that could train are a part of the collection where nothing trains, too:
    texts are then encoded once.
    """
    load = offline(data_root)
    try:
        source = _source(load, name, language, only_test=False)
    except EncoreError:  # nothing trains, or too little
        if not zero_shot:
            raise
        return _source(load, name, language, only_test=True)
    source.zero_shot = zero_shot
    return source


def _source(load: Load, name: str, language: str | None, *, only_test: bool) -> Source:
    whole = _loaded(load, name)
    if whole is None:
        import ir_datasets

        raise EncoreError(f"ir_datasets has no {name!r}{nearest(name, ir_datasets.registry)}")
    known = {split: _judged_id(load, f"{name}/{split}", SCORED) for split in (TRAIN, *TESTED)}
    known["test"] = known["test"] or _judged_id(load, name, SCORED[1:])
    loaded = {split: load(found) for split, found in known.items() if found}
    where = f"ir_datasets' {name}"
    if set(loaded) <= {TRAIN} and (below := _below(load, name)):
        where += f" (below it: {', '.join(below)})"
    named = named_splits(list(loaded), where, "ir-datasets", zero_shot=only_test)
    sets = {split: loaded[found] for split, found in named.items()}
    turned = TURNED.get(name, {})
    given: dict[str, dict[str, Any]] = {
        split: {"id": known[found], **({"grades": turned} if turned else {})} for split, found in named.items()
    }
    read_in, asked_in = whole.docs_lang(), sets["test"].queries_lang()
    spoken = language or language_code(read_in or asked_in or ENGLISH)
    fields: dict[str, Any] = {
        "kind": "ir-datasets",
        "id": name,
        "licence": "see its terms",
        "terms": f"https://ir-datasets.com/{name.partition('/')[0]}.html",
        **_renamed(whole, name),
        **language_field(spoken),
    }
    if name.startswith("beir/"):  # as BEIR's own evaluation
        fields["ignore_identical_ids"] = True
    if TRAIN in named:  # whether there are any shows when it is downloaded
        fields["ignore_copies"] = True
    source = Source(fields, given, int(whole.metadata().get("docs", {}).get("count", 0)))
    source.characters, source.foreign = IDEOGRAPHS.get(spoken, 0), float(spoken in NOT_LATIN)
    _count(source, sets)
    source.notes = _searched(sets["test"].queries_cls(), given["test"]["id"])
    if named["test"] != "test":
        source.tested = f"Tested on {given['test']['id']}."
    if not (language or read_in or asked_in):
        source.notes.append(AS_ENGLISH)
    if asked_in and language_code(asked_in) != spoken:
        source.notes.append("The " + CROSS_LINGUAL.format(f"language ({language_code(asked_in)})"))
    return with_validation(source)


def _count(source: Source, sets: Mapping[str, Any]) -> None:
    """Enter the queries of each split, and the grades of what is tested, as the run will read them, by the library."""
    turned = source.given["test"].get("grades", {})
    about = {split: each.metadata() for split, each in sets.items()}
    source.queries = {  # those that are judged are not counted there, and are no more than either
        split: min(int(each.get(what, {}).get("count", 0)) for what in ("queries", "qrels"))
        for split, each in about.items()
    }
    judged = about["test"].get("qrels", {}).get("fields", {}).get("relevance", {}).get("counts_by_value", {})
    source.grades = {turned.get(int(grade), int(grade)): int(count) for grade, count in judged.items()}
    defined = sets["test"].qrels_defs() or {}
    source.means = {int(grade): " ".join(str(text).split()) for grade, text in defined.items()}
    tested = source.given["test"]["id"]
    source.least = next((grade for family, grade in RELEVANT_FROM.items() if tested.startswith(family)), 1)


def _judged_id(load: Load, name: str, parts: Sequence[str]) -> str | None:
    """The first id with judgments, of those parts of a set, or the set itself."""
    ids = (*(f"{name}{part}" for part in parts), name)
    return next((each for each in ids if (found := _loaded(load, each)) and found.has_qrels()), None)


def _below(load: Load, name: str) -> list[str]:
    """Ids of parts of a set that have judgments to test on, at most eight."""
    import ir_datasets

    ids = (each for each in ir_datasets.registry if each.startswith(f"{name}/") and f"/{TRAIN}" not in each)
    return list(islice((each for each in ids if _judged_id(load, each, ())), 8))


def _loaded(load: Load, name: str) -> Any:
    try:
        return load(name)
    except KeyError:
        return None


def _searched(query: Any, name: str) -> list[str]:
    """What of a query is searched, in a sentence, if that is not its text."""
    if "text" in query._fields:
        return []
    if not hasattr(query, "default_text"):
        raise EncoreError(f"queries of {name} have {', '.join(query._fields)}, and none is a text; name another id")
    return [f"A query has {', '.join(query._fields[1:])}; searched is {' '.join(query.default_text.__doc__.split())}."]


def _renamed(dataset: Any, name: str) -> dict[str, dict[str, str]]:
    """The library's name of a document's text, if it differs from ours."""
    has = dataset.docs_cls()._fields if dataset.has_docs() else ()
    text = next((each for each in TEXTS if each in has), None)
    if text is None:
        raise EncoreError(
            f"documents of {name} have {', '.join(has) or 'nothing'}; which is their text is not known, see `rename`"
        )
    return {} if text == "text" else {"rename": {"text": text}}
