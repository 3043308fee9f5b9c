"""``encore new``: a run's file for your own collection: what the collection has, and a few lines that extend a run."""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from encore import objectives
from encore.commands.new_encoder import PAPERS_START, PublishedEncoder, published_encoder
from encore.config import lineage as naming
from encore.config.languages import CODE, ENGLISH
from encore.config.run import RunConfig
from encore.config.run_file import read_run
from encore.config.validation import DATASET, nearest, refuse_odd_name
from encore.data.collection import Collection
from encore.data.overlap import Overlap, overlap_with_training, own_documents
from encore.data.sentences import split
from encore.datasets.download.ir_datasets import offline
from encore.datasets.kinds import build_collection, load_kind
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.products.catalogue import load_catalogue, load_plan
from encore.products.tables.entries import Table
from encore.products.targets import everything_declared
from encore.storage import typed
from encore.storage.files import write_text

TRAIN, TESTED = "train", ("test", "dev", "valid", "validation", "val")  # usual names of judgments
LEAST, MOST = 10, 400  # queries that are held out for validation: a tenth of those that train
TEXTS = ("text", "body", "abstract", "main_content", "default_text")  # a document's text as ir_datasets calls it
TABLE, ZERO_SHOT, PUBLISHED = "table1", "zero-shot", "published"
AS_IT_IS = ("bm25", "as-it-is")  # rows of the last one in which nothing is trained
REPLACED = ("wikipedia", "wikipedia-bookcorpus", "msmarco-passage", "msmarco-passage-titles")  # what both tables need
MEASURES = {"RR@10": "RR@10", "R@100": "R@100", "R@1000": "R@1000"}
LACKING = {  # needs of objectives, attributes of their classes, that passages do not meet
    "reads_articles": "they learn from articles and links, not from passages",
    "pairs_sentences": "they learn from texts of two sentences, and here each has one",
}
USES = {"train": "queries to train on", "valid": "to validate with", "test": "to test with"}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore new``; ``--config`` is the run that the new one extends."""
    parser.add_argument("name", help="of the collection and of its run: config/NAME.yaml is written")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--beir", type=Path, metavar="FOLDER", help="a folder in BEIR's layout")
    source.add_argument("--ir-datasets", metavar="ID", help="what ir_datasets calls it, such as beir/scifact")
    parser.add_argument(
        "--language", help="of the texts, by ISO 639's code; en, or what ir_datasets says, if nothing is given"
    )
    parser.add_argument("--zero-shot", action="store_true", help="only test models that learned from the other run's")
    parser.add_argument(
        "--checkpoint", metavar="ENCODER", help="a published encoder to test: a folder, an archive, or an id of the hub"
    )
    parser.add_argument("--sha256", metavar="HEX", help="of the archive or of the weights, refused otherwise")
    parser.add_argument(
        "--drop", action="store_true", help="leave out documents without text and judgments of what does not exist"
    )


def answer(arguments: argparse.Namespace) -> int:
    """Look at the collection, write the run's file, and say what to type next.

    Raises:
        EncoreError: the name is taken or cannot be one, or the collection cannot be used; then nothing is written.
    """
    refuse_odd_name(arguments.name, "a dataset", DATASET)
    path = typed.DEFAULT_RUN.with_name(f"{arguments.name}.yaml")
    catalogue = load_catalogue()
    if path.exists() or arguments.name in catalogue.datasets:
        taken = f"{path} is there already" if path.exists() else f"the catalogue has a dataset {arguments.name!r}"
        raise EncoreError(f"{taken}; choose another name, or remove it")
    if arguments.language and not re.fullmatch(CODE, arguments.language):
        raise EncoreError(f"--language {arguments.language!r} is not a code of ISO 639; give one, such as hi for Hindi")
    base = read_run(arguments.config)
    zero_shot = arguments.zero_shot
    if arguments.beir:
        found = beir_source(arguments.beir, arguments.language or ENGLISH, zero_shot=zero_shot, drop=arguments.drop)
    else:
        root = Path(base.execution.data_root)
        found = ir_datasets_source(arguments.ir_datasets, root, arguments.language, zero_shot=zero_shot)
    encoder = None
    if arguments.sha256 and not arguments.checkpoint:
        raise EncoreError("--sha256 is of a --checkpoint, and none is named; name one")
    if arguments.checkpoint:
        given = arguments.name, arguments.checkpoint, arguments.sha256
        encoder = published_encoder(*given, Path(base.execution.data_root))
    text = run_text(arguments.name, found, (str(arguments.config), base), catalogue, encoder)
    everything_declared(load_plan(path, yaml.safe_load(text)))  # what cannot be planned is refused here
    write_text(path, text)
    run = typed.called(path)
    print("\n".join([f"{path} is written.", *about(found, encoder), "Now:"]))
    print(f"  {typed.encore('preflight', run=run)}\n  {typed.snakemake(run=run)}")
    return 0


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
    own: int = 0  # queries that are documents, too
    held_out: int | None = None
    pairs_of_sentences: bool = True  # whether any text has two; unknown before a download
    overlap: Overlap = Overlap(frozenset(), {})  # noqa: RUF009  # frozen; of what is tested with what trains

    @property
    def trains(self) -> bool:
        """True if a split of it trains."""
        return "train" in self.given

    @property
    def is_graded(self) -> bool:
        """True if relevant documents have several grades."""
        return sum(grade > 0 for grade in self.grades) > 1


def beir_source(folder: Path, language: str = ENGLISH, *, zero_shot: bool, drop: bool) -> Source:
    """Read a folder in BEIR's layout whole, as its job will.

    Args:
        language: of its texts, by ISO 639's code.
        zero_shot: nothing of it trains.
        drop: leave out documents without text and judgments of what does not exist, instead of refusing them.

    Raises:
        EncoreError: a file is missing, or anything in it is wrong, with file and line.
    """
    found = sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))
    if not found:
        there = sorted(path.relative_to(folder).as_posix() for path in (*folder.glob("*"), *folder.glob("qrels/*")))
        raise EncoreError(
            f"{folder}/qrels holds no .tsv of judgments (there: {', '.join(there[:8]) or 'nothing'}); give it a "
            "test.tsv, and a train.tsv to train on"
        )
    named = _named(found, f"{folder}/qrels", zero_shot=zero_shot)
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
        grades = Counter(grade for judged in made.qrels("test").values() for grade in judged.values())
        pairs = any(len(split(row["text"], language)) > 1 for row in made.corpus())
        overlap, own = overlap_with_training(made, "test"), own_documents(made)
    queries = {name: each["queries"] for name, each in counts["splits"].items()}
    if TRAIN in queries:
        queries[TRAIN] -= counts["splits"][TRAIN].get("queries_without_relevant", 0)  # which teach nothing
    fields |= {"ignore_identical_ids": True} if own else {}
    source = Source(fields, given, counts["passages"], queries, grades, own=own, overlap=overlap)
    source.pairs_of_sentences = pairs
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
    fields |= _named_language(language or whole.docs_lang() or ENGLISH)
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
    counts = {int(grade): int(count) for grade, count in judged.items()}
    return _with_validation(Source(fields, given, passages, queries, counts, defined))


def _named_language(language: str) -> dict[str, str]:
    """The field of an entry that says its language, unless that is English."""
    return {} if language == ENGLISH else {"language": language}


def _named(found: list[str], where: str, *, zero_shot: bool) -> dict[str, str]:
    """The name of each split there: of `test`, and to train of `train` and, if there is one, of `valid`."""
    tested = [name for name in TESTED if name in found]
    tested = tested or [name for name in found if name != TRAIN][:1]
    if not tested:
        raise EncoreError(f"{where} has no judgments to test on; name them test, beside {', '.join(found)}")
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
            f"{source.queries['train']} training queries are too few to hold out {LEAST} of ten times as many for "
            "validation; give more, move some to a dev.tsv, or evaluate models that learned elsewhere, with --zero-shot"
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


def run_text(
    name: str,
    source: Source,
    base: tuple[str, RunConfig],
    catalogue: Catalogue,
    encoder: PublishedEncoder | None = None,
) -> str:
    """The text of ``config/<name>.yaml``: table 1, or zero-shot search if nothing of the collection trains.

    Args:
        base: the file of the run that it extends, and its content.
        encoder: whose table it is instead: as it is, and fine-tuned if anything trains.
    """
    extended, config = base
    kept = {each: config.scale.datasets[each] for each in REPLACED if each in config.scale.datasets}
    datasets = dict.fromkeys(REPLACED, name) if source.trains else kept | {ZERO_SHOT: name}
    datasets |= {ZERO_SHOT: name} if encoder else {}
    entry, splits = _entry(source)
    if encoder:
        splits["test"]["measures"] = {"nDCG@10": "nDCG@10", **MEASURES}
    lines = [
        *(f"# {line}" for line in about(source, encoder)),
        f"extends: {_flow(extended)}",
        f"title: {_flow(name if source.trains else f'{name}, zero-shot')}",
        *(_of_encoder(source, config, catalogue, encoder) if encoder else _tables(source, config, catalogue)),
        f"  datasets: {_flow(datasets)}",
        *(_entries_of(encoder) if encoder else ()),
        "",
        "datasets:",
        f"  {_flow(name)}:",
        *(f"    {key}: {_flow(value)}" for key, value in entry.items()),
        "    splits:",
        *(f"      {key}: {_flow(value)}" for key, value in splits.items()),
    ]
    return "\n".join(lines) + "\n"


def about(source: Source, encoder: PublishedEncoder | None = None) -> Iterator[str]:
    """What was found in the collection, and of the encoder, in sentences."""
    asked = ", ".join(f"{source.queries[split]:,} {use}" for split, use in USES.items() if split in source.queries)
    grades = "several grades" if source.is_graded else "one grade"
    yield f"{source.passages:,} passages; {asked}; judgments of {grades}."
    if source.is_graded:
        counted = ", ".join(
            f"{grade} ({count:,}{f': {source.means[grade]}' if source.means.get(grade) else ''})"
            for grade, count in sorted(source.grades.items())
        )
        yield f"Test judgments by grade: {counted}. Every grade above 0 is relevant, unless a measure says rel=."
    if source.own:
        yield f"{source.own:,} queries are passages, too: their own is neither scored nor a negative."
    counts = {"a relevant passage": source.overlap.grades, "the text": source.overlap.texts}
    if shared := [f"{len(queries):,} have {what}" for what, queries in counts.items() if queries]:
        yield f"Of the test queries {' and '.join(shared)} of a query in train.tsv: the table tells them apart."
    if encoder:
        yield encoder.sentence()


def _of_encoder(source: Source, config: RunConfig, catalogue: Catalogue, encoder: PublishedEncoder) -> list[str]:
    """The lines of tables and scale of a published encoder: BM25 and itself, and rows that are trained from it."""
    if not source.trains:
        backbones = config.scale.backbones | {PAPERS_START: encoder.name}
        return [f"tables: {_flow({PUBLISHED: list(AS_IT_IS)})}", "scale:", f"  backbones: {_flow(backbones)}"]
    table = catalogue.tables[PUBLISHED]
    learned = [row for row in table.rows if row.id not in AS_IT_IS and (encoder.is_bert or row.role == "none")]
    left_out = {} if source.pairs_of_sentences else _needing(catalogue, table, "pairs_sentences")
    rows = [*AS_IT_IS, *(row.id for row in learned if row.id not in left_out)]
    reasons = [] if encoder.is_bert else ["# By Transformers' code, which is not pre-trained further here."]
    reasons += [f"# Left out, since {LACKING['pairs_sentences']}: {', '.join(left_out.values())}."] if left_out else []
    steps = {step.name for row in learned for step in naming.parse(row.system or "").steps}
    scale = encoder.scale(config, steps)
    return [
        *reasons,
        f"tables: {_flow({PUBLISHED: rows})}",
        "scale: # learning rates are the catalogue's, for published models; choose them with workflow/scripts/tune.py",
        *(f"  {key}: {_flow(value)}" for key, value in scale.items()),
    ]


def _entries_of(encoder: PublishedEncoder) -> list[str]:
    """The lines of the encoder's backbone and source."""
    found = []
    for section, entry in (("backbones", encoder.backbone), ("sources", encoder.source)):
        if entry:
            found += ["", f"{section}:", f"  {_flow(encoder.name)}:"]
            found += [f"    {key}: {_flow(value)}" for key, value in entry.items()]
    return found


def _tables(source: Source, config: RunConfig, catalogue: Catalogue) -> list[str]:
    """The lines of tables, with those rows of table 1 that the other run has and that the texts suffice for."""
    wanted = config.tables.get(TABLE, "all")
    if not source.trains:
        return [f"tables: {_flow({ZERO_SHOT: wanted})}", "scale:"]
    table = catalogue.tables[TABLE]
    rows = list(dict.fromkeys(row.id for row in table.rows)) if isinstance(wanted, str) else wanted
    reasons = []
    for need in (each for each in LACKING if each != "pairs_sentences" or not source.pairs_of_sentences):
        needing = _needing(catalogue, table, need)
        left_out = {row: needing[name] for row in rows if (name := row.rpartition(": ")[2]) in needing}
        rows = [row for row in rows if row not in left_out]
        reasons += [f"# Left out, since {LACKING[need]}: {', '.join(left_out.values())}."] if left_out else []
    return [*reasons, f"tables: {_flow({TABLE: rows if reasons else wanted})}", "scale:"]


def _entry(source: Source) -> tuple[dict[str, Any], dict[str, Any]]:
    """The dataset's entry and its splits: one, if nothing of it trains."""
    given, entry = source.given, dict(source.fields)
    if not source.trains:
        split = {"role": "test", **given["test"], "measures": {"nDCG@10": "nDCG@10", **MEASURES}}
        return entry | {"zero_shot": True}, {"test": split}
    splits: dict[str, Any] = {
        "train": {"role": "train", **given["train"]},
        "valid": {"role": "valid", **given.get("valid", {}), "measures": {"RR@10": "RR@10"}},
        "test": {"role": "test", **given["test"], "measures": MEASURES},
    }
    if source.held_out:
        entry["valid_queries"] = source.held_out
    if source.is_graded:
        same = given["test"] or {"file": "qrels/test.tsv"}
        splits["graded"] = {"role": "graded", "topics": "test", **same, "measures": {"nDCG@10": "nDCG@10"}}
    else:
        entry["absent"] = {"graded": "its judgments have one grade"}
    return entry, splits


def _needing(catalogue: Catalogue, table: Table, need: str) -> dict[str, str]:
    """Labels, by id, of the rows that are pre-trained by an objective with this need."""
    found = {}
    for row in table.rows:
        if row.system and row.system not in catalogue.systems:
            steps = (catalogue.steps[step.name] for step in naming.parse(row.system).steps)
            if any(step["kind"] == "pretrain" and getattr(objectives.load(step["objective"]), need) for step in steps):
                found[row.id] = row.label
    return found


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
