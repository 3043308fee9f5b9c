"""The start of a lineage: random weights, embeddings that have seen a corpus, a checkpoint, or a trained model.

Besides the encoder a start may give tensors of the masked-language-model head (``mlm.*``), saved in the model folder's
``heads.safetensors``, which pre-training starts from: a checkpoint's or a model's own head, and after LSA the bias
that predicts each piece as often as the corpus has it.
"""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from encore.config import published
from encore.config.checkpoints import CONFIG, WEIGHTS
from encore.config.entries import Backbone
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import bert_checkpoint, lsa, towers
from encore.models import checkpoint as folder
from encore.models.adapters import merged
from encore.models.config import EncoderConfig, read_shape
from encore.models.encoder import Encoder
from encore.models.heads import initialise
from encore.models.transformers_encoder import open_published

POWER = 0.5  # of the singular values in an embedding
# Fields of a shape that do not concern the weights: how a text is read and how its states become a vector.
USE = ("pooling", "similarity", "dropout", "query_marker", "passage_marker", "separator", "augment")
Started = tuple[Encoder, dict[str, Tensor]]


def start_model(
    backbone: Backbone,
    seed: int,
    tokenizer_folder: Path,
    tokens: Path | None = None,
    checkpoint: Path | None = None,
    pretrained: Path | None = None,
) -> Started:
    """The encoder of a backbone, of one tower or two equal ones, and the tensors of its vocabulary head.

    Args:
        seed: of random weights and of the randomised decomposition.
        tokenizer_folder: whose vocabulary it reads.
        tokens: token store of the texts for ``start: lsa``.
        checkpoint: folder of its files for ``start: checkpoint``.
        pretrained: folder of the model for ``start: lineage``.
    """
    if backbone.start == "lineage":
        encoder, head = from_model(backbone, tokenizer_folder, pretrained)
    elif backbone.start == "checkpoint":
        if checkpoint is None:
            raise EncoreError("a backbone with `start: checkpoint` needs its files; give --checkpoint or --source")
        encoder, head = from_checkpoint(backbone, seed, tokenizer_folder, checkpoint)
    else:
        encoder, head = initial_encoder(read_shape(backbone, tokenizer_folder), seed), {}
    if backbone.start == "lsa":
        if tokens is None:
            raise EncoreError("a backbone with `start: lsa` needs texts; give --tokens")
        head = with_lsa(encoder, TokenStore(tokens), seed)
    apart = backbone.encoders == "separate" and encoder.config.encoders == "shared"
    return towers.separate_encoders(encoder) if apart else encoder, head


def initial_encoder(shape: EncoderConfig, seed: int) -> Encoder:
    """BERT's initial weights: normal, standard deviation 0.02.

    A bag of words keeps those that PyTorch draws (embeddings normal of deviation 1): a mean of many at 0.02 is nearly
    the same for all texts.
    """
    torch.manual_seed(seed)
    encoder = towers.build_encoder(shape)
    return encoder if shape.architecture == "bow-mlp" else initialise(encoder)


def with_lsa(encoder: Encoder, store: TokenStore, seed: int) -> dict[str, Tensor]:
    """Replace an encoder's word embeddings, and give the bias of a vocabulary head.

    The embeddings are about one unit long, as a trained BERT's are; at BERT's initial 0.02 the random embeddings of
    positions, which are added, hide them. Pieces without one (those that no text has) keep their random embedding.
    """
    if store.vocabulary != encoder.config.vocabulary:
        raise EncoreError(
            f"{store.folder} has another vocabulary than the backbone; make its tokens with the same tokenizer"
        )
    known, rows = lsa.embeddings(store, encoder.config.hidden, POWER, seed)
    with torch.no_grad():
        encoder.word_embeddings[torch.from_numpy(known)] = encoder.row_length * torch.from_numpy(rows).float()
    return {"mlm.bias": torch.from_numpy(lsa.log_unigram(lsa.piece_counts(store))).float()}


def from_checkpoint(backbone: Backbone, seed: int, tokenizer_folder: Path, source: Path) -> Started:
    """A checkpoint's weights, with a random head if the backbone has one and it has none; says what it uses."""
    said = published.check_use(backbone, source)
    for name, file in said.files.items():
        print(f"{source / file}: {name}: {getattr(backbone, name)}", flush=True)
    for name in ("pooling", "similarity"):
        if name not in said.files:
            print(f"{source}: no file names a {name}, so {getattr(backbone, name)}", flush=True)
    shape, config = read_shape(backbone, tokenizer_folder), published.bert_config(source)
    if config["vocab_size"] < shape.vocabulary:
        raise EncoreError(
            f"{source} has {config['vocab_size']} word embeddings for a tokenizer of {shape.vocabulary} pieces; "
            "make the tokenizer from the same checkpoint"
        )
    behind = _dense(source, said.files["projection_dim"]) if "projection_dim" in said.values else {}
    if backbone.architecture == "transformers":
        torch.manual_seed(seed)
        encoder: Encoder = open_published(source, shape)
        folder.fill_weights(encoder, encoder.state_dict() | behind | merged(encoder.state_dict(), source), source)
        return encoder, {}
    shape = replace(shape, segments=config.get("type_vocab_size", 2), epsilon=config.get("layer_norm_eps", 1e-12))
    encoder = initial_encoder(shape, seed)
    own = bert_checkpoint.read_weights(source, shape.vocabulary)
    wanted = encoder.state_dict()
    linear = {name: tensor for name, tensor in wanted.items() if name.startswith("head.")} | behind
    bert_checkpoint.refuse_misfit(own.encoder | linear, wanted, source)
    folder.fill_weights(encoder, own.encoder | linear, source)
    if not own.head:
        print(f"{source}: has no vocabulary head; objectives that need one begin with a random one", flush=True)
    if own.left_out:
        print(f"{source}: not used of this checkpoint: {', '.join(own.left_out)}", flush=True)
    return encoder, own.head


def _dense(source: Path, file: str) -> dict[str, Tensor]:
    """A dense layer behind the pooling as our head; one without a bias adds none."""
    safe = source / file.replace(CONFIG, folder.WEIGHTS)
    stored = folder.read_tensors(safe) if safe.is_file() else bert_checkpoint.read_pickle(safe.with_name(WEIGHTS[-1]))
    weight = stored[f"{folder.LINEAR}weight"].float()
    bias = stored.get(f"{folder.LINEAR}bias", torch.zeros(len(weight))).float()
    return {"head.weight": weight, "head.bias": bias}


def from_model(backbone: Backbone, tokenizer_folder: Path, model: Path | None) -> Started:
    """A trained model's weights and heads, read, pooled and compared as the backbone says."""
    if model is None:
        raise EncoreError("a backbone with `start: lineage` needs its model; give --pretrained")
    own = read_shape(backbone, tokenizer_folder)
    trained = folder.load_encoder(model)
    with torch.device("meta"):  # no time and no chance spent on weights that are replaced
        encoder = towers.build_encoder(replace(trained.config, **{name: getattr(own, name) for name in USE}))
    folder.fill_weights(encoder, trained.state_dict(), model)
    return encoder, folder.load_heads(model)
