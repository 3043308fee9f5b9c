"""The plan of teachers: each one's scores of a step's training queries and passages, shared by all its students."""

from encore.config.finetuning import FinetuneStep
from encore.config.sources import score_files
from encore.config.validation import explained
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec
from encore.plan.artifacts.collections import collection, given, no_negatives, tokenizer, tokens
from encore.plan.artifacts.negatives import training_queries
from encore.plan.lineage import Lineage
from encore.plan.planner import Planner
from encore.storage.files import remembered_contents

PUBLISHED = "published"  # the model's name in folders, where scores come from files


def teacher_outputs(plan: Planner, lineage: Lineage, seed: int, negatives: Artifact | None) -> dict[str, Artifact]:
    """The outputs of the teachers of a lineage's last step, by role; nothing where it has none.

    A student's temperature, rate or length is not part of it, so students that see the same passages share it.
    """
    step = plan.resolve.step(lineage.steps[-1])
    assert isinstance(step, FinetuneStep)
    place = f"step {lineage.steps[-1].name!r}"
    if step.is_distillation and not (step.teachers or step.teacher_scores):
        raise EncoreError(f"{place}: loss {step.loss} learns from teachers, and it has none; name some in `teachers`")
    if step.teachers and step.loss != "kl-in-batch" and negatives is None:
        raise EncoreError(f"{place}: loss {step.loss} needs its own negatives; let `negatives` be another than none")
    form = {"residual": "listed", "kl-in-batch": "vectors"}.get(step.loss, "scores")
    wanted = [(name, form) for name in step.teachers] + [(name, "vectors") for name in step.batch_teachers]
    found = [_published(plan, lineage, step)] if step.teacher_scores else []
    found += [_scored(plan, lineage, seed, negatives, *each) for each in wanted]
    return {f"teacher{number}": made for number, made in enumerate(found)}


def _scored(plan: Planner, lineage: Lineage, seed: int, negatives: Artifact | None, name: str, form: str) -> Artifact:
    """What a teacher gives to a step's queries with their passages.

    Args:
        form: ``scores`` of pairs, ``vectors`` where a student learns from whole batches, or the scores of pairs that
            are ``listed`` in a system's run.
    """
    step = plan.resolve.step(lineage.steps[-1])
    assert isinstance(step, FinetuneStep)
    place = f"step {lineage.steps[-1].name!r}, teachers"
    about: Spec = {"form": form}
    if form == "listed":
        run = _listed(plan, step, name, seed, negatives, place)
        inputs, owner = {"run": run}, run.owner
    else:
        model = _model(plan, lineage, name, seed, form, place)
        inputs, owner = {"model": model}, model.name
        about["numerics"] = plan.numerics()
    inputs["tokens"] = tokens(plan, step.collection, plan.resolve.backbone(lineage))
    inputs |= {"collection": collection(plan, step.collection)} | ({"negatives": negatives} if negatives else {})
    spec = {
        **step.query_selection(seed),
        "fill": max(step.negatives_kept, step.negatives_per_query) if negatives else 0,
        **about,
        **no_negatives(plan, step.collection),
    }
    folder = f"teachers/{owner}/{plan.resolve.dataset(step.collection).name}.{training_queries(step, seed)}"
    return plan.make("teacher_scores", folder, spec, inputs)


def _model(plan: Planner, lineage: Lineage, name: str, seed: int, form: str, place: str) -> Artifact:
    """The model of a teacher, which reads the student's tokens."""
    teacher = plan.resolve.teacher_of(lineage, name)
    if tokenizer(plan, plan.resolve.backbone(teacher)) is not tokenizer(plan, plan.resolve.backbone(lineage)):
        raise EncoreError(
            f"{place}: {teacher} has another vocabulary than {lineage}; name one that starts from the same backbone"
        )
    if form == "vectors" and plan.resolve.scorer(teacher) == "cross-encoder":
        raise EncoreError(
            f"{place}: {teacher} is a cross-encoder, which gives texts no vectors to score a batch with; "
            "use `loss: kl-pairwise` or `margin-mse`"
        )
    return plan.model(teacher, seed)


def _listed(
    plan: Planner, step: FinetuneStep, name: str, seed: int, negatives: Artifact | None, place: str
) -> Artifact:
    """BM25's run of a step's training queries, whose scores a residual is of."""
    if name not in plan.catalogue.systems or plan.resolve.has_chance(name) or negatives is None:
        raise EncoreError(
            f"{place}: a residual is of what a system without training leaves, and {name!r} is none; name one of kind "
            "bm25"
        )
    return plan.run(name, None, step.collection, training_queries(step, seed))


def _published(plan: Planner, lineage: Lineage, step: FinetuneStep) -> Artifact:
    """The scores of published files: of a source that is fetched, or of the user's own, wherever they are."""
    assert step.teacher_scores is not None
    inputs = {"tokens": tokens(plan, step.collection, plan.resolve.backbone(lineage))}
    files = given(plan, step.teacher_scores, lambda path: _contents(path, f"step {lineage.steps[-1].name!r}"))
    spec: Spec = {"form": PUBLISHED, **files.spec}
    folder = f"teachers/{PUBLISHED}/{plan.resolve.dataset(step.collection).name}.{step.train_split}"
    return plan.make("teacher_scores", folder, spec, inputs | files.inputs, files.folder)


def _contents(path: str, place: str) -> dict[str, str]:
    with explained(place):
        files = score_files(path)
    return remembered_contents(files)
