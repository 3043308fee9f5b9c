"""A collection of animals in places, with all that fine-tuning reads; the fixtures are in unit/conftest.py."""

import numpy as np
import torch

from encore.config.datasets import Ignored
from encore.config.finetuning import FinetuneStep
from encore.config.validation import checked
from encore.data import vocabulary
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.rankings import Ranking
from encore.data.runs import describe, write_run
from encore.data.tokens import TokenStore, write_store
from encore.finetuning.step import finetune
from encore.models import checkpoint
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.storage.manifest import record
from encore.training.checkpoint import Resume
from tests.support import inside

NUMERICS = {"precision": "fp32", "threads": 1}
STEP = {
    "kind": "finetune", "collection": "c", "steps": 12, "batch": 8, "learning_rate": 2e-3, "length": 16,
    "query_length": 8, "negatives": "bm25", "per_query": 1, "temperature": 0.1, "validate_every": 4, "source": "test",
}  # fmt: skip
ANIMALS, PLACES = (
    ["cat", "dog", "owl", "fox", "bee", "ant", "cow", "hen"],
    ["barn", "lake", "hill", "wood", "road", "roof", "cave", "den"],
)


def made(path, stage):
    return record(path, stage=stage, spec={}, inputs=[])


def special(store):
    return store.special.pad, store.special.cls, store.special.sep


def finetuned(step, inputs, output, state, seed=0, **ignored):
    """A step of these fields with the state of its training in a folder."""
    asked = checked(FinetuneStep, step, "fine-tuning step")
    said = {"seed": seed, "numerics": NUMERICS, "ignored": Ignored(**ignored), "resume": Resume(state)}
    return finetune(asked, inputs, output, **said)


def ranking_of(query):
    documents = [f"d{i}" for i in np.random.default_rng(query).permutation(64)[:20]]
    return Ranking(documents, np.linspace(9, 1, 20, dtype=np.float32))


def write_home(home):
    """64 passages, one about each animal in each place, and a query for each of them; a random model with heads;
    BM25's run of the training queries, made up, and the negatives of it.
    """
    pairs = [(animal, place) for animal in ANIMALS for place in PLACES]
    roles = {"train": range(40), "valid": range(40, 52), "test": range(52, 64)}
    with made(home / "collection", "collection.beir"):
        write_collection(
            home / "collection",
            [
                {"_id": f"d{i}", "title": "", "text": f"the {a} sleeps in the {p} tonight"}
                for i, (a, p) in enumerate(pairs)
            ],
            [{"_id": f"q{i}", "text": f"{p} {a}"} for i, (a, p) in enumerate(pairs)],
            {role: [Judgment(f"q{i}", f"d{i}", 1) for i in rows] for role, rows in roles.items()},
        )
    texts = [f"the {a} sleeps in the {p} tonight" for a, p in pairs]
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(vocabulary.train(texts, 90)), home / "tokenizer")
    with made(home / "tokens", "tokens"):
        write_store(Collection(home / "collection"), home / "tokenizer", home / "tokens")
    store = TokenStore(home / "tokens")
    torch.manual_seed(0)
    shape = EncoderConfig(store.vocabulary, 1, 16, 2, 32, 16, 0.0, "mean", "cosine", None, *special(store))
    with made(home / "start", "start"):
        checkpoint.save_model(Encoder(shape), {"mlm.bias": torch.arange(3.0)}, home / "start", store.tokenizer_folder)
    with made(home / "run", "lucene_search"):
        run = {f"q{i}": ranking_of(i) for i in roles["train"]}
        write_run(home / "run", run, describe("fake", collection="c", split="train", retrieval=[]))
    spec = {"split": "train", "depth": 20, "keep": 5, "exclude_judged": True, "seed": 0}
    inside.made("negatives", spec, {"run": "run", "collection": "collection"}, "negatives", home)
