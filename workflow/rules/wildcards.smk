"""What wildcards may be, so that each folder of results is made by one rule."""

from encore.plan import folders

NAME = r"[A-Za-z0-9_.=~+-]+-[0-9a-f]{8}"
AT_INDEX = r"@[a-z0-9_.=~-]+"
# Of names that the configuration gives; a cluster's job has those that its run was planned with.
PATTERNS = folders.patterns(PLAN.resolve) if PLAN else INDEX.patterns_of(RUN_FILE)


wildcard_constraints:
    **PATTERNS,
    start=r"[a-z0-9_.-]+-s\d+-[0-9a-f]{8}",
    indexed=rf"{NAME}{AT_INDEX}",
    system=rf"(?!(?:bm25\+mined|triples|systems|published)-[0-9a-f]{{8}}(?![\w.=~+@-])){NAME}(?:{AT_INDEX})?",
    listed=r"(?:triples|systems)-[0-9a-f]{8}",
    published=r"published-[0-9a-f]{8}",
    merged=r"bm25\+mined-[0-9a-f]{8}",
    teacher=rf"published|{NAME}",
    shard=r"\d{3,9}-of-\d{3,9}",
    collection=NAME,
    topics=NAME,
