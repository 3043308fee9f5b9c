"""Counts of trainings that were published: the entries of ``config/published_counts.yaml``."""

from collections.abc import Collection, Mapping
from pathlib import Path

from pydantic import Field, model_validator

from encore.config.validation import Positive, Strict, checked, load_yaml, nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.groups import names_of
from encore.plan.lineage import parse

COUNTED = {"pretrain": ("steps", "pieces_per_text"), "finetune": ("queries", "steps")}  # by kind of step


class PublishedCount(Strict):
    """A count of the trainings of some steps, or of the queries in files of triples."""

    steps: str | None = Field(None, description="a step, or several in braces or with a star")
    triples: str | None = Field(None, description="a source of triples, or several: of all steps that read them")
    count: str = Field(description="as manifests name it: queries, steps or pieces_per_text")
    published: float = Field(gt=0)
    judged: Positive | None = Field(None, description="of how many judged queries the triples hold some")
    place: str = Field(min_length=1, description="where it is published")

    @model_validator(mode="after")
    def _be_about_one_thing(self) -> "PublishedCount":
        if (self.steps is None) == (self.triples is None):
            raise ValueError("is about `steps` or about `triples`; name one of them")
        if (self.triples is None) != (self.judged is None):
            raise ValueError("`judged` goes with `triples`; give both, or `steps` alone")
        if self.judged and self.published > self.judged:
            raise ValueError(f"of {self.judged} judged queries {self.published:g} cannot be in the triples")
        return self

    @property
    def share(self) -> float:
        """The share of the judged queries that the triples hold."""
        return self.published / self.judged if self.judged else 1.0


def read_published_counts(path: Path, steps: Mapping[str, str], sources: Collection[str]) -> list[PublishedCount]:
    """The entries of the file, with what each is about written out, one for each name.

    Args:
        steps: the kind of every step.
    """
    content = load_yaml(path)
    if not isinstance(content, list):
        raise EncoreError(f"{path} must hold a list of counts, each with `published:`")
    found = []
    for number, value in enumerate(content, 1):
        place = f"{path}: entry {number}"
        entry = checked(PublishedCount, value, place)
        for source in names_of(entry.triples, sources) if entry.triples is not None else ():
            _refuse_unknown(source, sources, "source", place)
            _refuse_unknown(entry.count, ["queries"], "count of triples", place)
            found.append(entry.model_copy(update={"triples": source}))
        for step in names_of(entry.steps, steps) if entry.steps is not None else ():
            _refuse_unknown(step, steps, "step", place)
            _refuse_unknown(entry.count, COUNTED[steps[step]], f"count of {step!r}", place)
            found.append(entry.model_copy(update={"steps": step}))
    return found


def _refuse_unknown(name: str, known: Collection[str], what: str, place: str) -> None:
    if name not in known:
        raise EncoreError(f"{place}: unknown {what} {name!r}{nearest(name, known)}")


def step_name(model: Artifact) -> str:
    """The name of a model's last step, without what it overrides."""
    return parse(model.name.rsplit("-s", 1)[0]).steps[-1].name
