"""What a checkpoint says of itself becomes a backbone; what contradicts it or cannot be expressed is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from encore.config import checkpoints
from encore.config.entries import Backbone
from encore.config.published import check_use, completed, said_by
from encore.errors import EncoreError
from tests.support.small_published import of_sentence_transformers

BERT = {
    **{"model_type": "bert", "num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 12},
    **{"intermediate_size": 1536, "max_position_embeddings": 512, "vocab_size": 30522},
}


def checkpoint(place: Path, **config: Any) -> Path:
    place.mkdir(exist_ok=True)
    (place / "config.json").write_text(json.dumps(BERT | config))
    return place


def backbone(place: Path, **fields: Any) -> Backbone:
    return Backbone.model_validate({"start": "checkpoint", "checkpoint": str(place), **fields})


def test_a_backbone_takes_what_its_checkpoint_says(tmp_path: Path) -> None:
    of_sentence_transformers(checkpoint(tmp_path), "mean", length=256, prompts={"query": "Represent this: "})
    found = completed(backbone(tmp_path, dropout=0.2))
    assert (found.layers, found.hidden, found.heads, found.intermediate) == (6, 384, 12, 1536)
    assert (found.architecture, found.pooling, found.similarity) == ("bert", "mean", "cosine")
    assert (found.length, found.query_length, found.dropout) == (256, 256, 0.2)
    assert (found.query_marker, found.passage_marker) == ("Represent this: ", "")
    assert said_by(tmp_path).files["pooling"] == "1_Pooling/config.json"
    assert completed(found) == found
    check_use(found, tmp_path)


def test_a_checkpoint_that_says_nothing_of_vectors_leaves_them_to_the_entry(tmp_path: Path) -> None:
    found = completed(backbone(checkpoint(tmp_path), pooling="mean"))
    assert (found.pooling, found.similarity, found.length, found.hidden) == ("mean", "dot", None, 384)


def test_a_similarity_that_is_not_named_is_sentence_transformers_unless_the_entry_names_one(tmp_path: Path) -> None:
    of_sentence_transformers(checkpoint(tmp_path), normalize=False)
    assert completed(backbone(tmp_path)).similarity == "cosine"
    assert "no similarity is named" in said_by(tmp_path).files["similarity"]
    for named in ("dot", "cosine"):
        check_use(found := completed(backbone(tmp_path, similarity=named)), tmp_path)
        assert found.similarity == named
    of_sentence_transformers(tmp_path, normalize=False, similarity_fn_name="dot")
    assert completed(backbone(tmp_path)).similarity == "dot"


ODD = (None, True, "256", 5, 1.5, -1, [], {}, [1], [[]], {"a": 1}, [{"a": 1}])


def test_a_value_of_an_unusual_kind_is_taken_or_refused_in_one_line_of_its_file(tmp_path: Path) -> None:
    """Of every key of every file, each of these in turn; and none in its place."""
    of_sentence_transformers(checkpoint(tmp_path), "mean", dense=64, length=256, prompts={"query": "query: "})
    pieces = {"model": {"type": "WordPiece", "vocab": {"a": 0}}, "added_tokens": [{"content": "[CLS]"}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(pieces))
    checkpoint(tmp_path, vocab_size=2, architectures=["BertModel"])
    refused = list[str]()
    for path in sorted(tmp_path.rglob("*.json")):
        usual = json.loads(path.read_text())
        for part in [usual, *usual.values()] if isinstance(usual, dict) else [usual, *usual]:
            for key in part if isinstance(part, dict) else range(len(part) if isinstance(part, list) else 0):
                kept = part[key]
                for value in ODD:
                    part[key] = value
                    path.write_text(json.dumps(usual))
                    try:
                        completed(backbone(tmp_path))
                    except EncoreError as error:
                        refused.append(str(error))
                part[key] = kept
        path.write_text(json.dumps(usual))
    assert len(refused) > 100
    assert all(str(tmp_path) in said and "\n" not in said for said in refused)
    completed(backbone(tmp_path))


@pytest.mark.parametrize("start", ["random", "lsa"])
def test_heads_divide_the_width(start: str) -> None:
    fields = {"start": start, "collection": "pydocs", "vocabulary": 100, "hidden": 64}
    assert Backbone.model_validate(fields | {"heads": 4}).heads == 4
    with pytest.raises(ValueError, match=r"`heads: 3` is no divisor of `hidden: 64`; take one that is"):
        Backbone.model_validate(fields | {"heads": 3})


def test_what_is_not_there_yet_is_as_it_was_written(tmp_path: Path) -> None:
    entry = backbone(tmp_path / "later")
    assert completed(entry) is entry


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"hidden": 768}, r"config\.json says hidden 384, but the backbone says 768; write hidden: 384"),
        ({"pooling": "cls"}, r"1_Pooling/config\.json says pooling 'mean'.*; write pooling: \"mean\""),
        ({"similarity": "dot"}, r"modules\.json says similarity 'cosine'"),
        ({"projection_dim": 32}, "says projection_dim 64"),
        ({"query_marker": "[Q]"}, "says query_marker 'query: '"),
        ({"length": 600}, r"says length 256, but the backbone says 600"),
        ({"passage_marker": "", "pooling": "cls", "hidden": 8}, 'write hidden: 384, pooling: "mean"'),
    ],
)
def test_a_contradiction_is_refused_with_the_lines_to_write(fields: dict[str, Any], says: str, tmp_path: Path) -> None:
    of_sentence_transformers(checkpoint(tmp_path), dense=64, length=256, prompts={"query": "query: "})
    with pytest.raises(EncoreError, match=says):
        completed(backbone(tmp_path, **fields))
    assert completed(backbone(tmp_path, length=100)).length == 100, "fewer tokens may be read"


def test_what_was_fetched_later_is_held_to_the_entry_that_was_planned(tmp_path: Path) -> None:
    of_sentence_transformers(checkpoint(tmp_path), length=256)
    written = {name: BERT[theirs] for name, theirs in (("layers", "num_hidden_layers"), ("hidden", "hidden_size"))}
    entry = backbone(Path("someone/theirs"), intermediate=1536, **written)
    with pytest.raises(
        EncoreError, match='write pooling: "mean", similarity: "cosine", length: 256, query_length: 256'
    ):
        check_use(entry, tmp_path)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"is_decoder": True}, "describes a decoder"),
        ({"architectures": ["BertLMHeadModel"]}, "describes a decoder"),
        ({"is_encoder_decoder": True}, "describes an encoder with a decoder"),
        ({"position_embedding_type": "relative_key"}, "positions of type relative_key, which is not supported; name"),
        ({"position_embedding_type": "alibi"}, "describes positions of type alibi"),
        ({"model_type": "roberta", "position_embedding_type": "relative_key"}, "describes positions of type relative"),
        ({"tie_word_embeddings": False, "architectures": ["BertForMaskedLM"]}, "a vocabulary head that does not share"),
        ({"architectures": ["BertForSequenceClassification"]}, "scores or labels texts and gives them no vector"),
        ({"model_type": "roberta", "architectures": ["RobertaForQuestionAnswering"]}, r"no vector \(RobertaForQ"),
        ({"architectures": ["HF_ColBERT"]}, r"describes a model with a vector for each token \(ColBERT\)"),
        ({"quantization_config": {"load_in_8bit": True}}, r"weights of fewer bits \(quantization_config\)"),
        ({"model_type": "dpr"}, "describes one of two encoders, of queries or of passages alone"),
    ],
)
def test_models_that_cannot_be_read_are_refused_with_the_cause(
    config: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(EncoreError, match=says):
        completed(backbone(checkpoint(tmp_path, **config)))


def test_what_is_no_file_of_weights_is_refused_when_planned(tmp_path: Path) -> None:
    place, weights = checkpoint(tmp_path), tmp_path / "model.safetensors"
    weights.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n")
    with pytest.raises(EncoreError, match=r"model\.safetensors is a pointer of Git LFS .* run `git lfs pull` there"):
        completed(backbone(place))

    def typed(kind: str) -> None:
        listed = json.dumps({"a.weight": {"dtype": kind}, "position_ids": {"dtype": "I64"}}).encode()
        weights.write_bytes(len(listed).to_bytes(8, "little") + listed)

    for kind in ("I8", "U8", "F8_E4M3"):
        typed(kind)
        with pytest.raises(EncoreError, match=rf"a\.weight is of type {kind}, and weights are read as floats"):
            completed(backbone(place))
    typed("BF16")
    assert completed(backbone(place)).hidden == 384
    (place / "artifact.metadata").write_text('{"dim": 4}')
    with pytest.raises(EncoreError, match="a vector for each token"):
        completed(backbone(place))


def test_an_encoder_of_sentence_transformers_may_have_been_saved_with_a_head(tmp_path: Path) -> None:
    of_sentence_transformers(checkpoint(tmp_path, architectures=["BertForSequenceClassification"]))
    assert completed(backbone(tmp_path)).pooling == "mean"


@pytest.mark.parametrize(
    "kind",
    ["bert", "roberta", "xlm-roberta", "mpnet", "distilbert", "modernbert", "electra", "deberta-v2", "albert", "new"],
)
def test_any_type_of_model_can_be_planned(kind: str, tmp_path: Path) -> None:
    named = completed(backbone(checkpoint(tmp_path, model_type=kind)))
    assert named.architecture == ("bert" if kind == "bert" else "transformers")


@pytest.mark.parametrize("vocabulary", [{"[PAD]": 0, "[UNK]": 1}, [["<s>", 0.0], ["a", -1.5]]])
def test_weights_with_the_tokenizer_of_another_model_are_refused(vocabulary: Any, tmp_path: Path) -> None:
    """As a library saves that ignores the vocabulary it is given: special tokens alone."""
    added = [{"id": 2, "content": "[MASK]"}, {"id": 3, "content": "[CLS]"}]
    said = {"model": {"vocab": vocabulary}, "added_tokens": added}
    (checkpoint(tmp_path, vocab_size=354) / "tokenizer.json").write_text(json.dumps(said))
    with pytest.raises(EncoreError, match=r"weights for 354 pieces, and tokenizer\.json has 4; they do not belong"):
        completed(backbone(tmp_path))
    checkpoint(tmp_path, vocab_size=4 + 128)
    assert completed(backbone(tmp_path)).hidden == 384, "padded up to a round number"


def test_a_query_encoder_with_a_tokenizer_of_its_own_is_refused(tmp_path: Path) -> None:
    place = Path(checkpoint(tmp_path))
    (place / "query").mkdir()
    (place / "query/tokenizer.json").write_text("{}")
    with pytest.raises(EncoreError, match="one of two encoders, of queries or of passages alone"):
        completed(backbone(str(place)))
    of_sentence_transformers(checkpoint(tmp_path / "routed"))
    router = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Router"}]
    (tmp_path / "routed/modules.json").write_text(json.dumps(router))
    with pytest.raises(EncoreError, match=r"modules\.json lists Router; supported are Transformer, Pooling"):
        completed(backbone(tmp_path / "routed"))


def changed(path: Path, **said: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **said}))


def test_vectors_that_cannot_be_expressed_are_refused(tmp_path: Path) -> None:
    place = checkpoint(tmp_path)
    of_sentence_transformers(place, "max")
    with pytest.raises(EncoreError, match=r"1_Pooling/config\.json pools max; supported are cls and mean"):
        completed(backbone(place))
    of_sentence_transformers(place, dense=4)
    changed(place / "2_Dense/config.json", activation_function="torch.nn.modules.activation.Tanh")
    with pytest.raises(EncoreError, match=r"a dense layer with .*Tanh"):
        completed(backbone(place))
    of_sentence_transformers(place, similarity_fn_name="euclidean")
    with pytest.raises(EncoreError, match="compares by euclidean"):
        completed(backbone(place))
    of_sentence_transformers(place, prompts={"query": "query: "})
    changed(place / "1_Pooling/config.json", include_prompt=False)
    with pytest.raises(EncoreError, match="without the prompt"):
        completed(backbone(place))
    (place / "1_Pooling/config.json").write_text('{"pooling_mode": "mean"}')
    listed = json.loads((place / "modules.json").read_text())
    (place / "modules.json").write_text(
        json.dumps([*listed, {"type": "sentence_transformers.models.LSTM", "path": "4"}])
    )
    with pytest.raises(EncoreError, match="lists Transformer, Pooling, Normalize, LSTM"):
        completed(backbone(place))


def test_what_a_module_says_is_part_of_a_folders_content(tmp_path: Path) -> None:
    place = checkpoint(tmp_path)
    for name in ("model.safetensors", "vocab.txt"):
        (place / name).write_text(name)
    plain = checkpoints.content(place)
    of_sentence_transformers(place, dense=4)
    whole = checkpoints.content(place)
    assert whole.keys() - plain.keys() == {
        *("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
        *("1_Pooling/config.json", "2_Dense/config.json", "2_Dense/pytorch_model.bin"),
    }
    of_sentence_transformers(place, "cls", dense=4)
    assert checkpoints.content(place)["1_Pooling/config.json"] != whole["1_Pooling/config.json"]


def test_an_archive_of_a_folder_with_modules_is_one_checkpoint(tmp_path: Path) -> None:
    of_sentence_transformers(checkpoint(tmp_path / "model"), dense=4)
    assert checkpoints.inside(tmp_path) == tmp_path / "model"


def test_a_bert_with_other_pieces_than_words_runs_by_transformers(tmp_path: Path) -> None:
    (checkpoint(tmp_path) / "sentencepiece.bpe.model").write_text("")
    assert completed(backbone(tmp_path)).architecture == "transformers"
    with pytest.raises(EncoreError, match='write architecture: "transformers"'):
        completed(backbone(tmp_path, architecture="bert"))
    (tmp_path / "vocab.txt").write_text("")
    assert completed(backbone(tmp_path)).architecture == "bert"


def test_a_head_of_its_own_matters_only_where_one_is_kept(tmp_path: Path) -> None:
    for own in ({"architectures": ["BertModel"]}, {"architectures": ["BertForMaskedLM"], "hidden_act": "relu"}):
        assert completed(backbone(checkpoint(tmp_path, tie_word_embeddings=False, **own))).hidden == 384


def test_a_marker_of_queries_alone_is_refused_where_texts_begin_behind_it(tmp_path: Path) -> None:
    fields = {"checkpoint": "a/b", "query_marker": "query: "}
    with pytest.raises(ValueError, match="`pooling: content` begins behind markers of equal length"):
        backbone(tmp_path, **fields, pooling="content")
    assert backbone(tmp_path, **fields, pooling="mean").query_marker


def test_weights_in_parts_and_other_vocabularies_are_chosen() -> None:
    parts = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    names = ["config.json", "model.safetensors.index.json", *parts, "sentencepiece.bpe.model", "onnx/model.onnx"]
    assert checkpoints.chosen(names, "here") == names[:-1]
    assert checkpoints.chosen([*names, "model.safetensors", "tokenizer.json"], "here") == [
        *("config.json", "model.safetensors", "tokenizer.json")
    ]
    with pytest.raises(EncoreError, match=r"here lacks weights \(it has ONNX's alone\)"):
        checkpoints.chosen(["config.json", "vocab.txt", "model.onnx"], "here")


def test_an_empty_prompt_is_none_though_another_is_the_default(tmp_path: Path) -> None:
    of_sentence_transformers(checkpoint(tmp_path), prompts={"query": "query: ", "document": ""})
    path = tmp_path / "config_sentence_transformers.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"default_prompt_name": "query"}))
    found = said_by(tmp_path).values
    assert (found["query_marker"], "passage_marker" in found) == ("query: ", False)
