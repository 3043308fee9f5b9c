"""How many pairs of texts a pre-training step learns from, and how long they are (Chang et al. 2020, table 1)."""

from pathlib import Path
from typing import Any

from encore import objectives
from encore.data.tokens import TokenStore
from encore.storage.files import write_json
from encore.training.randomness import generator

FILE = "pairs.json"
SPECIAL_TOKENS = 2  # [CLS] and [SEP], for which room is left


def count(spec: dict[str, Any], tokens: Path, output: Path) -> dict[str, Any]:
    """Write ``pairs.json``: ``pairs`` of an epoch, their ``tokens``, and the mean of a query's and of a document's.

    Tokens are word pieces as the model reads them: cut to the step's lengths, a title with its passage, no special
    tokens. One pair is in memory at a time; its chance depends on its number alone.

    Args:
        spec: ``step``, the fields of the step that decide which pairs there are.
    """
    step: Any = objectives.fields(spec["step"])
    objective: Any = objectives.load(step.objective)(step, TokenStore(tokens), None)
    queries = documents = 0
    for index in range(len(objective)):
        pair = objective.example(index, generator(0, "pairs", index))
        queries += min(len(pair.query), step.query_length - SPECIAL_TOKENS)
        documents += min(len(pair.document), step.length - SPECIAL_TOKENS) - bool(pair.title)
    found = {
        "pairs": len(objective),
        "tokens": queries + documents,
        "query_tokens": queries / len(objective),
        "document_tokens": documents / len(objective),
    }
    write_json(output / FILE, found)
    return found
