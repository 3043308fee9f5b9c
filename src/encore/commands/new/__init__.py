"""``encore new``: a run's file for your own collection: what the collection has, and a few lines that extend a run."""

import argparse
from pathlib import Path
from typing import Any

import yaml

from encore import objectives
from encore.commands.new.earlier import take_names
from encore.commands.new.encoder import published_encoder
from encore.commands.new.from_ir_datasets import ir_datasets_source
from encore.commands.new.run_text import about, left_out_rows, run_text
from encore.commands.new.source import AS_ENGLISH, UNLIKE, Source, beir_source
from encore.commands.preflight import forecast_text
from encore.commands.preflight.forecast import forecast
from encore.commands.preflight.machines import find_machine
from encore.config.languages import ENGLISH, NOT_LATIN, language_code
from encore.config.run import RunConfig
from encore.config.run_file import read_run
from encore.config.validation import DATASET, refuse_odd_name
from encore.datasets.foreign.conversion import convert
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue, with_entries_of
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.products.targets import everything_declared
from encore.stages.pretrain import Pretrain
from encore.storage import program_files, typed
from encore.storage.files import write_text

PIECES = 1.5  # of a word, at most on average
UNKNOWN = 0.3  # of the letters: with more, a store refuses its share of [UNK]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore new``; ``--config`` is the run that the new one extends."""
    parser.add_argument("name", help="of the collection and of its run: config/NAME.yaml is written")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--beir", type=Path, metavar="FOLDER", help="a folder in BEIR's layout")
    source.add_argument(
        "--from", type=Path, metavar="PATH", dest="given", help="files in another form; data/NAME is made of them"
    )
    source.add_argument("--ir-datasets", metavar="ID", help="what ir_datasets calls it, such as beir/scifact")
    parser.add_argument(
        "--language", help="of the texts, by ISO 639's code; en, or what ir_datasets says, if nothing is given"
    )
    parser.add_argument(
        "--zero-shot", action="store_true", help="only test: --checkpoint as it is, or models that the other run trains"
    )
    parser.add_argument(
        "--pretrain", action="store_true", help="pre-train on its passages, and learn from queries of the other run"
    )
    parser.add_argument(
        "--checkpoint",
        metavar="ENCODER",
        help="a folder, an archive, or an id of the hub: a published encoder to test as it is and, without "
        "--zero-shot, to fine-tune and pre-train from",
    )
    parser.add_argument("--sha256", metavar="HEX", help="of the archive or of the weights, refused otherwise")
    parser.add_argument(
        "--rows",
        type=lambda text: text.split(","),
        metavar="ROWS",
        help="rows of the table that are trained, such as none,mlm; each costs hours, and without it all are",
    )
    parser.add_argument(
        "--drop",
        action="store_true",
        help="leave out texts that are empty, rows that are there twice, and judgments of what does not exist",
    )


def answer(arguments: argparse.Namespace) -> int:
    """Look at the collection, write the run's file, and say what to type next."""
    refuse_odd_name(arguments.name, "a dataset", DATASET)
    path = typed.DEFAULT_RUN.with_name(f"{arguments.name}.yaml")
    base = read_run(arguments.config)
    shipped = load_catalogue()
    catalogue = with_entries_of(base, shipped)
    if path.exists() or arguments.name in catalogue.datasets:
        taken = f"{path} is there already" if path.exists() else f"the catalogue has a dataset {arguments.name!r}"
        raise EncoreError(f"{taken}; choose another name, or remove it")
    if "" in (arguments.language, arguments.checkpoint, arguments.sha256):
        raise EncoreError("--language, --checkpoint or --sha256 is empty; give it a value, or leave it out")
    if arguments.language:
        arguments.language = language_code(arguments.language)
    if arguments.pretrain and (arguments.checkpoint or arguments.ir_datasets):
        raise EncoreError(
            "--pretrain starts from the other run's models, on passages of --beir or --from; name only one"
        )
    if arguments.sha256 and not arguments.checkpoint:
        raise EncoreError("--sha256 is of a --checkpoint, and none is named; name one")
    zero_shot, root = arguments.zero_shot, Path(base.execution.data_root)
    if folder := arguments.beir or (root / arguments.name if arguments.given else None):
        if arguments.given:
            print("\n".join([f"{folder} is made:", *convert(arguments.given, folder, drop=arguments.drop)]), flush=True)
        found = beir_source(
            folder, arguments.language or ENGLISH, zero_shot=zero_shot, drop=arguments.drop, pretrain=arguments.pretrain
        )
    else:
        found = ir_datasets_source(arguments.ir_datasets, root, arguments.language, zero_shot=zero_shot)
        found.fields |= {"unknown_judgments": "drop"} if arguments.drop else {}
    refuse_unnamed_language(found, arguments.language or found.fields.get("language"))
    if arguments.language is None and folder:  # no program guesses it, and other Latin letters look like English
        found.notes = [AS_ENGLISH, *found.notes]
    if folder and arguments.language in NOT_LATIN and found.foreign < UNLIKE:
        found.notes.append(f"Most letters are Latin, although --language is {arguments.language}: is it this one?")
    encoder, found.name, found.rows = None, arguments.name, arguments.rows or ()
    if arguments.checkpoint:
        given = arguments.name, arguments.checkpoint, arguments.sha256 and arguments.sha256.lower()
        encoder = published_encoder(*given, root)
    else:
        found.scale, notes = adapted(found, base, catalogue)
        found.notes = [*found.notes, *notes]
    found.notes += filter(None, [take_names(found, encoder, path.parent)])
    extended = program_files.name_to_extend(arguments.config), base
    text = run_text(arguments.name, found, extended, catalogue, encoder)
    plan = _planned(path, text, shipped)
    if lacking := unsuited(found, found.name, plan):
        found.unsuited = lacking
        text = run_text(arguments.name, found, extended, catalogue, encoder)
        plan = _planned(path, text, shipped)
    write_text(path, text)
    run = typed.called(path)
    print("\n".join([f"{path} is written.", *about(found, encoder), *left_out_rows(text), cost(plan, found), "Now:"]))
    print(f"  {typed.encore('preflight', run=run)}\n  {typed.snakemake(run=run)}")
    return 0


def cost(plan: Plan, source: Source) -> str:
    """What the run costs, in a sentence."""
    found = forecast(plan, [], find_machine(None))
    fewer = "; --rows none,mlm would train only these rows" if source.trains and not source.rows else ""
    return f"It takes {found.total.jobs:,} jobs and {forecast_text.about(found.core_hours, 1)} core-hours{fewer}."


def _planned(path: Path, text: str, catalogue: Catalogue) -> Plan:
    """The plan of a run with this text, with all that it declares; what cannot be planned is refused."""
    config = read_run(path, yaml.safe_load(text))
    plan = Plan(config, with_entries_of(config, catalogue))
    everything_declared(plan)
    return plan


def refuse_unnamed_language(source: Source, language: str | None) -> None:
    """Nobody but the user knows a text's language, and what English rules do to another one is seen nowhere later."""
    if language is None and source.foreign > UNKNOWN:
        raise EncoreError(
            f"{source.foreign:.0%} of the letters are not Latin; name the language of the texts, such as --language hi "
            "(--language en, if they are English all the same)"
        )


def adapted(source: Source, config: RunConfig, catalogue: Catalogue) -> tuple[dict[str, Any], list[str]]:
    """Fields of ``scale:`` that fit the first models to the texts, and what there is to say of these models."""
    if not source.trains and source.foreign > UNKNOWN:
        raise EncoreError(
            f"{source.foreign:.0%} of the letters are not Latin, and the other run's models learn from Latin ones; add "
            "training queries, or name a published encoder of that language with --checkpoint"
        )
    if not source.trains:
        return {}, []
    if source.unknown > UNKNOWN:
        raise EncoreError(
            f"{source.unknown:.0%} of the queries' tokens have characters that a vocabulary of the passages and "
            "training queries lacks; give more of those, or name a published encoder with --checkpoint"
        )
    fields: dict[str, Any] = {}
    said = []
    own = [catalogue.backbones[name] for name in config.scale.backbones.values()]
    smallest = min((backbone.vocabulary for backbone in own if backbone.vocabulary), default=source.characters)
    if source.characters > smallest:
        fields["vocabulary"] = 1 << (source.characters * 5 // 4).bit_length()
        said.append(f"Vocabularies have {fields['vocabulary']:,} pieces: {source.characters:,} are characters.")
    widest = max((backbone.hidden for backbone in own if backbone.start in ("lsa", "lineage")), default=0)
    if source.passages < widest:
        said.append(
            f"Word embeddings start from an analysis (LSA) of {source.passages} passages, which gives so many of their "
            f"{widest} dimensions; the others start at 0."
        )
    return fields, said


def unsuited(source: Source, name: str, plan: Plan) -> dict[str, set[str]]:
    """Objectives of a plan that the collection's texts are too short for, or two of its sentences too long."""
    made = (each for each in plan.made.values() if each.stage.startswith("pretrain."))
    trainings = [objectives.fields(each.typed(Pretrain).step) for each in made]
    found: dict[str, set[str]] = {"min_tokens": set(), "length": set()}
    for step in (each for each in trainings if each.collection == name):
        if getattr(step, "min_tokens", 1) > source.longest:
            found["min_tokens"].add(step.objective)
        if objectives.load(step.objective).pairs_sentences and source.closest * PIECES > step.length:
            found["length"].add(step.objective)
    return {need: those for need, those in found.items() if those}
