"""A growing collection: what is relevant and what BM25 ranks high at first, then passages in a random order.

The order is one for all sizes, so a larger collection contains a smaller one. Vectors are not made again: search in a
part of the collection looks at the vectors of that part only.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from encore.data.collection import Collection, QuerySample, order, topics
from encore.data.rankings import Run
from encore.data.runs import read_run
from encore.errors import EncoreError
from encore.storage.files import open_text, open_text_writer

START, REST = "start.txt.gz", "rest.txt.gz"


def order_passages(
    asked: QuerySample, run: Path, collection: Path, output: Path, *, depth: int, seed: int
) -> dict[str, Any]:
    """Write the passages that a collection starts with and the others in the order in which they join; their numbers.

    Args:
        run: BM25's run over the queries.
        depth: its first results of each query, which are there from the start.
        seed: which random order.
    """
    texts = Collection(collection)
    chosen, judged = topics(texts, *asked), texts.qrels(asked.split)
    relevant = {document for query in chosen for document, grade in judged[query].items() if grade > 0}
    first, rest = ordered([document["_id"] for document in texts.corpus()], relevant, read_run(run), depth, seed)
    for name, documents in ((START, first), (REST, rest)):
        with open_text_writer(output / name) as file:
            file.writelines(f"{document}\n" for document in documents)
    print(f"{len(first)} of {len(first) + len(rest)} passages to start with, {len(relevant)} of them relevant")
    return {"start": len(first), "relevant": len(relevant), "passages": len(first) + len(rest)}


def ordered(corpus: list[str], relevant: Iterable[str], run: Run, depth: int, seed: int) -> tuple[list[str], list[str]]:
    """The start, in the corpus's order, and the rest, in the order of the sha256 of ``"<seed>:<id>"``.

    To take a beginning of the rest is to sample it uniformly without replacement.
    """
    ranked = {document for ranking in run.values() for document in ranking.documents[:depth]}
    start = ranked.union(relevant)
    rest = [document for document in corpus if document not in start]
    salt = str(seed)
    return [document for document in corpus if document in start], sorted(rest, key=lambda name: order(name, salt))


def members(folder: Path, size: str | int | float) -> set[str]:
    """The passages of the collection at a size: ``start``, a number of passages, or a share of all below 1."""
    with open_text(folder / START) as first, open_text(folder / REST) as others:
        start, rest = first.read().splitlines(), others.read().splitlines()
    total = len(start) + len(rest)
    count = len(start) if size == "start" else round(float(size) * total) if float(size) < 1 else int(size)
    if not len(start) <= count <= total:
        raise EncoreError(
            f"size {size} is {count:,} passages, but the collection starts from {len(start):,} and has "
            f"{total:,}; choose `sizes` between, or start from fewer `queries` or a smaller `depth`"
        )
    return {*start, *rest[: count - len(start)]}
