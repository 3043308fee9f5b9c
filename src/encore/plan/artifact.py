"""What a plan consists of: folders of results, and the queries that a run answers."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from encore.errors import EncoreError
from encore.stages.base import SpecT, Stage

Spec = dict[str, Any]
# What a person who looks at planned jobs is told of a spec, in this order.
_SHOWN = {"loss": "{}", "model": "{}", "weights": "from {}", "run": "{}", "layers": "{} layers", "hidden": "hidden {}"}
_SHOWN |= {"vocabulary": "{} wordpieces", "steps": "{} steps", "epochs": "{} epochs", "batch": "batch {}"}
_SHOWN |= {"learning_rate": "learning rate {}", "length": "{} tokens", "depth": "depth {}", "collection": "on {}"}
_DIGEST = re.compile(r"-[0-9a-f]{8}(?![0-9a-f])")


@dataclass(frozen=True)
class Artifact:
    """A folder of results: the stage that makes it, with which spec, from which other folders (by role)."""

    stage: str
    folder: str
    spec: Spec
    inputs: dict[str, "Artifact"] = field(default_factory=dict)
    source: str | None = None  # a folder of the user's that is read, never part of the identity
    details: Mapping[str, Any] = field(default_factory=dict)  # addresses, licences, terms: nor are these

    @property
    def name(self) -> str:
        """The last part of the folder, by which specs of other artifacts name it."""
        return self.folder.rsplit("/", 1)[-1]

    @property
    def owner(self) -> str:
        """The part before it: of a run, its index or its scores, the system."""
        return self.folder.split("/")[-2]

    @property
    def manifest(self) -> str:
        """The path of its manifest."""
        return f"{self.folder}/manifest.json"

    @property
    def about(self) -> str:
        """Its spec in a few words, without digests: ``ict, from bert-base-s0, 172 steps, learning rate 0.0055``."""
        inner = (value for value in self.spec.values() if isinstance(value, dict))
        fields = {key: value for each in (*inner, self.spec) for key, value in each.items()}
        given = {key: fields[key] for key in _SHOWN if isinstance(fields.get(key), str | int | float)}
        words = [self.stage.partition(".")[2], *(_SHOWN[key].format(value) for key, value in given.items())]
        return _DIGEST.sub("", ", ".join(filter(None, words))) or self.stage

    def typed(self, stage: type[Stage[SpecT, Any]]) -> SpecT:
        """Its spec with types, as the stage that makes it has it."""
        return stage.spec_of(self.spec, self.inputs, self.folder)

    def ancestors(self) -> Iterator["Artifact"]:
        """This artifact after all that it is made from; one that is reached twice comes twice."""
        for parent in self.inputs.values():
            yield from parent.ancestors()
        yield self


def upstream(artifacts: Iterable[Artifact], wanted: Callable[[Artifact], bool] = lambda made: True) -> list[Artifact]:
    """Artifacts and all that they are made from, each once; nothing that is not wanted, nor what is behind that."""
    found: dict[str, Artifact] = {}
    waiting = list(artifacts)
    while waiting:
        now = waiting.pop()
        if now.folder not in found and wanted(now):
            found[now.folder] = now
            waiting.extend(now.inputs.values())
    return list(found.values())


class Topics(NamedTuple):
    """Which queries of a dataset a run answers, and how deep."""

    split: str
    depth: int
    queries: int | None = None
    sample: int = 0

    def __str__(self) -> str:
        return self.split + (f".{self.queries}" if self.queries else "")


def names(inputs: Mapping[str, Artifact]) -> Spec:
    """The names of the folders that an artifact is made from, as its spec has them."""
    return {role: artifact.name for role, artifact in inputs.items()}


def required(value: Any, field_name: str, owner: str) -> Any:
    """A field of a backbone that its kind of start cannot do without."""
    if value is None:
        raise EncoreError(f"{owner} needs the field {field_name!r}; add it in backbones.yaml")
    return value
