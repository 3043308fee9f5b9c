"""What the jobs need that read and write texts: collections, vocabularies, token stores, negatives, scores."""

from __future__ import annotations

from dataclasses import replace

from encore.commands.preflight import retrieval, shapes
from encore.commands.preflight.cost import Cost, Work
from encore.commands.preflight.retrieval import CHARACTERS, NAME, ROW
from encore.commands.preflight.sizes import PIECES, CollectionSize, CollectionSizes
from encore.models import flops
from encore.plan.artifact import Artifact

TITLES = 100.0  # bytes of titles, redirects and headings of a dump, for each passage of its articles
PACKED = 0.4  # of a text's bytes, in gzip
BLOCK = 100.0  # bytes a piece while the words of a block of texts are counted
WORD = 100.0  # bytes of a distinct word
TOGETHER = 64  # texts that B-PROP's parent model reads at once
LISTED = 240.0  # bytes of an id in lists, sets and dictionaries
TOKEN = 2  # bytes of a token in a store
T5_BASE = 223e6  # parameters of t5-base, the only T5 of others that an expansion names
KINDS = {"collection.pydocs": "docstrings", "collection.wikipedia": "wikitext_words"}  # kinds with a rate of their own


def collection(made: Artifact, sizes: CollectionSizes) -> Cost:
    """A collection in the common form."""
    size = sizes.of(made)
    text = _bytes(size)
    kind = KINDS.get(made.stage, "documents")
    amount = size.passages.tokens / PIECES if kind == "wikitext_words" else size.passages.count
    return Cost(
        works=(Work(kind, amount), Work("packed", text)),
        kept=PACKED * text,
        ram=(NAME + TITLES * (kind == "wikitext_words")) * (size.passages.count + sum(size.queries.values())),
        notes=tuple(size.notes),
    )


def tokenizer(made: Artifact, sizes: CollectionSizes) -> Cost:
    """A vocabulary trained on a collection, or a checkpoint's."""
    if "collection" not in made.inputs:
        return Cost(kept=1e6)
    size = sizes.of(made.inputs["collection"])
    return Cost(works=(Work("tokens", _tokens(size) / 4),), kept=0.5e6, ram=min(_bytes(size), 4e9) / 4)


def tokens(made: Artifact, sizes: CollectionSizes) -> Cost:
    """A token store: passages, queries, and the sentences of articles where there are any."""
    size = sizes.of(made.inputs["collection"])
    count = _tokens(size)
    names = 12 * (size.passages.count + sum(size.queries.values()))
    return Cost(
        works=(Work("tokens", count), Work("unpacked", _bytes(size))),
        kept=TOKEN * count + 8 * size.passages.count + names,
        ram=NAME * size.passages.count + 16 * size.passages.count,
        threads=2,
    )


def start(made: Artifact, sizes: CollectionSizes) -> Cost:
    """Weights at random, of a checkpoint, or with LSA of a corpus."""
    count = shapes.parameters(shapes.shape_of(made))
    works = [Work("bytes", 4.0 * count)]
    if "tokens" in made.inputs:
        works.append(Work("tokens", _tokens(sizes.of(made.inputs["tokens"].inputs["collection"]))))
    return Cost(tuple(works), "torch", kept=4.0 * count + 1e6, ram=8.0 * count)


def prepare(made: Artifact, sizes: CollectionSizes, processes: int) -> Cost:
    """Word counts and word sets; B-PROP reads all texts with the parent model, and keeps 4 bytes a piece meanwhile."""
    size = sizes.of(made.inputs["tokens"].inputs["collection"])
    sections = size.sections or size.passages
    works = (Work("tokens", 4 * sections.tokens),)
    words = min(BLOCK * sections.tokens, 1e9) + WORD * min(sections.tokens / 10, 15e6)
    cost = Cost(works, kept=sections.count * 200, ram=words + 16 * sections.tokens / size.sentence)
    if "weights" not in made.inputs:
        return cost
    shape = shapes.shape_of(made.inputs["weights"])
    length = float(sections.read(min(512, shape.max_length)).mean())
    each = flops.forward(shape, 1, max(1, round(length)))
    return replace(
        cost,
        works=(*works, Work("encode", sections.count * each / processes, shape, TOGETHER, length)),
        start="torch",
        scratch=4 * sections.tokens,
        ram=cost.ram + 4.0 * shapes.parameters(shape),
        gpu=True,
        gpu_memory=retrieval.inference(shape, TOGETHER, length),
        processes=processes,
    )


def count_pairs(made: Artifact, sizes: CollectionSizes) -> Cost:
    """Every pair of an epoch, one at a time; which section has which chunks is held in memory."""
    count = _tokens(sizes.of(made.inputs["tokens"].inputs["collection"]))
    return Cost(works=(Work("tokens", 4 * count),), kept=1e3, ram=4 * count)


def negatives(made: Artifact, sizes: CollectionSizes) -> Cost:
    """Negatives drawn from a run that is held in memory."""
    size = sizes.of(made.inputs["collection"])
    run = made.inputs.get("run")
    depth = run.spec["depth"] if run else 100
    queries = size.topics(made.spec["split"], run.spec["queries"] if run else None)
    return Cost(
        works=(Work("lines", queries * depth),),
        kept=queries * made.spec.get("keep", 30) * 6,
        ram=ROW * queries * depth,
    )


def merged(made: Artifact, sizes: CollectionSizes) -> Cost:
    """Two files of negatives as one."""
    both = [negatives(part, sizes) for part in made.inputs.values() if "collection" in part.inputs]
    kept = sum(cost.kept for cost in both)
    return Cost(works=(Work("lines", kept / 6),), kept=kept, ram=20 * kept)


def evaluate(made: Artifact, sizes: CollectionSizes) -> Cost:
    """Measures of a run."""
    run = made.inputs["run"]
    queries = sizes.of(made.inputs["collection"]).topics(run.spec["split"], run.spec["queries"])
    read = queries * run.spec["depth"]
    return Cost(works=(Work("lines", 2 * read),), kept=queries * 40, ram=2 * ROW * read)


def nested_corpora(made: Artifact, sizes: CollectionSizes) -> Cost:
    """The order in which a collection grows."""
    count = sizes.of(made.inputs["collection"]).passages.count
    return Cost(works=(Work("documents", count),), kept=12 * count, ram=LISTED * count)


def train_doc2query(made: Artifact, sizes: CollectionSizes) -> Cost:
    """A T5 that learns to write queries: six operations a parameter and token."""
    fields = made.spec["expansion"]
    count = _t5(fields)
    each = 6.0 * count * fields["batch"] * (fields["length"] + fields["query_length"]) / 2
    memory = 16.0 * count + fields["batch"] * fields["length"] * 12 * 34 * 768
    works = (Work("train", fields["steps"] * each),)
    return Cost(works, "torch", kept=4.0 * count, scratch=12.0 * count, ram=12.0 * count, gpu=True, gpu_memory=memory)


def predict_queries(made: Artifact, sizes: CollectionSizes) -> Cost:
    """Queries written for every passage, or read from a published file."""
    size = sizes.of(made.inputs["collection"])
    if "doc2query_model" not in made.inputs:
        return Cost(works=(Work("documents", size.passages.count),), kept=size.passages.count * 300)
    fields = made.spec
    written = fields["per_passage"] * fields["query_length"] + float(size.passages.read(fields["length"]).mean())
    count = _t5(made.inputs["doc2query_model"].spec["expansion"])
    works = (Work("encode", 2.0 * count * size.passages.count * written),)
    kept = size.passages.count * fields["per_passage"] * 15
    return Cost(works, "torch", kept=kept, ram=4.0 * count + 1e9, gpu=True, gpu_memory=4.0 * count + 2e9)


def _t5(fields: dict[str, object]) -> float:
    """Parameters of a T5: of a checkpoint those of t5-base, which an expansion names."""
    if "checkpoint" not in fields:
        return T5_BASE
    hidden, inner, layers = (float(str(fields[name])) for name in ("hidden", "intermediate", "layers"))
    return 8192 * hidden + layers * (12 * hidden * hidden + 4 * hidden * inner)


def _tokens(size: CollectionSize) -> float:
    return size.passages.tokens + (size.sections.tokens if size.sections else 0.0)


def _bytes(size: CollectionSize) -> float:
    """Bytes of all texts as they are."""
    return _tokens(size) * CHARACTERS
