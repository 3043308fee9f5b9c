"""Which published counts a training of the plan can be compared with."""

from encore.config.published_counts import PublishedCount
from encore.plan.artifact import Artifact
from encore.plan.catalogue import Catalogue
from encore.plan.lineage import parse


def published_counts(catalogue: Catalogue, made: Artifact) -> list[PublishedCount]:
    """The counts that were published of a model's last step, as the catalogue has it; none of any other artifact.

    What a file of triples holds is nothing to compare a sample of queries with.
    """
    if "step" not in made.spec or "weights" not in made.inputs:
        return []
    step = step_name(made)
    fields = catalogue.steps[step]
    triples = None if fields.get("queries") else fields.get("triples")
    return [each for each in catalogue.published_counts if each.steps == step or (triples and each.triples == triples)]


def step_name(model: Artifact) -> str:
    """The name of a model's last step, without what it overrides."""
    return parse(model.name.rsplit("-s", 1)[0]).steps[-1].name


def share_with_triples(catalogue: Catalogue, made: Artifact) -> float:
    """The share of the judged queries that are learned from if those without triples are left out; otherwise 1.

    The triples are those that the negatives of a training, or of what teaches it, come from.
    """
    fields, negatives = made.spec.get("step", made.spec), made.inputs.get("negatives")
    if not fields.get("least_negatives") or negatives is None or negatives.spec.get("form") != "triples":
        return 1.0
    source = negatives.inputs["fetched"].name.rpartition("-")[0] if "fetched" in negatives.inputs else ""
    return next((each.share for each in catalogue.published_counts if source and each.triples == source), 1.0)
