"""The source text of modules, whose digest records say: whether an artifact was made by another version of a stage."""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def source_digest(*modules: str) -> str:
    """Digest of the source text of modules, by their names; of what these import nothing is in it."""
    found = hashlib.sha256()
    for module in modules:
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        found.update(Path(spec.origin).read_bytes())
    return found.hexdigest()[:16]
