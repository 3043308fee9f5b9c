"""What wildcards may be, so that each folder of results is made by one rule."""

from encore.plan import folders

NAME = r"[a-z0-9_.=~+-]+-[0-9a-f]{8}"
AT_INDEX = r"@[a-z0-9_.=~-]+"


def of_plan(pattern, *arguments):
    """A regular expression of folders that the plan's names give; any, in a cluster's job, which runs one rule."""
    return pattern(PLAN.resolve, *arguments) if PLAN else rf"{NAME}(?:{AT_INDEX})?"


wildcard_constraints:
    start=r"[a-z0-9_.-]+-s\d+-[0-9a-f]{8}",
    pretrained=of_plan(folders.models_after, "pretrain"),
    finetuned=of_plan(folders.models_after, "finetune"),
    model=of_plan(folders.lineages),
    bm25=of_plan(folders.systems, "bm25"),
    fusion=of_plan(folders.systems, "fusion"),
    rerank=of_plan(folders.systems, "rerank"),
    indexed=rf"{NAME}{AT_INDEX}",
    system=rf"(?!(?:bm25\+mined|triples|systems|published)-){NAME}(?:{AT_INDEX})?",
    listed=r"(?:triples|systems)-[0-9a-f]{8}",
    published=r"published-[0-9a-f]{8}",
    merged=r"bm25\+mined-[0-9a-f]{8}",
    teacher=rf"published|{NAME}",
    shard=r"\d{3}-of-\d{3}",
    collection=NAME,
    topics=NAME,
