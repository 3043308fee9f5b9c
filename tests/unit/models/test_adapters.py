"""An adapter (LoRA) is merged into its base; what is more than W + s B A is refused."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from encore.config import checkpoints
from encore.config.adapters import read_adapter
from encore.config.entries import Backbone
from encore.config.published import said_by
from encore.config.systems import T5
from encore.data import checkpoint_vocabulary
from encore.errors import EncoreError
from encore.models.inputs import pad
from encore.models.start import start_model
from encore.retrieval.doc2query.model import create
from tests.support.small_adapters import PLAIN, adapter
from tests.support.small_models import TEXTS
from tests.support.small_published import of_sentence_transformers, published

# Layers of a kind that is read by our own code, and of one that Transformers runs.
LAYERS: dict[str, dict[str, tuple[int, ...]]] = {
    "bert": {
        "encoder.layer.0.attention.self.query": (8, 8),
        "encoder.layer.1.intermediate.dense": (16, 8),
        "encoder.layer.1.output.dense": (8, 16),
        "pooler.dense": (8, 8),
    },
    "roberta": {"encoder.layer.0.attention.self.value": (8, 8), "encoder.layer.1.output.dense": (8, 16)},
}
QUERY = {"encoder.layer.0.attention.self.query": (8, 8)}


def base(place: Path, kind: str = "bert") -> torch.nn.Module:
    return published(place, kind, **({"hidden_act": "gelu"} if kind == "bert" else {}))


def whole(own: Path, place: Path) -> Path:
    """What a job reads of the user's own adapter."""
    found = checkpoints.given({"content": checkpoints.content(own)}, None, own, place)
    assert found is not None
    return found


def started(own: Path, place: Path) -> tuple[np.ndarray, list[list[int]]]:
    """States of the first tokens of texts under our model of an adapter, and the texts' ids."""
    folder = whole(own, place / "whole")
    backbone = Backbone.model_validate({"start": "checkpoint", "checkpoint": str(own), **said_by(folder).values})
    tokenizer = checkpoint_vocabulary.save_checkpoint_tokenizer(folder, place / "tokenizer")
    model, _ = start_model(backbone, 0, place / "tokenizer", checkpoint=folder)
    read = [np.array(each.ids) for each in tokenizer.encode_batch(TEXTS, add_special_tokens=False)]
    ids, mask = (torch.from_numpy(each) for each in pad(read, 20, model.config))
    with torch.no_grad():
        states = model.eval()(ids.long(), mask)[:, 0].numpy()
    return states, [row[shown.bool()].tolist() for row, shown in zip(ids, mask, strict=True)]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize(("by_root", "first"), [(False, ""), (True, "model.")])
def test_an_adapter_is_merged_as_in_double_precision(kind: str, by_root: bool, first: str, tmp_path: Path) -> None:
    """The formula in NumPy, on the base by Transformers' code; ``first``: of the names under a model with a head."""
    theirs = base(tmp_path / "base", kind).double()
    layers = {first + name: shape for name, shape in LAYERS[kind].items()}
    made = adapter(tmp_path / "own", str(tmp_path / "base"), layers, use_rslora=by_root)
    scale = PLAIN["lora_alpha"] / (math.sqrt(PLAIN["r"]) if by_root else PLAIN["r"])
    ours, texts = started(tmp_path / "own", tmp_path)

    def states() -> np.ndarray:
        with torch.no_grad():
            return np.stack([theirs(input_ids=torch.tensor([ids])).last_hidden_state[0, 0].numpy() for ids in texts])

    plain = states()
    for name in layers:
        up, down = (made[f"base_model.model.{name}.lora_{each}.weight"].double().numpy() for each in "BA")
        theirs.get_submodule(name.removeprefix(first)).weight.data += torch.from_numpy(scale * (up @ down))
    assert np.abs(ours - states()).max() < 3e-6
    assert np.abs(ours - plain).max() > 0.01


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"peft_type": "IA3"}, "peft_type: 'IA3'"),
        ({"peft_type": None}, "peft_type: None"),
        ({"task_type": "SEQ_CLS"}, "task_type: 'SEQ_CLS'"),
        ({"bias": "all"}, "bias: 'all'"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights: 'pissa'"),
        ({"use_dora": True}, "use_dora: True"),
        ({"fan_in_fan_out": True}, "fan_in_fan_out: True"),
        ({"modules_to_save": ["pooler"]}, r"modules_to_save: \['pooler'\]"),
        ({"rank_pattern": {"query": 2}}, r"rank_pattern: \{'query': 2\}"),
        ({"alpha_pattern": {"query": 2}}, r"alpha_pattern: \{'query': 2\}"),
        ({"trainable_token_indices": [1]}, r"trainable_token_indices: \[1\]"),
        ({"layer_replication": [[0, 1]]}, r"layer_replication: \[\[0, 1\]\]"),
        ({"not_known_yet": 0.5}, r"not_known_yet: 0\.5"),
        ({"r": 0}, "r: 0"),
        ({"lora_alpha": "16"}, "lora_alpha: '16'"),
        ({"base_model_name_or_path": None}, "base_model_name_or_path: None"),
    ],
)
def test_what_is_more_than_a_plain_lora_is_refused_by_its_field(
    changes: dict[str, Any], names: str, tmp_path: Path
) -> None:
    adapter(tmp_path, "someone/base", QUERY, **changes)
    with pytest.raises(EncoreError, match=rf"an adapter \(LoRA\), has {names}; merge it by PEFT's merge_and_unload"):
        read_adapter(tmp_path)


def test_fields_of_training_and_those_that_are_off_do_no_harm(tmp_path: Path) -> None:
    """Nearly all that PEFT 0.21 writes; ``main`` is no commit."""
    off = ("alpha_pattern", "eva_config", "lora_bias", "modules_to_save", "use_dora", "target_parameters")
    said = dict.fromkeys(off) | {"lora_dropout": 0.1, "inference_mode": True, "megatron_core": "megatron.core"}
    said |= {"loftq_config": {}, "layers_to_transform": [0], "qalora_group_size": 16, "peft_version": "0.21.2"}
    adapter(tmp_path, "someone/base", QUERY, task_type="FEATURE_EXTRACTION", revision="main", **said)
    assert read_adapter(tmp_path) == ("someone/base", None, 3, 5 / 3)
    adapter(tmp_path, "someone/base", QUERY, revision="1" * 40, use_rslora=True)
    assert read_adapter(tmp_path) == ("someone/base", "1" * 40, 3, 5 / math.sqrt(3))


A, B = (f"base_model.model.encoder.layer.0.attention.self.query.lora_{each}.weight" for each in "AB")


@pytest.mark.parametrize(
    "tensors",
    [
        {},
        {A: (3, 8)},
        {B: (8, 3)},
        {A: (4, 8), B: (8, 4)},
        {A: (3, 16), B: (8, 3)},
        {A: (3, 8), B: (16, 3)},
        {A: (0,), B: (0,)},
        {A: (3, 8), B: (8, 3), A.replace("_A", "_magnitude_vector"): (8,)},
        {A: (3, 8), B: (8, 3), A.replace("layer.0", "layer.7"): (3, 8), B.replace("layer.0", "layer.7"): (8, 3)},
        {
            A: (3, 8),
            B: (8, 3),
            A.replace("encoder", "bert.encoder"): (3, 8),
            B.replace("encoder", "bert.encoder"): (8, 3),
        },
        {"base_model.model.embeddings.word_embeddings.lora_embedding_A": (3, 8)},
        {"base_model.model.encoder.layer.0.output.LayerNorm.weight": (8,)},
    ],
)
def test_an_adapter_of_anything_but_its_bases_linear_layers_is_refused(
    tensors: dict[str, tuple[int, ...]], tmp_path: Path
) -> None:
    base(tmp_path / "base")
    adapter(own := tmp_path / "own", str(tmp_path / "base"), QUERY)
    save_file({name: torch.ones(shape) for name, shape in tensors.items()}, own / "adapter_model.safetensors")
    with pytest.raises(EncoreError, match=r"adapter_model\.safetensors has .* no layer for it; merge it by"):
        started(own, tmp_path)


def test_an_adapters_own_tokenizer_and_modules_replace_those_of_its_base(tmp_path: Path) -> None:
    base(tmp_path / "base")
    of_sentence_transformers(tmp_path / "base", "cls", dense=4, length=9)
    adapter(own := tmp_path / "own", str(tmp_path / "base"), QUERY)
    found = whole(own, tmp_path / "as-its-base")
    assert (said_by(found).values["pooling"], said_by(found).values["projection_dim"]) == ("cls", 4)
    of_sentence_transformers(own, "mean", length=7)
    (own / "tokenizer.json").write_text((tmp_path / "base/tokenizer.json").read_text())
    found = whole(own, tmp_path / "as-it-says")
    assert (said_by(found).values["pooling"], said_by(found).values["length"]) == ("mean", 7)
    names = checkpoints.names_in(found)
    assert not {"vocab.txt", "tokenizer_config.json", "2_Dense/config.json", "adapter_config.json"} & set(names)
    assert {"config.json", "model.safetensors", "encore-adapter/adapter_model.safetensors"} <= set(names)


def test_where_an_adapter_and_whole_weights_could_be_one_or_two_models_both_are_refused(tmp_path: Path) -> None:
    base(tmp_path / "base")
    adapter(tmp_path / "own", str(tmp_path / "base"), QUERY)
    adapter(tmp_path / "other", str(tmp_path / "own"), QUERY)
    with pytest.raises(EncoreError, match=r"the adapter's base is an adapter \(LoRA\) too; merge it"):
        whole(tmp_path / "other", tmp_path / "whole")
    adapter(tmp_path / "base", "someone/base", QUERY)
    for refused in (checkpoints.content, said_by):
        with pytest.raises(EncoreError, match=r"has adapter_config\.json, an adapter \(LoRA\), .*; merge it"):
            refused(tmp_path / "base")
    names = ["modules.json", "0_Transformer/adapter_config.json"]
    with pytest.raises(EncoreError, match="0_Transformer has the encoder; move its files one folder up"):
        checkpoints.chosen(names, "here")
    with pytest.raises(EncoreError, match=r"an adapter \(LoRA\), but not adapter_model\.safetensors alone; merge it"):
        checkpoints.chosen(["adapter_config.json", "adapter_model.bin"], "here")


def test_an_adapter_of_a_t5_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    (tmp_path / "encore-adapter").mkdir()
    with pytest.raises(EncoreError, match=r"is an adapter \(LoRA\) of a T5; merge it by PEFT"):
        create(T5.model_construct(), None, tmp_path)
