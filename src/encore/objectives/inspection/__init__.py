"""A model's outputs on a few texts: the pieces that it names, words, a map of a query's candidates, its vectors.

Each kind of inspection is a function that returns the content of ``inspection.json``.
"""

from pathlib import Path
from typing import Any

from encore.config.validation import Strict
from encore.errors import EncoreError
from encore.storage.files import write_json

FILE = "inspection.json"


class Inspection(Strict):
    """What is asked of a model, of which texts; each kind has some of the fields."""

    kind: str
    numerics: dict[str, Any]
    length: int  # tokens that are read of a text, or of a passage
    sample: int = 0  # which texts, which random order of examples, or which query
    texts: int = 0  # of the collection
    ks: list[int] = []  # the numbers of pieces that coverage is of
    top: int = 0  # pieces that are shown
    text: str | None = None  # the example; without it the first passage of a random order that is of a fit length
    shortest: int = 0  # in pieces
    longest: int = 0
    split: str = ""  # whose query is mapped
    candidates: int = 0  # ranks of the run on a map
    perplexity: int | float = 0
    seed_of_map: int = 0
    query_length: int = 0  # tokens


def inspect_model(
    asked: Inspection,
    model: Path,
    tokens: Path,
    output: Path,
    head: Path | None = None,
    run: Path | None = None,
    collection: Path | None = None,
) -> dict[str, Any]:
    """Write ``inspection.json`` and return what the manifest keeps of it.

    Args:
        head: the model whose vocabulary head is asked; without it, the model's own.
        run, collection: of a map, the run that candidates are taken from and what it searched.
    """
    from encore.data.tokens import TokenStore
    from encore.models import embed
    from encore.objectives.inspection import pieces, vectors
    from encore.training import machine

    device = machine.prepare(asked.numerics)
    store = TokenStore(tokens)
    encoder = embed.load_for_tokens(model, store).to(device).eval()
    with machine.precision(asked.numerics, device):
        match asked.kind:
            case "coverage":
                found = pieces.measure_coverage(asked, encoder, store, head or model)
            case "vectors":
                found = vectors.measure_vectors(asked, encoder, store)
            case "words":
                found = pieces.predict_words(asked, encoder, store, head or model)
            case "heat":
                found = pieces.measure_heat(asked, encoder, store, model)
            case "map" if run is not None and collection is not None:
                found = vectors.map_candidates(asked, encoder, store, run, collection)
            case kind:
                raise EncoreError(f"no inspection of kind {kind!r} can be made of these folders")
    write_json(output / FILE, found)
    return {name: value for name, value in found.items() if isinstance(value, str | int | float)}
