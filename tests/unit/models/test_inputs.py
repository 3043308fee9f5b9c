"""How TCT-ColBERT reads texts: markers, no [SEP], queries filled up with [MASK], against a construction by hand."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from encore.config.entries import Backbone
from encore.data import vocabulary
from encore.data.collection import QuerySample
from encore.data.runs import read_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.scoring import open_scorer
from encore.finetuning.step import FinetuneInputs
from encore.models import checkpoint, embed, inputs, late_interaction
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.start import start_model
from encore.retrieval.dense import Queries, answer_exactly
from tests.support import small_models
from tests.support.small_home import NUMERICS, STEP, finetuned
from tests.support.small_shard import encode_all

TCT = {"query_marker": "[q]", "passage_marker": "[d]", "separator": False, "augment": True, "pooling": "content"}
MARKS = {"query_marker": (60, 61, 62), "passage_marker": (60, 63, 62)}


def tct(**changes):
    return small_models.random_encoder(pooling="content", separator=False, augment=True, **MARKS, **changes).eval()


class Texts(list):
    def __init__(self, rows, name):
        super().__init__(np.array(row, dtype=np.uint16) for row in rows)
        self.name, self.lengths_of = name, np.array([len(row) for row in rows]).__getitem__


ROWS = [[7, 8, 9], [10], list(range(20, 40)), []]


def test_texts_are_framed_as_the_released_code_frames_them():
    shape = tct().config
    ids, mask = inputs.read_inputs(Texts(ROWS, "queries"), range(4), 8, shape)
    assert ids.tolist() == [
        [2, 60, 61, 62, 7, 8, 9, 4],
        [2, 60, 61, 62, 10, 4, 4, 4],
        [2, 60, 61, 62, 20, 21, 22, 23],
        [2, 60, 61, 62, 4, 4, 4, 4],
    ]
    assert mask.all(), "what fills a query up is read"
    ids, mask = inputs.read_inputs(Texts(ROWS, "passages"), range(4), 8, shape)
    assert ids[0].tolist() == [2, 60, 63, 62, 7, 8, 9, 0]
    assert mask[0].tolist() == [True] * 7 + [False]
    assert mask.sum(axis=1).tolist() == [7, 5, 8, 4]


def test_each_quirk_stands_for_itself():
    rows = Texts([[7, 8]], "queries")

    def read(**changes):
        return inputs.read_inputs(rows, [0], 6, small_models.random_encoder(**changes).config)[0][0].tolist()

    assert read() == [2, 7, 8, 3]
    assert read(separator=False) == [2, 7, 8]
    assert read(augment=True) == [2, 7, 8, 3, 4, 4]
    assert read(query_marker=(60,), passage_marker=(61,)) == [2, 60, 7, 8, 3]
    plain = SimpleNamespace(pad=0, cls=2, sep=3)
    assert inputs.read_inputs(rows, [0], 6, plain)[0][0].tolist() == [2, 7, 8, 3]


def test_a_vector_is_the_mean_behind_the_marker_with_what_fills_up():
    encoder = tct()
    for name, marker in (("queries", (60, 61, 62)), ("passages", (60, 63, 62))):
        found = embed.embed_texts(encoder, Texts(ROWS[:3], name), np.arange(3), 10)
        for row, vector in zip(ROWS[:3], found, strict=True):
            ids = [2, *marker, *row][:10]
            ids += [4] * (10 - len(ids)) if name == "queries" else []
            states = encoder(torch.tensor([ids]), None)[0].detach().numpy()
            np.testing.assert_allclose(vector, states[4:].mean(axis=0), rtol=1e-4, atol=1e-5)
            assert not np.allclose(vector, states.mean(axis=0), atol=1e-3), "the marker must be seen to be left out"


def test_late_interaction_counts_the_same_positions():
    ids, _ = inputs.read_inputs(Texts(ROWS, "queries"), range(4), 8, tct().config)
    counted = late_interaction.counted(torch.from_numpy(ids), tct().config)
    assert counted.tolist() == [[False] * 4 + [True] * 4] * 4
    ids, _ = inputs.read_inputs(Texts(ROWS, "passages"), range(4), 8, tct().config)
    counted = late_interaction.counted(torch.from_numpy(ids), tct().config)
    assert counted.sum(dim=1).tolist() == [3, 1, 4, 1], "an empty passage is its [CLS]"


def test_a_shape_is_written_and_read_back_and_an_old_one_stays_as_it_was(tmp_path):
    shape = tct().config
    assert EncoderConfig.from_json(json.loads(json.dumps(shape.to_json()))) == shape
    old = small_models.random_encoder().config.to_json()
    assert not {"mask", "query_marker", "separator", "augment"} & old.keys()


def test_markers_of_different_lengths_are_refused_where_content_begins_behind_them():
    with pytest.raises(EncoreError, match="1 word pieces of a query and 2 of a passage"):
        small_models.random_encoder(query_marker=(5,), passage_marker=(5, 6), pooling="content")


def test_queries_alone_may_have_a_prompt():
    shape = small_models.random_encoder(query_marker=(5, 6), pooling="mean").config
    text = np.array([9, 10], dtype=np.uint16)
    assert not shape.plain
    assert inputs.frame(text, 20, shape, of_query=True).tolist() == [2, 5, 6, 9, 10, 3]
    assert inputs.frame(text, 20, shape, of_query=False).tolist() == [2, 9, 10, 3]


def test_a_backbone_s_markers_are_word_pieces_of_its_own_vocabulary(tmp_path):
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(vocabulary.train(["[q] [d] what is it"] * 3, 40)), tmp_path)
    backbone = Backbone(start="random", vocabulary=40, layers=1, hidden=16, heads=2, intermediate=16, **TCT)
    shape = start_model(backbone, 0, tmp_path)[0].config
    pieces = vocabulary.pieces(vocabulary.load_tokenizer(tmp_path))
    assert [pieces[number] for number in shape.query_marker] == ["[", "q", "]"]
    assert [pieces[number] for number in shape.passage_marker] == ["[", "d", "]"]
    assert pieces[shape.mask] == "[MASK]"
    assert (shape.separator, shape.augment, shape.plain) == (False, True, False)


@pytest.mark.parametrize("scorer", ["vector", "late-interaction"])
def test_from_training_to_a_run_every_text_is_read_alike(home, negatives, tmp_path, scorer):
    """A run's scores are those of texts framed by hand; the folder claims nothing that SentenceTransformer would do."""
    store = TokenStore(home / "tokens")
    special = (store.special.pad, store.special.cls, store.special.sep)
    torch.manual_seed(0)
    shape = EncoderConfig(
        store.vocabulary, 1, 16, 2, 32, 20, 0.0, "content", "dot", None, *special, mask=store.special.mask,
        query_marker=(10, 11, 12), passage_marker=(10, 13, 12), separator=False, augment=True,
    )  # fmt: skip
    checkpoint.save_model(Encoder(shape), {}, tmp_path / "start", store.tokenizer_folder)
    step = {**STEP, "length": 18, "query_length": 10, "scorer": scorer, "token_dimension": 8, "temperature": 1.0}
    del step["validate_every"]
    places = [home / "tokens", home / "collection", tmp_path / "start", negatives]
    finetuned(step, FinetuneInputs(*places), tmp_path / "model", tmp_path / "state")
    assert not (tmp_path / "model" / "modules.json").exists()
    encoder, heads = checkpoint.load_encoder(tmp_path / "model").eval(), checkpoint.load_heads(tmp_path / "model")
    assert encoder.config == shape

    def content(sequence, marker, fill):
        ids = [shape.cls, *marker, *sequence.tolist()]
        ids += [shape.mask] * (fill - len(ids))
        return encoder(torch.tensor([ids]), None)[0, 4:].detach()

    def by_hand(query, passage):
        asked = content(store.queries[query], (10, 11, 12), 10)
        known = content(store.passages[passage], (10, 13, 12), 0)
        if scorer == "vector":
            return float(asked.mean(0) @ known.mean(0))
        asked, known = (states @ heads["late.weight"].T + heads["late.bias"] for states in (asked, known))
        return float((asked @ torch.nn.functional.normalize(known, dim=-1).T).max(dim=1).values.sum())

    pairs = np.array([[52, 3], [52, 9], [60, 63], [5, 5]]).T
    expected = [by_hand(*pair) for pair in pairs.T.tolist()]
    found = open_scorer(tmp_path / "model", store).score(*pairs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    if scorer == "vector":
        encode_all({"length": 18, "numerics": NUMERICS}, tmp_path / "model", home / "tokens", tmp_path / "index")
        queries = Queries(QuerySample("test"), 64, 10, NUMERICS, "ours")
        given = (tmp_path / "model", home / "tokens", home / "collection", [tmp_path / "index"], tmp_path / "run")
        answer_exactly(queries, *given)
        run = read_run(tmp_path / "run")["q52"]
        scores = dict(zip(run.documents, run.scores.tolist(), strict=True))
        np.testing.assert_allclose([scores["d3"], scores["d9"]], expected[:2], rtol=1e-4, atol=1e-4)
