"""A fine-tuning step as the plan has it, with all that it reads: what both sides are given."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from encore.config.finetuning import FinetuneStep
from encore.data.collection import Collection, topics
from encore.data.judged import judged_queries
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.evaluation import EvaluationProtocol, judging
from encore.finetuning.contrastive import Contrastive
from encore.finetuning.negatives import mining
from encore.finetuning.queries import Example, in_rows
from encore.models import checkpoint, embed
from encore.models.encoder import Encoder
from encore.models.start import initial_encoder
from encore.plan.catalogue import read_step
from encore.products.catalogue import load_plan
from encore.retrieval.dense import Searcher, Shard
from encore.retrieval.encode import CollectionShard, encode
from encore.training.batches import BatchMaker
from encore.training.schedule import total_steps
from harness.setting import SHAPES

DEPTH = 100  # ranks that are searched; the measure looks at ten
MEASURE = "RR@10"
SPLIT = "valid"


@dataclass(frozen=True)
class Recipe:
    """The step, the texts, the judged queries with their negatives, and the weights at the start."""

    step: FinetuneStep
    numerics: dict[str, Any]
    store: TokenStore
    collection: Collection
    start: Path
    task: Contrastive
    expression: str  # of the measure on the collection's split for validation

    @property
    def steps(self) -> int:
        return total_steps(self.step, len(self.task))

    def batches(self, seed: int) -> list[list[Example]]:
        """The examples of every optimiser step, as our own loop draws them from the seed."""
        maker = BatchMaker(self.task, self.step.batch, seed)
        return [maker.examples(draw, range(len(draw.indices))) for draw in islice(maker.draws(), self.steps)]

    def texts(self, example: Example) -> list[str]:
        """A query, its positive, its negatives, as the token store has read them."""
        names = self.store.passages.names
        query = self._queries[self.store.queries.names[example.query.row]]
        return [query, *(self._passages[names[passage]] for passage in example.passages)]

    @cached_property
    def _queries(self) -> dict[str, str]:
        return self.collection.queries()

    @cached_property
    def _passages(self) -> dict[str, str]:
        return {row["_id"]: f"{row.get('title') or ''} {row['text']}".strip() for row in self.collection.corpus()}

    def of_shape(self, model: str, steps: int, folder: Path) -> Recipe:
        """So many steps from a start of another shape, drawn at random and written to ``folder``."""
        config = replace(embed.load_for_tokens(self.start, self.store).config, **SHAPES[model])
        checkpoint.save_model(initial_encoder(config, 0), {}, folder, self.store.tokenizer_folder)
        return replace(self, step=self.step.model_copy(update={"steps": steps}), start=folder)

    def score(self, encoder: Encoder) -> float:
        """RR@10 of a trained encoder: all queries of the validation role, exact search in the whole collection."""
        encoder.eval()
        with contextlib.redirect_stdout(io.StringIO()):  # the progress of encoding
            blocks = encode(encoder, self.store.passages, CollectionShard(0, 1), self.step.length)
            passages = np.concatenate(list(blocks))
        index = faiss.IndexFlatIP(encoder.dimension)
        index.add(passages)
        names = topics(self.collection, SPLIT)
        queries = self._embed(encoder.query_tower, names)
        run = Searcher([Shard(index, self.store.passages.names)]).search(names, queries, min(DEPTH, len(passages)))
        scores = judging.judge(run, self.collection, EvaluationProtocol(splits={SPLIT: {MEASURE: self.expression}}))
        return float(scores[SPLIT, MEASURE].values.mean())

    def _embed(self, tower: Encoder, names: list[str]) -> np.ndarray:
        places = {name: row for row, name in enumerate(self.store.queries.names)}
        return embed.embed_texts(
            tower, self.store.queries, np.array([places[name] for name in names]), self.step.query_length
        )


def planned(lineage: str, run: Path) -> Recipe:
    """The last step of a lineage under a run's configuration, from the files that Snakemake has made.

    Raises:
        EncoreError: the step is no plain contrast, or what it reads was not made yet.
    """
    plan = load_plan(run)
    model = plan.model(plan.resolve.lineage(lineage), plan.config.seeds[0])
    step = read_step(model.spec["step"])
    if not isinstance(step, FinetuneStep) or step.loss != "contrastive":
        raise EncoreError(f"{lineage} does not end with a contrastive fine-tuning step; name one that does")
    folders = {role: Path(model.inputs[role].folder) for role in ("tokens", "collection", "weights", "negatives")}
    for folder in folders.values():
        if not (folder / "manifest.json").is_file():
            raise EncoreError(f"{folder} is missing; first run: snakemake --cores 1 --profile local {model.manifest}")
    store, collection = TokenStore(folders["tokens"]), Collection(folders["collection"])
    negatives = mining.read_negatives(folders["negatives"])
    queries = in_rows(judged_queries(collection, **step.query_selection(0), negatives=negatives), store, negatives)
    expression = plan.resolve.dataset(step.collection).fields.splits[SPLIT].measures[MEASURE]
    numerics = plan.config.numerics.model_dump(exclude_none=True)
    task = Contrastive(step, queries, store)
    return Recipe(step, numerics, store, collection, folders["weights"], task, expression)
