"""DPR's files with a few rows each, in the forms that they are published in."""

import gzip
import json
from pathlib import Path
from typing import Any

from encore.datasets.dpr import DprFields

PASSAGES = [
    ("1", 'Aaron "the first" said: No.', "Aaron"),
    ("2", "The mother of Ada was called Anne Isabella.", "Ada Lovelace"),
    ("3", "He was born in 1912, in London.", "Alan Turing"),
    ("4", "", ""),
    ("5", "London is a city.", "London"),
    ("6", "Nothing of the kind.", "Anne Isabella"),
]
TESTS = [
    ("who was ada\u2019s mother", "['Anne Isabella', \"Lady Byron\"]"),
    ('when was "Turing" born', '["1912"]'),
    ("where", "('nowhere at all',)"),
]


def quoted(text: str) -> str:
    """A column as Python's csv module writes it, between tabs."""
    return '"' + text.replace('"', '""') + '"' if '"' in text or "\t" in text else text


def write_passages(path: Path) -> None:
    lines = ["id\ttext\ttitle", *("\t".join([name, f'"{text}"' if '"' not in text else quoted(text), title])
                                  for name, text, title in PASSAGES)]  # fmt: skip
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


def context(name: str, score: float = 9.5, key: str = "passage_id") -> dict[str, Any]:
    return {"title": "", "text": "as it was", "score": score, "title_score": 0, key: name}


def training(key: str = "passage_id") -> list[dict[str, Any]]:
    """Three questions; the second has no positive passage, as some of TriviaQA have none."""
    return [
        {
            "dataset": "nq_train_psgs_w100",
            "question": "who said no",
            "answers": ["Aaron"],
            "positive_ctxs": [context("1", 1000, key), context("6", 12.5, key), context("1", 3.0, key)],
            "negative_ctxs": [context("5", 0, key)],
            "hard_negative_ctxs": [context("3", 8, key), context("6", 7, key), context("5", 6, key)],
        },
        {
            "question": "what never",
            "answers": ["never"],
            "positive_ctxs": [],
            "negative_ctxs": [],
            "hard_negative_ctxs": [context("2", 1, key)],
        },
        {
            "question": "in which city",
            "answers": ["London"],
            "positive_ctxs": [context("5", 7.5, key)],
            "negative_ctxs": [],
            "hard_negative_ctxs": [],
        },
    ]


def write(folder: Path, key: str = "passage_id") -> Path:
    """Passages, training questions, validation questions and test questions."""
    folder.mkdir(parents=True, exist_ok=True)
    write_passages(folder / "psgs_w100.tsv.gz")
    (folder / "train.json").write_text(json.dumps(training(key), indent=4))
    (folder / "dev.json").write_text(json.dumps([{**training(key)[0], "question": "who else"}]))
    (folder / "test.qa.csv").write_text("".join(f"{quoted(q)}\t{quoted(a)}\n" for q, a in TESTS))
    return folder


def fields(folder: Path | None, place: str = "", **changes: Any) -> DprFields:
    """The dataset of these files, in a folder of one's own or, with ``place``, of a source."""
    measures = {"R@1": "Success@1", "R@2": "Success@2", "RR@10": "RR@10"}
    entry = {
        "kind": "dpr",
        "path": str(folder) if folder else None,
        "passages": f"{place}psgs_w100.tsv.gz",
        "splits": {
            "train": {"role": "train", "file": f"{place}train.json"},
            "valid": {"role": "valid", "file": f"{place}dev.json", "measures": {"RR@10": "RR@10"}},
            "test": {"role": "test", "file": f"{place}test.qa.csv", "judged_by": "answers", "measures": measures},
        },
    }
    return DprFields.model_validate(entry | changes)
