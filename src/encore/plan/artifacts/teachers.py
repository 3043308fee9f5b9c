"""The plan of teachers: each one's scores of a step's training queries and passages, shared by all its students."""

from encore.config.finetuning import FinetuneStep
from encore.config.lineage import Lineage
from encore.config.validation import explained
from encore.data.unpacked import score_files
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec, Topics, names
from encore.plan.artifacts.collections import collection, fetched_source, no_negatives, tokenizer, tokens
from encore.plan.planner import Planner
from encore.storage.files import remembered_contents

PARENT = "parent"  # among a step's teachers: the lineage without the step
PUBLISHED = "published"  # the model's name in folders, where scores come from files


def teacher_outputs(plan: Planner, lineage: Lineage, seed: int, negatives: Artifact | None) -> dict[str, Artifact]:
    """The outputs of the teachers of a lineage's last step, by role; nothing where it has none.

    A student's temperature, rate or length is not part of it, so students that see the same passages share it.

    Raises:
        EncoreError: a teacher is unknown, of another vocabulary, descends from its own student, or scores no batch.
    """
    step = plan.resolve.step(lineage.steps[-1])
    assert isinstance(step, FinetuneStep)
    place = f"step {lineage.steps[-1].name!r}"
    if step.is_distillation and not (step.teachers or step.teacher_scores):
        raise EncoreError(f"{place}: loss {step.loss} learns from teachers, and it has none; name some in `teachers`")
    if step.teachers and step.loss != "kl-in-batch" and negatives is None:
        raise EncoreError(f"{place}: loss {step.loss} needs its own negatives; let `negatives` be another than none")
    found = [_published(plan, lineage, step)] if step.teacher_scores else []
    if step.loss == "residual":
        found = [_listed(plan, lineage, step, name, seed, negatives) for name in step.teachers]
    else:
        own = "vectors" if step.loss == "kl-in-batch" else "scores"
        wanted = [(name, own) for name in step.teachers] + [(name, "vectors") for name in step.batch_teachers]
        for name, form in wanted:
            found.append(_outputs(plan, lineage, step, teacher_of(plan, lineage, name), seed, negatives, form))
    return {f"teacher{number}": made for number, made in enumerate(found)}


def teacher_of(plan: Planner, lineage: Lineage, name: str) -> Lineage:
    """The lineage that a step's teacher is.

    Raises:
        EncoreError: it is unknown, or made from the lineage that it would teach.
    """
    place = f"step {lineage.steps[-1].name!r}, teachers"
    with explained(place):
        teacher = lineage.parent if name == PARENT else plan.resolve.lineage(name)
    if f"{teacher}+".startswith(f"{lineage}+"):
        raise EncoreError(f"{place}: {teacher} is made from {lineage}, which it would teach; name another lineage")
    return teacher


def learned_from(plan: Planner, lineage: Lineage) -> list[Lineage]:
    """A lineage, its steps' teachers, whose run they took negatives from, and what these in turn have learned from."""
    found: dict[str, Lineage] = {}
    waiting = [lineage]
    while waiting:
        known = waiting.pop()
        if str(known) in found:
            continue
        found[str(known)] = known
        for count, named in enumerate(known.steps, 1):
            if isinstance(step := plan.resolve.step(named), FinetuneStep):
                own = Lineage(known.backbone, known.steps[:count])
                taught = () if step.loss == "residual" else (*step.teachers, *step.batch_teachers)
                waiting += [teacher_of(plan, own, teacher) for teacher in taught]
                with explained(f"step {named.name!r}, mined_by"):
                    waiting += plan.resolve.lineages_of(step.mined_by) if step.mined_by else []
    return list(found.values())


def _outputs(
    plan: Planner,
    lineage: Lineage,
    step: FinetuneStep,
    teacher: Lineage,
    seed: int,
    negatives: Artifact | None,
    form: str,
) -> Artifact:
    """Scores of the step's pairs, or vectors where a student learns from whole batches."""
    place = f"step {lineage.steps[-1].name!r}, teachers"
    if tokenizer(plan, plan.resolve.backbone(teacher)) is not tokenizer(plan, plan.resolve.backbone(lineage)):
        raise EncoreError(
            f"{place}: {teacher} has another vocabulary than {lineage}; name one that starts from the same backbone"
        )
    if form == "vectors" and plan.resolve.scorer(teacher) == "cross-encoder":
        raise EncoreError(
            f"{place}: {teacher} is a cross-encoder, which gives texts no vectors to score a batch with; "
            "use `loss: kl-pairwise` or `margin-mse`"
        )
    model, topics = plan.model(teacher, seed), Topics(step.train_split, 0, step.queries, step.sample_of(seed))
    about: Spec = {"form": form, "numerics": plan.numerics()}
    return _scored(plan, lineage, step, model.name, {"model": model}, topics, negatives, about)


def _listed(
    plan: Planner, lineage: Lineage, step: FinetuneStep, name: str, seed: int, negatives: Artifact | None
) -> Artifact:
    """The scores of a step's pairs in BM25's run of its training queries."""
    if name not in plan.catalogue.systems or plan.resolve.has_chance(name) or negatives is None:
        raise EncoreError(
            f"step {lineage.steps[-1].name!r}, teachers: a residual is of what a system without training leaves, and "
            f"{name!r} is none; name one of kind bm25"
        )
    topics = Topics(step.train_split, step.depth, step.queries, step.sample_of(seed))
    run = plan.run(name, None, step.collection, topics)
    return _scored(plan, lineage, step, run.owner, {"run": run}, topics, negatives, {"form": "listed"})


def _scored(
    plan: Planner,
    lineage: Lineage,
    step: FinetuneStep,
    owner: str,
    teacher: dict[str, Artifact],
    topics: Topics,
    negatives: Artifact | None,
    about: Spec,
) -> Artifact:
    """The scores that a teacher, a model or a run, gives to the step's queries with their passages."""
    inputs = {**teacher, "tokens": tokens(plan, step.collection, plan.resolve.backbone(lineage))}
    inputs |= {"collection": collection(plan, step.collection)} | ({"negatives": negatives} if negatives else {})
    spec = {
        "impl": plan.impl("teacher_scores"),
        "split": topics.split,
        "queries": topics.queries,
        "sample": topics.sample,
        "least_negatives": step.needed_negatives,
        "fill": max(step.negatives_kept, step.negatives_per_query) if negatives else 0,
        **about,
        **no_negatives(plan, step.collection),
        **names(inputs),
    }
    folder = f"teachers/{owner}/{plan.resolve.dataset(step.collection).name}.{topics}"
    return plan.make("teacher_scores", folder, spec, inputs)


def _published(plan: Planner, lineage: Lineage, step: FinetuneStep) -> Artifact:
    """The scores of published files: of a source that is fetched, or of the user's own, wherever they are."""
    assert step.teacher_scores is not None
    inputs = {"tokens": tokens(plan, step.collection, plan.resolve.backbone(lineage))}
    spec: Spec = {"impl": plan.impl("teacher_scores"), "form": PUBLISHED}
    folder = f"teachers/{PUBLISHED}/{plan.resolve.dataset(step.collection).name}.{step.train_split}"
    if step.teacher_scores in plan.catalogue.sources:
        inputs["fetched"] = fetched_source(plan, step.teacher_scores)
        return plan.make("teacher_scores", folder, {**spec, **names(inputs)}, inputs)
    with explained(f"step {lineage.steps[-1].name!r}"):
        files = score_files(step.teacher_scores)
    spec["content"] = remembered_contents(files)
    return plan.make("teacher_scores", folder, {**spec, **names(inputs)}, inputs, step.teacher_scores)
