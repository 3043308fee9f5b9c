"""What a collection and the first models of a run need of each other: found before the run is written, not in a job."""

from typing import Any

from encore import objectives
from encore.commands.new.source import Source
from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan

PIECES = 1.5  # of a word, at most on average
UNKNOWN = 0.3  # of the letters: with more, a store refuses its share of [UNK]


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
    trainings = [each.spec["step"] for each in plan.made.values() if each.stage.startswith("pretrain.")]
    found: dict[str, set[str]] = {"min_tokens": set(), "length": set()}
    for step in (each for each in trainings if each["collection"] == name):
        if step.get("min_tokens", 1) > source.longest:
            found["min_tokens"].add(step["objective"])
        if objectives.load(step["objective"]).pairs_sentences and source.closest * PIECES > step["length"]:
            found["length"].add(step["objective"])
    return {need: those for need, those in found.items() if those}
