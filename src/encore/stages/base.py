"""What a stage is: the fields that decide its result, the folders that it reads, what it needs, and how it is made.

Planning imports all stages, so a stage's file imports neither torch nor pandas; ``make`` imports what it computes with.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, get_args, get_origin

from encore.config.validation import Strict, checked
from encore.stages.needs import PLAIN, PROCESS, Needs, Size

Facts = dict[str, Any]  # of run.json; under the key ``results`` those of the manifest, which are deterministic


class Fields(Strict):
    """The fields that decide a folder's content, apart from the folders that it is made from: a stage's ``Spec``.

    A field that is not given stays out of the digest: one that is added with a default leaves earlier folders' names.
    """

    @property
    def variant(self) -> str:
        """The objective or the kind of dataset, where a stage has one file for each; else nothing."""
        return ""

    def dumped(self) -> dict[str, Any]:
        """The fields that were given, as JSON has them."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Roles(Strict):
    """The folders that a stage reads, by role: a stage's ``Inputs``.

    A list takes the roles that are numbered, in that order, a mapping those with a name: ``shards: list[Path]`` takes
    ``shard0`` and ``shard1``, and ``sources: dict[str, Path]`` takes ``source.wikipedia``.
    """

    @classmethod
    def of(cls, folders: Mapping[str, str | Path], place: str) -> Self:
        """The inputs that folders are, by role.

        Args:
            place: what they are inputs of, for messages.
        """
        found: dict[str, Any] = {}
        for role, folder in sorted(folders.items(), key=lambda each: _number(each[0])):  # JSON has 10 before 9
            name, kind = cls.field_of(role)
            if kind is list:
                found.setdefault(name, []).append(Path(folder))
            elif kind is dict:
                found.setdefault(name, {})[role.partition(".")[2]] = Path(folder)
            else:
                found[name] = Path(folder)
        return checked(cls, found, place)

    @classmethod
    def field_of(cls, role: str) -> tuple[str, type | None]:
        """The field that takes a role, and whether that is a list, a mapping, or one folder (None)."""
        for name, kind in _containers(cls).items():
            if re.fullmatch(rf"{name.removesuffix('s')}(\d+|\..+)", role):
                return name, kind
        return role, None

    def folders(self) -> list[Path]:
        """All folders, in the order of the fields."""
        return list(self._folders())

    def _folders(self) -> Iterator[Path]:
        for name in type(self).model_fields:
            match getattr(self, name):
                case None:
                    continue
                case Path() as folder:
                    yield folder
                case dict() as named:
                    yield from named.values()
                case several:
                    yield from several


def _number(role: str) -> int:
    found = re.search(r"\d+$", role)
    return int(found[0]) if found else 0


@cache
def _containers(inputs: type[Roles]) -> dict[str, type]:
    kinds = {name: get_origin(each.annotation) for name, each in inputs.model_fields.items()}
    return {name: kind for name, kind in kinds.items() if kind in (list, dict)}


@dataclass(frozen=True)
class Job:
    """How a folder is made: what decides no byte of it.

    Args:
        output: the folder.
        state: where an interrupted job keeps what it resumes from; removed once the folder is finished.
        source: the user's own file or folder that is read.
        details: what the plan says of the sources: addresses, licences, terms.
        threads: of this process, or processes that share work of the processor.
        processes: that share the work of GPUs, one each.
        workers: processes that make the batches of each of these.
        checkpoint_seconds: between two checkpoints of a training.
        java_memory_mb: that Java may take.
        data_root: where downloads are kept.
    """

    output: Path
    state: Path
    source: Path | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 1
    processes: int = 1
    workers: int = 0
    checkpoint_seconds: float = 120.0
    java_memory_mb: int = 1024
    data_root: Path = Path("data")


SpecT = TypeVar("SpecT", bound=Fields)
InputsT = TypeVar("InputsT", bound=Roles)


class Stage(Generic[SpecT, InputsT]):
    """One kind of folder of results. A subclass is a file of this folder, and is that file's ``STAGE``.

    ``impl`` is the version of what it writes: raise it when numbers change, since it is part of every folder's name.

    Attributes:
        devices: what computes: processors alone, one GPU where there is one, or several that train together.
        resumes: whether a job that was interrupted continues from where it was.
        does: what reports and forecasts say of it: it fetches from the network, trains a model, or makes an index.
        unnamed: fields of ``Inputs`` that the spec identifies otherwise, such as shards, whose number decides nothing.
    """

    impl: ClassVar[int] = 1
    devices: ClassVar[Literal["processors", "one GPU", "GPUs"]] = "processors"
    resumes: ClassVar[bool] = False
    does: ClassVar[Literal["fetches", "trains", "indexes", ""]] = ""
    unnamed: ClassVar[frozenset[str]] = frozenset()
    name: ClassVar[str]  # of its file
    fields: ClassVar[type[Fields]]  # ``Spec`` of its file
    roles: ClassVar[type[Roles]]  # ``Inputs`` of its file

    def __init_subclass__(cls) -> None:
        cls.name = cls.__module__.rpartition(".")[2]
        cls.fields, cls.roles = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]

    def __init__(self, spec: SpecT, inputs: InputsT) -> None:
        self.spec, self.inputs = spec, inputs

    def make(self, job: Job) -> Facts:
        """Write the folder, and return what is to be said of it.

        Where several processes share the work, each calls it, and what the first returns is recorded.
        """
        raise NotImplementedError

    def needs(self, size: Size) -> Needs:
        """What the job takes, by formulas; by default next to nothing."""
        return Needs(memory=PLAIN if self.devices == "processors" else PROCESS)

    @property
    def is_shared(self) -> bool:
        """Whether ``execution: processes`` share the work."""
        return self.devices == "GPUs"

    @classmethod
    def version(cls, variant: str) -> Any:
        """``impl`` as specs have it; of a stage whose variants have files of their own, also theirs."""
        return cls.impl

    @classmethod
    def modules(cls, variant: str) -> list[str]:
        """The modules that say how it is made: the stage's file, and that of a variant."""
        return [cls.__module__]

    @classmethod
    def called(cls, variant: str) -> str:
        """The stage's name with a variant, as manifests have it: ``pretrain.ict``."""
        return f"{cls.name}.{variant}" if variant else cls.name

    @classmethod
    def planned(cls, fields: Mapping[str, Any], inputs: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """The stage's name with its variant, and all that decides a folder: version, fields, and names of inputs.

        Args:
            fields: of its ``Spec``.
            inputs: the names of the folders that it is made from, by role.
        """
        spec = cls.fields(**fields)
        named = {role: name for role, name in inputs.items() if cls.roles.field_of(role)[0] not in cls.unnamed}
        return cls.called(spec.variant), {"impl": cls.version(spec.variant), **spec.dumped(), **named}

    @classmethod
    def read(cls, spec: Mapping[str, Any], inputs: Mapping[str, str | Path], place: str) -> Self:
        """The stage of a folder, by its full spec and the folders that it is made from.

        Args:
            place: the folder, for messages.
        """
        typed: Any = cls.spec_of(spec, inputs, place), cls.roles.of(inputs, place)
        return cls(*typed)

    @classmethod
    def spec_of(cls, spec: Mapping[str, Any], roles: Iterable[str], place: str) -> SpecT:
        """The stage's ``Spec`` of a folder, by its full spec and the roles of what it is made from."""
        known = {each.alias or name for name, each in cls.fields.model_fields.items()}
        fields = {key: spec[key] for key in spec if key in known or key not in {"impl", *roles}}
        typed: Any = checked(cls.fields, fields, place)
        return typed
