"""The parts of ``gpu.py`` that fill a GPU without training: scores of pairs, predicted queries, and little memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from encore.config.systems import T5
from encore.data.collection import write_collection
from encore.data.tokens import TokenStore
from encore.finetuning.scoring import CrossEncoderScorer, LateInteractionScorer, Scorer
from encore.models import cross_encoder, embed, late_interaction, transfer
from encore.models.checkpoint import ModelUse
from encore.models.encoder import Encoder
from encore.models.memory import MicroBatch, PartSize
from encore.objectives.parts import attention
from encore.retrieval.doc2query import model as doc2query
from encore.retrieval.doc2query import sampling
from encore.training import machine as numerics
from harness import texts, timing
from harness.figures import rounded
from harness.gpu_encoding import LENGTH
from harness.gpu_training import VOCABULARY, Facts, setting_of
from harness.setting import SHAPES, device

QUERY, OF_QUERY, DIMENSION = 32, 20, 128  # tokens of a query, passages that each is paired with, numbers of a token
PER_PASSAGE = 80  # queries that docTTTTTquery samples for a passage of MS MARCO
LITTLE = 0.6  # of the memory that work took next to the weights, what it may have the second time


def scoring(sizes: Facts) -> Facts:
    """Pairs a second of both rerankers, and how much faster they are for having the next part begun ahead."""
    setting = setting_of(sizes, LENGTH, full=False)
    numerics.prepare(setting.numerics())
    with tempfile.TemporaryDirectory() as place, numerics.precision(setting.numerics(), device()):
        store, _ = texts.write_judged(Path(place), sizes["texts"] // 2, LENGTH, QUERY, VOCABULARY, full=False)
        shape, use = setting.shape(LENGTH + QUERY), ModelUse(LENGTH, QUERY, {})
        kinds = {
            "late-interaction": (LateInteractionScorer, late_interaction.token_head(shape, DIMENSION)),
            "cross-encoder": (CrossEncoderScorer, cross_encoder.score_head(shape)),
        }
        return {
            name: _scored(kind(Encoder(shape).eval(), head.state_dict(), use, store), store)
            for name, (kind, head) in kinds.items()
        }


def _scored(scorer: Scorer, store: TokenStore) -> Facts:
    """Of a quarter of the passages, each with one of the queries."""
    scorer.to(device())
    passages = np.random.default_rng(0).permutation(len(store.passages))[: len(store.passages) // 4]
    queries = np.arange(len(passages)) // OF_QUERY
    scorer.score(queries[:100], passages[:100])  # to warm up
    ahead = timing.time_of(lambda: scorer.score(queries, passages)).wall
    with mock.patch.dict(transfer.AHEAD, {"cuda": 0}):
        waiting = timing.time_of(lambda: scorer.score(queries, passages)).wall
    return {"pairs_per_second": rounded(len(passages) / ahead), "speed_of_waiting": rounded(waiting / ahead)}


def predicting(sizes: Facts) -> Facts:
    """Queries a second that a T5 of the papers' shape samples, and what all of MS MARCO's would take of one GPU.

    Its weights are random, so that no query ends before its last token: at most as many hours.
    """
    found = sampled(sizes, 1)
    return {
        "queries_per_second": rounded(found),
        "gpu_hours_of_all": rounded(sizes["passages"] * PER_PASSAGE / found / 3600),
    }


def sampled(sizes: Facts, processes: int) -> float:
    """Queries a second of all processes together, of which this is one; each writes those of as many passages."""
    fields = {name: value for name, value in SHAPES[sizes["model"]].items() if name != "pooling"}
    shape = T5.model_construct(**fields, dropout=0.0)
    each, chosen = sizes["expanded"], setting_of(sizes, LENGTH, full=False).numerics()
    how = sampling.Sampling(PER_PASSAGE, 10, length=512, query_length=sizes["predicted"], seed=0, numerics=chosen)
    with tempfile.TemporaryDirectory() as place, mock.patch.object(sampling, "BLOCK", each):
        folder = Path(place)
        judged = (processes * each // 2, LENGTH, QUERY, VOCABULARY)  # with two passages for each query
        store, _ = texts.write_judged(folder / "store", *judged, full=False)
        written = texts.as_text(store.passages, store.pieces)
        rows = [{"_id": str(row), "title": "", "text": text} for row, text in enumerate(written)]
        write_collection(folder / "collection", rows, [], {})
        made, words = doc2query.create(shape, store.tokenizer_folder)
        doc2query.save_model(folder / "model", made, words)
        took = timing.time_of(lambda: sampling.sample(how, folder / "model", folder / "collection", folder / "a"))
    return len(rows) * PER_PASSAGE / took.wall


def memory(sizes: Facts) -> Facts:
    """Encoding, scoring and reading attention with less memory than each took next to its weights.

    Returns:
        For each the tokens at once that it continues with, and its time over the first.
    """
    setting = setting_of(sizes, LENGTH, full=False)
    numerics.prepare(setting.numerics())
    with tempfile.TemporaryDirectory() as place, numerics.precision(setting.numerics(), device()):
        store, _ = texts.write_judged(Path(place), sizes["texts"] // 8, LENGTH, QUERY, VOCABULARY, full=False)
        shape, rows = setting.shape(LENGTH + QUERY), np.arange(len(store.passages))
        encoder, head = Encoder(shape).eval().to(device()), cross_encoder.score_head(shape).state_dict()
        scorer = CrossEncoderScorer(encoder, head, ModelUse(LENGTH, QUERY, {}), store).to(device())

        def scored(at_once: MicroBatch) -> None:
            scorer.at_once = at_once
            scorer.score(rows // 2, rows)

        def attended(at_once: MicroBatch) -> None:
            with mock.patch("encore.models.memory.MicroBatch", return_value=at_once):
                attention.text_attention(encoder, [store.passages[row] for row in rows.tolist()], LENGTH)

        def encoded(at_once: MicroBatch) -> None:
            embed.embed_texts(encoder, store.passages, rows, LENGTH, at_once)

        most = embed.PASS[device().type]
        return {
            "encoding": _with_little(encoded, most),
            "scoring": _with_little(scored, most),
            "attention": _with_little(attended, PartSize(attention.TOGETHER)),
        }


def _with_little(work: Callable[[MicroBatch], None], most: PartSize) -> Facts:
    whole, little = MicroBatch(most), MicroBatch(most)
    on_gpu = device().type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
        weights = torch.cuda.memory_allocated()
    work(whole)
    usual = timing.time_of(lambda: work(whole)).wall
    if on_gpu:
        taken = torch.cuda.max_memory_allocated() - weights
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction((weights + LITTLE * taken) / torch.cuda.mem_get_info()[1])
    work(little)
    time = timing.time_of(lambda: work(little)).wall
    if on_gpu:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return {"tokens_at_once": little.size.tokens, "time": rounded(time / usual)}
