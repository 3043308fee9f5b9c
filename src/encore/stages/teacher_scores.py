"""Score what students learn from with their teacher, or convert published scores to the same files."""

from pathlib import Path

from encore.finetuning.teachers import TeacherRequest
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import FP32, PLAIN, PROCESS, Needs, Size
from encore.stages.rerank import scoring

PUBLISHED = 4e7  # triples in a file of published teacher scores


class Spec(Fields, TeacherRequest):
    """What is asked of the teacher."""


class Inputs(Roles):
    """The teacher, as a model or a run; the students' texts and negatives; or fetched scores."""

    model: Path | None = None
    run: Path | None = None
    tokens: Path
    collection: Path | None = None
    negatives: Path | None = None
    fetched: Path | None = None


class TeacherScores(Stage[Spec, Inputs]):
    """Shared by all students that see the same passages."""

    impl = 2
    devices = "one GPU"
    resumes = True

    def needs(self, size: Size) -> Needs:
        pairs = PUBLISHED if self.spec.form == "published" else size.queries * (1 + self.spec.fill)
        held, disk = 72 * size.passages + 40 * pairs, 12 * pairs
        if self.spec.form in ("listed", "published"):
            return Needs(PLAIN + held, disk)
        if self.spec.form == "vectors":
            disk += vector_bytes(size) * (min(pairs, size.passages) + size.queries)
        operations, on_gpu = scoring(size, pairs)
        return Needs(PROCESS + held, disk, operations=operations, gpu_memory=on_gpu)

    def make(self, job: Job) -> Facts:
        spec, given = self.spec, self.inputs
        if spec.form == "published":
            from encore.finetuning.teachers.published import write_published_scores

            place = str(job.source or given.fetched)
            return {"results": write_published_scores(place, given.tokens, job.output, spec.content)}
        from encore.finetuning.teachers.stage import write_teacher_outputs

        teacher = given.model or given.run
        assert teacher is not None
        assert given.collection is not None
        places = (given.tokens, given.collection, given.negatives, job.output, job.state)
        return {"results": write_teacher_outputs(spec, teacher, *places)}


def vector_bytes(size: Size) -> float:
    """Bytes of a text's vector, or, in 16 bits, of those of its tokens."""
    step = size.given["model"].get("step", {})
    if step.get("scorer") != "late-interaction":
        return FP32 * size.shape.dimension
    return 2 * step["token_dimension"] * size.passage_tokens(step["length"])


STAGE = TeacherScores
