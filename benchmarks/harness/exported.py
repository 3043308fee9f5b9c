"""A sentence-transformers model as a graph of ONNX, run on one thread by ONNX Runtime and by OpenVINO."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import openvino
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from torch import Tensor, nn

BATCH = 16  # texts of similar length, as in Encore
INPUTS = ("input_ids", "attention_mask")
Graph = Callable[[list[np.ndarray]], np.ndarray]


class _Vectors(nn.Module):
    """Ids and mask [B, L] to vectors [B, H], pooling included."""

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        found: Tensor = self.model(dict(zip(INPUTS, (ids, mask), strict=True)))["sentence_embedding"]
        return found


def write_graph(model: SentenceTransformer, path: Path) -> None:
    """Write a model for batches and texts of any size."""
    example = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in INPUTS)
    sizes = {name: {0: "batch", 1: "length"} for name in INPUTS} | {"vectors": {0: "batch"}}
    with warnings.catch_warnings(action="ignore"):  # that this way of writing is the older one
        torch.onnx.export(
            _Vectors(model).eval(),
            example,
            str(path),
            dynamo=False,
            input_names=[*INPUTS],
            output_names=["vectors"],
            dynamic_axes=sizes,
        )


def opened(path: Path) -> dict[str, Graph]:
    """A graph in each of the programs, by name."""
    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    core = openvino.Core()
    numerics = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(core.read_model(path), "CPU", numerics)
    return {
        "ONNX Runtime": lambda given: session.run(None, dict(zip(INPUTS, given, strict=True)))[0],
        "OpenVINO": lambda given: compiled(given)[0],
    }


def encoded(graph: Graph, texts: Sequence[str], tokenizer: Tokenizer, length: int, pad: int) -> np.ndarray:
    """The vectors [N, H] of texts, cut to ``length`` tokens, in batches of texts of similar length."""
    cutting = Tokenizer.from_str(tokenizer.to_str())
    cutting.enable_truncation(length)
    ids = [each.ids for each in cutting.encode_batch_fast([*texts])]
    order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
    found: list[np.ndarray | None] = [None] * len(ids)
    for first in range(0, len(order), BATCH):
        rows = order[first : first + BATCH]
        padded = np.full((len(rows), max(len(ids[row]) for row in rows)), pad, dtype=np.int64)
        mask = np.zeros_like(padded)
        for place, row in enumerate(rows):
            padded[place, : len(ids[row])], mask[place, : len(ids[row])] = ids[row], 1
        for row, vector in zip(rows, graph([padded, mask]), strict=True):
            found[row] = vector
    return np.array(found)
