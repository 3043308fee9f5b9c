"""A model's outputs on a few texts: the pieces that it names, words, a map of a query's candidates, its vectors.

Each kind of inspection is a function of a ``spec`` and folders that returns the content of ``inspection.json``.
"""

from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.storage.files import write_json

FILE = "inspection.json"


def inspect_model(
    spec: dict[str, Any],
    model: Path,
    tokens: Path,
    output: Path,
    head: Path | None = None,
    run: Path | None = None,
    collection: Path | None = None,
) -> dict[str, Any]:
    """Write ``inspection.json`` and return what the manifest keeps of it.

    Args:
        spec: ``kind``, its fields, and ``numerics``.
        head: the model whose vocabulary head is asked; without it, the model's own.
        run, collection: of a map, the run that candidates are taken from and what it searched.
    """
    from encore.data.tokens import TokenStore
    from encore.evaluation.inspection import pieces, vectors
    from encore.models import embed
    from encore.training import machine

    device = machine.prepare(spec["numerics"])
    store = TokenStore(tokens)
    encoder = embed.load_for_tokens(model, store).to(device).eval()
    with machine.precision(spec["numerics"], device):
        match spec["kind"]:
            case "coverage":
                found = pieces.measure_coverage(spec, encoder, store, head or model)
            case "vectors":
                found = vectors.measure_vectors(spec, encoder, store)
            case "words":
                found = pieces.predict_words(spec, encoder, store, head or model)
            case "heat":
                found = pieces.measure_heat(spec, encoder, store, model)
            case "map" if run is not None and collection is not None:
                found = vectors.map_candidates(spec, encoder, store, run, collection)
            case kind:
                raise EncoreError(f"no inspection of kind {kind!r} can be made of these folders")
    write_json(output / FILE, found)
    return {name: value for name, value in found.items() if isinstance(value, str | int | float)}
