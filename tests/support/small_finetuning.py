"""A small store, judged queries and an encoder whose vectors are looked up; a batch's loss by its definition."""

from types import SimpleNamespace

import numpy as np
import torch

from encore.config.datasets import Ignored
from encore.config.finetuning import FinetuneStep
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.judged import judged_queries
from encore.finetuning import distillation
from encore.finetuning.queries import Query, in_rows
from encore.finetuning.step import SCORERS, TASKS
from encore.finetuning.validation import Validation, validation_pool
from encore.finetuning.whole_index import WholeIndex
from encore.models.checkpoint import ModelUse
from encore.models.encoder import Encoder
from encore.storage.document_ids import DocIds
from encore.training.gradients import TrainingModels
from tests.support import small_models
from tests.support.waves import wave
from tests.support.whole_loss import whole_loss

VOCABULARY, PASSAGES, QUERIES = 50, 30, 12
RECIPES = {
    "pool": {"in_batch_group": 2},
    "pool of one": {"in_batch_group": 1},
    "none": {"negatives": "none"},
    "log-q": {"negatives": "none", "logq_correction": True},
    "replacement": {"replacement": True},
}
NEGATIVES = {f"q{i}": {f"d{i + 10:02d}": 1, f"d{i + 12:02d}": 4, f"d{i + 14:02d}": 9} for i in range(7)}


class Texts(list):
    """What a task needs of the token store's sequences; queries and passages are read alike."""

    name = "passages"

    def __init__(self, texts, names):
        super().__init__(np.array(text, dtype=np.uint16) for text in texts)
        self.names = DocIds.of(names)
        self.lengths_of = np.array([len(text) for text in texts]).__getitem__


class Lookup(torch.nn.Module):
    """An encoder by definition simple: the mean of a table's rows over a text's tokens."""

    def __init__(self, dimension=8):
        super().__init__()
        self.table = torch.nn.Embedding(VOCABULARY, dimension, dtype=torch.float64)
        self.config = SimpleNamespace(pad=0, cls=1, sep=2, hidden=dimension, projection_dim=None)
        self.dimension = dimension

    query_tower = property(lambda self: self)
    joined = Encoder.joined

    def embed(self, ids, mask):
        weights = mask.double()[..., None]
        return (self.table(ids) * weights).sum(1) / weights.sum(1)


def step(**changes):
    values = {
        "kind": "finetune", "collection": "c", "steps": 1, "batch": 4, "learning_rate": 1e-3, "length": 12,
        "query_length": 6, "negatives": "bm25", "per_query": 2, "temperature": 0.5, "source": "test",
    }  # fmt: skip
    return FinetuneStep.model_validate(values | changes)


def small_store():
    """Random texts of 30 passages and 12 queries."""
    rng = np.random.default_rng(3)
    passages = [rng.integers(5, VOCABULARY, rng.integers(1, 20)) for _ in range(PASSAGES)]
    queries = [rng.integers(5, VOCABULARY, rng.integers(1, 9)) for _ in range(QUERIES)]
    return SimpleNamespace(
        passages=Texts(passages, [f"d{i:02d}" for i in range(PASSAGES)]),
        queries=Texts(queries, [f"q{i}" for i in range(QUERIES)]),
        special=SimpleNamespace(pad=0, cls=1, sep=2),
    )


def small_collection(folder):
    """Query i has passage i (grade 3); q0 also d01 and d02 (grade 1), q1 another of grade 3, q4 one of grade 0."""
    graded = [(f"q{i}", f"d{i:02d}", 3) for i in range(8)]
    graded += [("q0", "d01", 1), ("q0", "d02", 1), ("q1", "d20", 3), ("q4", "d21", 0)]
    valid = [(f"q{i}", f"d{i:02d}", 2) for i in range(8, 12)] + [("q8", "d25", 1)]
    write_collection(
        folder,
        [{"_id": f"d{i:02d}", "title": "", "text": "a passage"} for i in range(PASSAGES)],
        [{"_id": f"q{i}", "text": "a query"} for i in range(QUERIES)],
        {"train": [Judgment(*row) for row in graded], "valid": [Judgment(*row) for row in valid]},
    )
    return Collection(folder)


def queries_of(wanted, collection, store, negatives, positives=None, seed=0):
    """The queries that a step learns from."""
    judged = judged_queries(collection, **wanted.query_selection(seed), negatives=negatives)
    return in_rows(judged, store, negatives, positives)


def pool_of(wanted, collection, store, **ignored):
    """The pool that a step validates on."""
    sizes = {"queries": wanted.validation_queries, "passages": wanted.validation_pool}
    return validation_pool(collection, store, wanted.valid_split, **sizes, ignored=Ignored(**ignored))


def validation_of(wanted, pool, store):
    """What scores an encoder over a pool as a step says."""
    use = ModelUse(wanted.length, wanted.query_length, {"kind": "vector"})
    return Validation(pool, store, use, wanted.validation_measure)


def made(store, collection, **changes):
    wanted = step(**changes)
    return (distillation.TASKS | TASKS)[wanted.loss](wanted, queries_of(wanted, collection, store, NEGATIVES), store)


def index_task(store, collection, **changes):
    """A task whose queries are searched in all passages, by random vectors of these."""
    wanted = step(**{"negatives": "index", "loss": "lambda", "depth": 6} | changes)
    passages = np.random.default_rng(8).normal(size=(PASSAGES, 8))
    return WholeIndex(wanted, queries_of(wanted, collection, store, {}), store, passages)


def batch_of(task, indices, seed=0):
    examples = [task.example(index, np.random.default_rng([seed, index])) for index in indices]
    return examples, {name: torch.from_numpy(array) for name, array in task.collate(examples).items()}


def loss_and_slope(task, batch):
    """The loss where the table of vectors is a wave, and how it changes as that moves in a direction."""
    encoder = Lookup()
    encoder.table.weight.data = wave(*encoder.table.weight.shape, key="table")
    loss = whole_loss(task, encoder, torch.nn.ModuleDict(), batch)["loss"]
    (gradient,) = torch.autograd.grad(loss, encoder.table.weight)
    return [loss.item(), (gradient * wave(*gradient.shape, key="direction")).sum().item()]


def vectors(task, encoder, rows, texts, length):
    """Float64 vectors of texts one by one, so without any padding."""
    table = encoder.table.weight.detach().numpy()
    return np.stack([table[[1, *texts[row][: length - 2].tolist(), 2]].mean(axis=0) for row in rows])


def loss_by_definition(task, encoder, examples):
    """Mean of -log softmax over the pool's passages without other queries' answers of this one, in float64."""
    passages = [passage for example in examples for passage in example.passages]
    place = np.cumsum([0, *(len(example.passages) for example in examples)])
    found = vectors(task, encoder, passages, task.store.passages, task.step.length)
    queries = vectors(
        task, encoder, [example.query.row for example in examples], task.store.queries, task.step.query_length
    )
    terms = []
    for number, example in enumerate(examples):
        scores = found @ queries[number] / task.step.temperature - correction(task, passages)
        own, after = place[number], place[number + 1]
        kept = [
            i
            for i, passage in enumerate(passages)
            if own <= i < after or passage not in example.query.relevant or not task.step.exclude_relevant
            if task.step.in_batch_group is None
            or np.searchsorted(place, i, "right") - 1 in neighbours(number, task.step.in_batch_group)
        ]
        terms.append(np.log(np.exp(scores[kept]).sum()) - scores[own])
    return np.mean(terms)


def neighbours(query, pool):
    return range(query - query % pool, query - query % pool + pool)


def correction(task, passages):
    """log Q by counting: how often each passage would be brought if every query drew once, over all of its answers."""
    if not task.step.logq_correction:
        return np.zeros(len(passages))
    counted = [sum((passage in q.positives) / len(q.positives) for q in task.queries) for passage in passages]
    return np.log(np.array(counted) / len(task.queries))


def scorer_task(scorer, pooling="cls", **changes):
    """A cross-encoder's or late interaction's task and its models in float64, with a small random encoder.

    The answer of query 1 is one of query 0's too.
    """
    rng = np.random.default_rng(5)
    passages, queries = (
        [rng.integers(5, 96, size) for size in rng.integers(1, *drawn)] for drawn in ((16, 30), (9, 12))
    )
    store = SimpleNamespace(
        passages=Texts(passages, []), queries=Texts(queries, []), special=SimpleNamespace(pad=0, cls=2, sep=3)
    )
    asked = [Query(i, (i,), frozenset({i}), frozenset({i}), (i + 10, i + 11, i + 12)) for i in range(8)]
    asked[0] = Query(0, (0,), frozenset({0, 1}), frozenset({0, 1}), (10, 11))
    task = SCORERS[scorer](step(scorer=scorer, query_length=7, **changes), asked, store)
    encoder = small_models.random_encoder(pooling=pooling).double()
    torch.manual_seed(2)
    heads = task.heads(encoder.config)
    torch.nn.init.normal_(next(iter(heads.values())).weight, std=0.5)
    return task, TrainingModels(task, encoder, heads, torch.device("cpu"), {"precision": "fp32"})


def six_of(task):
    """The first six examples of a task."""
    return [task.example(index, np.random.default_rng([1, index])) for index in range(6)]


def loss_of(models, examples):
    """The loss of a batch, whole."""
    arrays = {name: torch.from_numpy(array) for name, array in models.task.collate(examples).items()}
    return whole_loss(models.task, models.encoder, models.heads, arrays)["loss"]
