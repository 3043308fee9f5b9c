"""Books as articles of sections of sentences, to pre-train on: BookCorpus' one file, or a folder of plain texts.

BookCorpus (Zhu et al. 2015) has one sentence a line. A blank line ends a section, two a book; copies without blank
lines are split by count. A folder has a book in each ``.txt``, in prose, whose blank lines end paragraphs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from encore.config.datasets import CollectionSpec, MadeFrom
from encore.data import unpacked
from encore.data.articles import ArticlesFields, article, write_article_collection
from encore.data.sentences import split
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.source_files import refuse_changed
from encore.errors import EncoreError
from encore.storage.files import remembered_contents
from encore.storage.text_files import numbered_lines

Section = list[str]  # of sentences
ENDINGS = (".txt", ".txt.gz", ".txt.xz")
# Sentences of a section, where no blank line ends it, and of an article; longer books are several.
MOST = {"section_sentences": 64, "article_sentences": 1024}


class BooksFields(ArticlesFields):
    """An entry of the catalogue with ``kind: books``."""

    books: str | None = Field(None, description="the source that has them, in one .txt")
    path: str | None = Field(None, description="or your own file, or a folder with a book in each .txt")
    lines: Literal["sentences", "prose"] = Field("sentences", description="what a line holds")

    @model_validator(mode="after")
    def _lie_in_one_place(self) -> "BooksFields":
        if (self.books is None) == (self.path is None):
            raise ValueError("give either `books`, a source, or `path`")
        return self

    @property
    def made_from(self) -> MadeFrom:
        """The user's file or folder, or the source."""
        return MadeFrom(path=self.path, sources=[self.books] if self.books else [])

    def resolve(self) -> dict[str, Any]:
        """The content's identity: the digests of the user's files; a source is identified by its folder."""
        named = {"kind": self.kind, "lines": self.lines, **MOST}
        return named | ({"content": _content(Path(self.path))} if self.path else {})


class BooksSpec(CollectionSpec):
    """The same fields, resolved."""

    lines: Literal["sentences", "prose"]
    section_sentences: int
    article_sentences: int


def build_books(spec: BooksSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, a resolved ``BooksFields``, describes; returns its counts.

    One article is held at a time.
    """
    own, sources = inputs.source, inputs.sources
    if own is not None:
        refuse_changed(own, _content(own), spec.content)
    elif len(sources) != 1:
        raise EncoreError("a collection of kind books needs --source, a file or a folder, or one of --sources")
    files = _files(own) if own else [unpacked.file(next(iter(sources.values())), ENDINGS)]
    counts = {"files": len(files), "books": 0}
    found = _articles(files, spec, counts)
    articles = (article(name, "", [("", sentences) for sentences in sections]) for name, sections in found)
    return write_article_collection(folder, articles, counts)


def _articles(files: list[Path], spec: BooksSpec, counts: dict[str, int]) -> Iterator[tuple[str, list[Section]]]:
    """Ids and sections: a book is ``<number>``, the parts of a longer one ``<number>.1``, ``<number>.2``, …"""
    for path in files:
        part, held, size = 0, list[Section](), 0
        for section in _marked(path, spec):
            ended = section is None
            if held and (ended or size + len(section or ()) > spec.article_sentences):
                yield f"{counts['books']}.{part}" if part else str(counts["books"]), held
                part, held, size = part + 1, [], 0
            if section:
                held.append(section)
                size += len(section)
            if ended and part:
                counts["books"], part = counts["books"] + 1, 0


def _marked(path: Path, spec: BooksSpec) -> Iterator[Section | None]:
    """The sections of a file; None ends a book."""
    most, taken, blank = spec.section_sentences, list[str](), 0
    for sentences in _read(path, spec.lines, spec.language):
        blank = 0 if sentences else blank + 1
        if taken and ((spec.lines == "sentences" and blank) or len(taken) + len(sentences) > most):
            yield taken
            taken = []
        if blank == 2 and spec.lines == "sentences":
            yield None
        taken += sentences
    if taken:
        yield taken
    yield None


def _read(path: Path, lines: str, language: str) -> Iterator[Section]:
    """The sentence of each line, none of a blank one; or the sentences of each paragraph."""
    paragraph: list[str] = []
    for _, line in numbered_lines(path):
        text = " ".join(line.split())
        if lines == "sentences":
            yield [text] if text else []
        elif text:
            paragraph.append(text)
        elif paragraph:
            yield split(" ".join(paragraph), language)
            paragraph = []
    if paragraph:
        yield split(" ".join(paragraph), language)


def _files(own: Path) -> list[Path]:
    files = sorted(path for path in own.rglob("*") if path.name.endswith(ENDINGS)) if own.is_dir() else [own]
    if not files or not all(path.is_file() for path in files):
        raise EncoreError(f"{own} is missing, or has no text (.txt, .txt.gz, .txt.xz); put the books there")
    return files


def _content(own: Path) -> dict[str, str]:
    if not own.exists():
        return {"absent": own.name}
    return remembered_contents(
        {path.name if path == own else path.relative_to(own).as_posix(): path for path in _files(own)}
    )


KIND = Kind(BooksFields, BooksSpec, build_books, impl=2)
