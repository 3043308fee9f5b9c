"""Published question answering as ReQA: what SQuAD and Natural Questions share (Chang et al. 2020, section 4.1)."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from encore.config.datasets import MadeFrom
from encore.data import sentences
from encore.data.collection import Collection
from encore.datasets import source_files
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.reqa.build import ReqaFields, write_reqa
from encore.datasets.reqa.paragraphs import OWN, SourceParagraph, Spans, questions, splitter
from encore.datasets.reqa.tuples import Passage
from encore.errors import EncoreError

Count = Literal["queries", "candidates", "tuples"]
Reader = Callable[[list[Path], Counter[str]], Iterator[SourceParagraph]]


class PublishedReqaFields(ReqaFields):
    """An entry of the catalogue with ``kind: squad-reqa`` or ``kind: nq-reqa``."""

    path: str | None = Field(None, exclude=True, description="the folder of your own files")
    files: tuple[str, ...] = Field(min_length=1, description="each `source:file`, or a file in `path`; read in order")
    sentences: str = Field(
        OWN, description="the rules that split sentences: `encore`, or a file with the published ones, `source:file`"
    )
    of: str | None = Field(None, description="the collection that distractors are drawn from")
    expected: dict[Count, int] = Field(
        {}, description="counts as published, of strings; others are printed, and stay on record"
    )

    @model_validator(mode="before")
    @classmethod
    def _say_whose_sentences_they_are(cls, given: Any) -> Any:
        """Note in tables if sentences are split by other rules than those of the published counts."""
        if not isinstance(given, dict) or given.get("sentences", OWN) != OWN or not given.get("expected"):
            return given
        note = (
            f"Sentences of {given.get('kind')} are split by {sentences.RULES}, not by ReQA’s rules, so its candidates "
            "are others than the paper’s."
        )
        return {"note": note, **given}

    @model_validator(mode="after")
    def _draw_distractors_from_somewhere(self) -> "PublishedReqaFields":
        if bool(self.distractors) != (self.of is not None):
            raise ValueError("`distractors` are drawn from the collection `of`; give both, or none of them")
        return self

    @property
    def questions_identity(self) -> dict[str, Any]:
        """What decides the questions: neither the distractors' collection nor the published counts do."""
        return {name: value for name, value in super().questions_identity.items() if name not in ("of", "expected")}

    def read(self) -> list[str]:
        """Every file that is read, by its place."""
        return [*self.files, *([] if self.sentences == OWN else [self.sentences])]

    @property
    def made_from(self) -> MadeFrom:
        """The user's folder, the sources that files are named of, and where distractors are drawn."""
        return MadeFrom(self.path, self.of, sources=source_files.sources(self.read()))

    def resolve(self) -> dict[str, Any]:
        """All that decides the content; the rules for sentences by name and version."""
        rules = {"rules": sentences.RULES} if self.sentences == OWN else {}
        return {**super().resolve(), **rules, **source_files.identity(self.read(), self.path)}


class PublishedReqaSpec(PublishedReqaFields):
    """The same fields, resolved: without the name of the collection that distractors are drawn from."""

    model_config = ConfigDict(extra="ignore")

    content: dict[str, str] = {}

    @model_validator(mode="after")
    def _draw_distractors_from_somewhere(self) -> "PublishedReqaSpec":
        return self


def published_kind(read: Reader, fields: type[PublishedReqaFields] = PublishedReqaFields) -> Kind[PublishedReqaSpec]:
    """The kind of collection whose files are read so: paragraphs of files, oddities to the counts."""
    return Kind(fields, PublishedReqaSpec, partial(build_published_reqa, read))


def build_published_reqa(read: Reader, spec: PublishedReqaSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, resolved ``PublishedReqaFields``, describes; returns its counts."""
    if spec.distractors and inputs.base is None:
        raise EncoreError(f"a collection of kind {spec.kind} with distractors needs --collection, where they are drawn")
    paths = source_files.located(spec.read(), inputs.source, inputs.sources, spec.content)
    spans = splitter(None if spec.sentences == OWN else paths[spec.sentences])
    counts: Counter[str] = Counter()
    paragraphs = read([paths[place] for place in spec.files], counts)
    made = list(questions(paragraphs, spans, counts))
    drawn = passages_of(inputs.needed_base()) if spec.distractors else ()
    pool = ((row["_id"], partial(_passage, row, spans)) for row in drawn)
    rules = sentences.RULES if spec.sentences == OWN else spec.sentences
    written = write_reqa(folder, made, pool, spec, files=counts, sentence_rules=rules, published=spec.expected)
    ours = {"queries": counts["published_queries"], "tuples": counts["published_tuples"]}
    for name, published in spec.expected.items():
        if (found := ours.get(name, written["candidates"])) != published:
            print(f"warning: {found} {name}, {published} are published; sentences are split by {rules}")
    return written


def _passage(row: Mapping[str, str], spans: Spans) -> Passage:
    text = row["text"]
    texts_found = (" ".join(text[start:end].split()) for start, end in spans(text))
    return Passage(row["_id"], row["title"], tuple(dict.fromkeys(filter(None, texts_found))))


WORDS = 100  # of a passage at most


def passages_of(collection: Collection) -> Iterator[dict[str, Any]]:
    """A collection's passages; if it has articles only, those that they are cut into."""
    corpus = collection.corpus()
    if (first := next(corpus, None)) is not None:
        yield from chain([first], corpus)
        return
    for article in collection.articles():
        texts = (text for each in article["sections"] for text in packed(each["sentences"], WORDS))
        for number, text in enumerate(texts):
            yield {"_id": f"{article['_id']}-{number}", "title": article["title"], "text": text}


def packed(sentences: list[str], words: int) -> Iterator[str]:
    """Sentences joined as long as they fit; one that is too long stays whole, alone."""
    taken: list[str] = []
    size = 0
    for sentence in sentences:
        length = len(sentence.split())
        if taken and size + length > words:
            yield " ".join(taken)
            taken, size = [], 0
        taken.append(sentence)
        size += length
    if taken:
        yield " ".join(taken)
