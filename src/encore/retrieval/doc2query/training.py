"""Teaching a T5 to write the query that a passage answers."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from encore.config.entries import Step
from encore.config.systems import T5
from encore.data.collection import Collection
from encore.data.judged import judged_queries
from encore.errors import EncoreError
from encore.retrieval.doc2query import model as models
from encore.retrieval.doc2query.model import Doc2QueryTokenizer, filled
from encore.training import loop
from encore.training.checkpoint import Resume
from encore.training.record import write_curve
from encore.training.task import Arrays, ForwardOutput, Task

IGNORED = -100  # left out by torch's losses
Pair = tuple[str, str]  # a passage's text and a query that it answers


def training_pairs(collection: Collection, split: str, queries: int | None = None, sample: int = 0) -> list[Pair]:
    """Each query of the split, or of a sample of it, with each of its best passages.

    Nothing else of the collection's queries and judgments is looked at: predictions for the passages that validation
    and test queries ask for are made without them.
    """
    judged, texts = judged_queries(collection, split, queries, sample), collection.queries()
    pairs = [(query, name) for query, own in judged.items() for name in own.best]
    wanted = {name for _, name in pairs}
    passages = {name: " ".join(text) for name, text in collection.texts() if name in wanted}
    if not pairs:
        raise EncoreError(f"no query of split {split!r} of {collection.folder} has a relevant passage to learn from")
    return [(passages[name], texts[query]) for query, name in sorted(pairs)]


class QueryWriting(Task):
    """Passages, each with a query that it answers: the mean negative log-likelihood of the queries' tokens."""

    def __init__(self, pairs: list[Pair], words: Doc2QueryTokenizer, length: int, query_length: int) -> None:
        self.pairs, self.words, self.length, self.query_length = pairs, words, length, query_length

    def __len__(self) -> int:
        return len(self.pairs)

    def example(self, index: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        """The ids of a passage and of its query, the end of each included."""
        passage, query = self.pairs[index]
        return self.words.rows([passage], self.length)[0], self.words.rows([query], self.query_length)[0]

    def collate(self, examples: list[tuple[list[int], list[int]]]) -> Arrays:
        """``passages`` and ``attended`` [B, L], ``queries`` [B, Q], filled up with ``IGNORED``."""
        passages, queries = zip(*examples, strict=True)
        arrays = {"passages": filled(passages, self.words.pad), "queries": filled(queries, IGNORED)}
        arrays["attended"] = filled([[1] * len(row) for row in passages], 0)
        return {name: array.numpy() for name, array in arrays.items()}

    def loss_denominators(self, batch: Arrays) -> dict[str, int]:
        """Tokens of queries, their ends included."""
        return {"tokens": int((batch["queries"] != IGNORED).sum())}

    def forward(self, encoder: Any, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The loss of some passages' queries."""
        said = encoder(input_ids=batch["passages"], attention_mask=batch["attended"], labels=batch["queries"])
        return ForwardOutput({"tokens": said.loss}, {})

    def loss_weights(self, progress: float) -> dict[str, float]:
        """One term."""
        return {"tokens": 1.0}

    def flops(self, encoder: Any, batch: Arrays) -> float:
        """Six for each weight and token; half of the weights read passages, the others write queries."""
        weights = sum(weight.numel() for weight in encoder.parameters())
        return 3.0 * weights * (batch["passages"].size + batch["queries"].size)


def train(
    expansion: T5,
    numerics: dict[str, Any],
    collection: Path,
    tokenizer: Path | None,
    output: Path,
    state: Path,
    seconds: float = 120.0,
    begun: Path | None = None,
) -> dict[str, Any]:
    """Train on a split's queries and write the model; if interrupted it resumes and, on CPU, ends with the same bytes.

    Args:
        state: the folder of checkpoints; one is written every ``seconds``.
        begun: the folder of a published T5 that training starts from; without it, a new one.
    """
    pairs = training_pairs(Collection(collection), expansion.train_split, expansion.queries, expansion.sample)
    model, words = models.create(expansion, tokenizer, begun)
    task = QueryWriting(pairs, words, expansion.length, expansion.query_length)
    step = Step(
        collection="",
        steps=expansion.steps,
        batch=expansion.batch,
        learning_rate=expansion.learning_rate,
        warmup=math.ceil(expansion.warmup * expansion.steps),
        schedule="constant",
        length=expansion.length,
    )
    done = loop.train(task, model, nn.ModuleDict(), step, expansion.seed, Resume(state, seconds), numerics)
    models.save_model(output, model.cpu(), words)
    write_curve(output / "losses.tsv", done.losses)
    return {"pairs": len(pairs), "steps": done.steps, "loss": round(done.losses[-1].terms["loss"], 6)}
