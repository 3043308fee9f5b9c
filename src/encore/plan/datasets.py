"""The datasets of a run: the catalogue's and its own, which of them replaces another, and which is unavailable."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from encore.config.languages import ANALYSED, ENGLISH
from encore.config.run import RunConfig
from encore.config.validation import explained, nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, upstream
from encore.plan.catalogue import Catalogue, read_dataset

NOT_REPLACED = "nothing stands for it at this scale"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset by its own name, with the fields of its entry."""

    name: str
    fields: Any  # the ``CollectionFields`` of its kind
    _others: "Datasets"  # of the run

    @cached_property
    def content(self) -> dict[str, Any]:
        """What decides its content: its fields, and digests of the files that are read."""
        return self.fields.resolve() | self.fields.language_spec

    @property
    def questions(self) -> Any:
        """The identity of its queries: the kind's, otherwise the dataset's name."""
        return self.fields.questions_identity or self.name

    @property
    def derivation(self) -> list[str]:
        """Its own name, that of the dataset that it is derived from, and so on."""
        found = [self.name]
        while (base := self._others.own(found[-1]).fields.made_from.base) is not None and base not in found:
            found.append(base)
        return found

    def may_share_queries(self, learned: "Dataset") -> bool:
        """True if a model that learned from the other one may have seen this one's queries."""
        return bool(self._origins & learned._origins) and learned.name not in self.fields.apart_from

    @property
    def _origins(self) -> set[str]:
        found, waiting = set[str](), [self.name]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                fields = self._others.own(name).fields
                waiting += [each for each in (fields.made_from.base, fields.queries_of) if each is not None]
        return found


class Datasets(dict[str, Dataset]):
    """Every dataset of a run by its own name, as its scale has it."""

    def __init__(self, config: RunConfig, catalogue: Catalogue) -> None:
        """"""
        self._config, self._catalogue = config, catalogue
        for name in config.datasets:
            if name in catalogue.datasets:
                raise EncoreError(f"datasets.{name}: the catalogue has a dataset of that name; choose another")
        own = {}
        for name, value in config.datasets.items():
            with explained(f"datasets.{name}"):
                own[name] = read_dataset(value)
        root = config.execution.data_root
        entries = {name: fields.placed(root) for name, fields in {**catalogue.datasets, **own}.items()}
        super().__init__({name: Dataset(name, fields, self) for name, fields in _inheriting(entries).items()})

    def own(self, name: str) -> Dataset:
        """A dataset by its own name, whether or not another one replaces it at this scale."""
        if name not in self:
            raise EncoreError(f"unknown dataset {name!r}{nearest(name, self)}")
        return self[name]

    def named(self, name: str) -> Dataset:
        """The dataset that has a name at this scale: the one that replaces it, or itself."""
        replacement = self._config.scale.datasets.get(name, name)
        if replacement not in self:
            raise EncoreError(
                f"unknown dataset {replacement!r}; add it to the run's `datasets:`{nearest(replacement, self)}"
            )
        return self[replacement]

    def absence(self, name: str, split: str | None = None) -> str | None:
        """Reason why a dataset, or its split, is unavailable at this scale, or None.

        If a scale replaces datasets, one that it does not name is unavailable unless every installation has it.
        """
        scale = self._config.scale
        if name in scale.absent:
            return scale.absent[name]
        named = {*scale.datasets, *scale.datasets.values(), *self._config.datasets}
        if scale.datasets and name not in named and name in self and not self[name].fields.embedded:
            return NOT_REPLACED
        if split is None:
            return None
        reason: str | None = self.named(name).fields.absent.get(split)
        return reason

    def notes_behind(self, read: Iterable[Artifact]) -> Iterator[str]:
        """Sentences about the datasets that some artifacts were built from.

        They say which replaces a withdrawn one, and how BM25 reads those that are not English.
        """
        collections = (artifact for artifact in upstream(read) if artifact.stage.startswith("collection."))
        used = {artifact.name.rpartition("-")[0] for artifact in collections}
        for name in self:
            if name in used:
                fields = self.named(name).fields
                yield from filter(None, (fields.note, _analysed(name, fields.language)))

    def in_use(self) -> list[str]:
        """Datasets that systems are tested on: those that replace others, the run's own, those of its tables."""
        replaced = self._config.scale.datasets
        tables = (self._catalogue.tables[name] for name in self._config.tables if name in self._catalogue.tables)
        columns = (dataset for table in tables for dataset in sorted(table.datasets()))
        found = (column for column in columns if column in self or column in replaced)
        named = dict.fromkeys([*replaced, *self._config.datasets, *found])
        return list(dict.fromkeys(replaced.get(name, name) for name in named if not self.absence(name)))


def _inheriting(entries: dict[str, Any]) -> dict[str, Any]:
    """The entries, each with what it inherits from the dataset that it is derived from."""
    found: dict[str, Any] = {}

    def read(name: str) -> Any:
        fields = entries[name]
        if name not in found:
            found[name] = fields  # before its base is read: a circle is refused where it is planned
            if (base := fields.made_from.base) in entries:
                found[name] = fields.inheriting(read(base))
            elif base:
                raise EncoreError(f"dataset {name!r}: `of` names the unknown dataset {base!r}{nearest(base, entries)}")
            origins = [read(each) for each in (base, *fields.made_from.parts) if each in entries]
            found[name] = _in_their_language(name, found[name], origins)
        return found[name]

    return {name: read(name) for name in entries}


def _in_their_language(name: str, fields: Any, origins: list[Any]) -> Any:
    """The fields with the language of what the dataset is derived from, unless they have one."""
    languages = sorted({each.language for each in origins})
    if not languages or "language" in fields.model_fields_set:
        return fields
    if len(languages) > 1:
        raise EncoreError(
            f"dataset {name!r} joins texts of several languages ({', '.join(languages)}); give it a `language`"
        )
    return fields.model_copy(update={"language": languages[0]})


def _analysed(name: str, language: str) -> str | None:
    """How BM25 reads texts of a language, in a sentence; None of English."""
    if language == ENGLISH:
        return None
    if language in ANALYSED:
        return f"BM25 reads {name} with Lucene's analyser of its language ({language})."
    without = "in lower case and without a final 's, with no stems or stop words"
    return f"BM25 reads {name} ({language}) {without}: Anserini has no analyser for it."
