"""ReQA of your own passages and questions: a file of passages in sentences, each with what is asked about it.

``{"_id", "title", "sentences": [text], "questions": [{"text", "sentence"}]}``: sentence number ``sentence``, counted
from 0, answers the question. Only passages that are asked about are candidates; others can be distractors. Questions
about passages of one title are a cluster.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from encore.datasets.archives import FolderFields, add_statistics, checked_rows, opened
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.reqa.build import ReqaFields, ready, write_reqa
from encore.datasets.reqa.tuples import AnsweredQuestion, Passage
from encore.errors import EncoreError, quoted

FILE = "passages.jsonl"


class PreparedReqaFields(ReqaFields, FolderFields):
    """An entry of the catalogue with ``kind: prepared-reqa``."""

    distractors_from: str | None = Field(None, description="the folder whose passages are distractors; its own without")

    @property
    def questions_identity(self) -> dict[str, Any]:
        """What decides the questions and their splits."""
        return {**super().questions_identity, "path": self.path}

    @property
    def folders(self) -> list[str]:
        """The folder of the questions, and that of the distractors if there are any."""
        others = self.folder if self.distractors_from is None else self.distractors_from
        return [self.folder, *([others] if self.distractors else [])]

    def resolve(self) -> dict[str, Any]:
        """The content's identity: the fields, and digests of the files or of the archive."""
        return {**super().resolve(), **self.identity(*self.folders)}


class _Question(BaseModel):
    text: str
    sentence: int = Field(ge=0)


class _Row(BaseModel):
    id: str = Field(alias="_id")
    title: str = ""
    sentences: tuple[str, ...]
    questions: tuple[_Question, ...] = ()


class PreparedReqaSpec(PreparedReqaFields):
    """The same fields, resolved: ``path`` only of what is shipped with Encore."""

    model_config = ConfigDict(extra="ignore")

    path: str = ""
    content: dict[str, str]


def build_prepared_reqa(spec: PreparedReqaSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, resolved ``PreparedReqaFields``, describes; returns its counts."""
    with opened(spec.path, spec.content, inputs, *spec.folders) as place:
        asked, *others = (place / name for name in spec.folders)
        questions = [
            AnsweredQuestion(each.text, passage, each.sentence, passage.title)
            for passage, about in _passages(asked / FILE)
            for each in about
        ]
        pool = (passage for other in others for passage, _ in _passages(other / FILE))
        counts = write_reqa(folder, questions, ready(pool), spec)
        return add_statistics(folder, asked, counts)


def _passages(path: Path) -> Iterator[tuple[Passage, tuple[_Question, ...]]]:
    """Every passage of a file with its questions."""
    seen: set[str] = set()
    for number, _, read in checked_rows(path, _Row):
        if read.id in seen:
            raise EncoreError(f"{path}, line {number}: id {quoted(read.id)} occurs twice; remove one of the rows")
        seen.add(read.id)
        if beyond := [each.sentence for each in read.questions if each.sentence >= len(read.sentences)]:
            raise EncoreError(
                f"{path}, line {number}: sentence {beyond[0]} answers, and there are {len(read.sentences)}, counted "
                "from 0; correct the row"
            )
        yield Passage(read.id, read.title, read.sentences), read.questions


KIND = Kind(PreparedReqaFields, PreparedReqaSpec, build_prepared_reqa)
