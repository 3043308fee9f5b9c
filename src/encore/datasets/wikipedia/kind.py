"""Wikipedia as a kind of collection; what reads the dump is imported late, since planning needs the fields alone."""

from pathlib import Path
from typing import Any

from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.wikipedia.fields import WikipediaFields


def _build(spec: dict[str, Any], folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    from encore.datasets.wikipedia.build import build_wikipedia

    return build_wikipedia(spec, folder, inputs)


KIND = Kind(WikipediaFields, _build, parallel=True)
