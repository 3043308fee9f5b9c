"""What a dump becomes is what pre-training reads: pairs of ICT, BFS and WLP are those of the papers."""

from pathlib import Path

import numpy as np
import pytest
import torch

from encore import objectives
from encore.config.entries import Backbone
from encore.data import article_texts, vocabulary
from encore.data.collection import Collection
from encore.data.tokens import TokenStore, write_store
from encore.datasets import kinds
from encore.datasets.wikipedia import WikipediaFields
from encore.models import checkpoint
from encore.models.start import start_model
from encore.objectives.parts import step
from encore.training.checkpoint import Resume
from tests.support.small_dump import Wiki, write

ANIMALS = ["cat", "dog", "owl", "eel", "fox", "yak"]
STEP = {"kind": "pretrain", "collection": "c", "batch": 4, "learning_rate": 1e-3, "length": 24, "query_length": 12}


def page(number: int) -> Wiki:
    """A lead, and a section that links to the next animal's page."""
    own, other = ANIMALS[number], ANIMALS[(number + 1) % len(ANIMALS)]
    lead = f"The '''{own}''' is an animal. Every {own} has a life of its own."
    return Wiki(own.title(), f"{lead}\n== Enemies ==\nWhat it fears is the [[{other}]]. It runs away from it.")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    path = write(home / "enwiki.xml.bz2", [page(number) for number in range(len(ANIMALS))])
    fields = WikipediaFields.model_validate({"kind": "wikipedia", "path": str(path)})
    kinds.build_collection("wikipedia", fields.resolve(), home / "c", source=path)
    pieces = vocabulary.train(article_texts.VocabularyTexts(Collection(home / "c")), 150)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(pieces), home / "tokenizer")
    write_store(Collection(home / "c"), home / "tokenizer", home / "tokens")
    shape = {"start": "random", "layers": 1, "hidden": 16, "heads": 2, "intermediate": 16, "max_length": 24}
    encoder, heads = start_model(Backbone.model_validate(shape), 0, home / "tokenizer")
    checkpoint.save_model(encoder, heads, home / "start", home / "tokenizer")
    return home


def said(store: TokenStore, pieces: np.ndarray) -> str:
    return " ".join(store.pieces[piece] for piece in pieces).replace(" ##", "")


def pairs(home: Path, name: str) -> list[tuple[str, str]]:
    """What the query tower and the document tower read, for each example of an objective."""
    objective = objectives.load(name)
    store = TokenStore(home / "tokens")
    task = objective(objective.Fields.model_validate({**STEP, "objective": name, "steps": 1}), store)
    examples = [task.example(index, np.random.default_rng(index)) for index in range(len(task))]
    return [(said(store, pair.query), said(store, pair.document)) for pair in examples]


def test_ict_finds_the_rest_of_a_passage(home: Path) -> None:
    found = pairs(home, "ict")
    assert len(found) == 2 * len(ANIMALS)
    assert ("it runs away from it .", "cat [SEP] what it fears is the dog .") in found or (
        "what it fears is the dog .", "cat [SEP] it runs away from it .") in found  # fmt: skip


def test_bfs_finds_the_body_by_a_sentence_of_the_lead(home: Path) -> None:
    found = pairs(home, "bfs")
    assert len(found) == len(ANIMALS)
    for query, document in found:
        own = document.split(" [SEP] ")[0]
        assert query in (f"the {own} is an animal .", f"every {own} has a life of its own .")
        assert "what it fears" in document


def test_wlp_finds_the_linking_passage_by_a_sentence_of_the_page_it_links_to(home: Path) -> None:
    found = pairs(home, "wlp")
    assert len(found) == len(ANIMALS)
    for query, document in found:
        linking = document.split(" [SEP] ")[0]
        linked = ANIMALS[(ANIMALS.index(linking) + 1) % len(ANIMALS)]
        assert f"fears is the {linked} ." in document
        assert query in (f"the {linked} is an animal .", f"every {linked} has a life of its own .")


@pytest.mark.parametrize("objective", ["ict", "bfs", "wlp", "ict_bfs_wlp", "mlm", "costa"])
def test_objectives_train_on_a_dump(home: Path, tmp_path: Path, objective: str) -> None:
    single = {"min_tokens": 1} if objective in ("mlm", "costa") else {}
    fields = objectives.fields({**STEP, "objective": objective, "steps": 2, "source": "a test", **single})
    numerics = {"precision": "fp32", "threads": 1}
    inputs = step.PretrainInputs(home / "tokens", home / "start")
    step.pretrain(fields, 0, numerics, inputs, tmp_path / "model", Resume(tmp_path / "state"))
    before, after = (checkpoint.load_encoder(each).word_embeddings for each in (home / "start", tmp_path / "model"))
    assert not torch.equal(before, after)
    assert torch.isfinite(after).all()
