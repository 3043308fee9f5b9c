"""A BEIR folder of two passages and two queries, as anybody may have written it."""

from pathlib import Path

import pytest

from encore.data.collection import Collection
from encore.datasets import kinds
from encore.datasets.beir import BeirFields
from encore.errors import EncoreError

CORPUS = ['{"_id": "d1", "title": "Lift", "text": "of a wing"}', '{"_id": "d2", "text": "drag"}']
QUERIES = ['{"_id": "q1", "text": "lift", "metadata": {"n": 1}}', '{"_id": "q2", "text": "drag of wings"}']
HEADER = "query-id\tcorpus-id\tscore"
SPLITS = {"train": {"role": "train"}, "test": {"role": "test", "measures": {"RR@10": "RR@10"}}}


def write(folder: Path, corpus=CORPUS, queries=QUERIES, train=("q1\td1\t1",), test=("q2\td2\t2",), end="\n") -> Path:
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    files = {"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels/train.tsv": (HEADER, *train)}
    for name, lines in {**files, "qrels/test.tsv": (HEADER, *test)}.items():
        (folder / name).write_bytes("".join(line + end for line in lines).encode())
    return folder


def fields(folder: Path, **others) -> BeirFields:
    return BeirFields.model_validate({"kind": "beir", "path": str(folder), "splits": SPLITS, **others})


def build(folder: Path, output: Path, **others) -> Collection:
    kinds.build_collection("beir", fields(folder, **others).resolve(), output, source=folder)
    return Collection(output)


def refusal(folder: Path, output: Path) -> str:
    with pytest.raises(EncoreError) as caught:
        build(folder, output)
    message = str(caught.value)
    assert "\n" not in message
    return message
