"""What answers queries without being a lineage: the kinds of entries in ``systems.yaml``.

A system may be made of others (a first stage and what ranks its results again, two lists that are fused); how each
kind's run is planned is in ``planning/``.
"""

from typing import Any, Literal

from pydantic import Field

from encore.catalogue import nearest
from encore.config import Share, System
from encore.errors import EncoreError


class Bm25(System):
    """BM25 by Lucene."""

    kind: Literal["bm25"]
    k1: float = Field(0.9, ge=0)
    b: Share = 0.4


KINDS: dict[str, type[System]] = {"bm25": Bm25}


def read(fields: dict[str, Any]) -> System:
    """Check an entry's fields by its kind."""
    kind = fields.get("kind")
    if kind not in KINDS:
        raise EncoreError(f"unknown kind of system {kind!r}{nearest(str(kind), KINDS)}")
    return KINDS[kind].model_validate(fields)
