"""A user's texts in BEIR's layout and in other forms, a published encoder, and ``encore new`` over them."""

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path

from encore.config.run_file import read_run
from encore.plan.catalogue import with_entries_of
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.products.targets import everything_declared, needed_by
from tests.support import inside
from tests.support.small_published import of_sentence_transformers

HEADER = "query-id\tcorpus-id\tscore"
TEXT = f"Two sentences. They are here. A third is long{' and long' * 30}"  # enough for every objective on passages


def folder(qrels: dict[str, list[str]], name: str = "data/own", text: str = TEXT) -> Path:
    """A folder in BEIR's layout, packed as BEIR's own are not."""
    place = Path(name)
    (place / "qrels").mkdir(parents=True)
    rows = {"corpus": ("d", 40, text), "queries": ("q", 400, "two words")}
    for file, (letter, count, words) in rows.items():
        lines = (json.dumps({"_id": f"{letter}{n}", "title": None, "text": f"{words} {n}"}) for n in range(count))
        (place / f"{file}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    for split, judged in qrels.items():
        (place / f"qrels/{split}.tsv").write_text("\n".join([HEADER, *judged]) + "\n")
    return place


def judged(first: int, last: int, grade: int = 1) -> list[str]:
    return [f"q{number}\td{number % 40}\t{grade}" for number in range(first, last)]


def new(*words: str) -> str:
    done = inside.encore("new", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*words: str) -> str:
    """The one line that ``encore new`` ends with, leaving nothing."""
    before = sorted(Path().rglob("*"))
    done = inside.encore("new", *words)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert sorted(Path().rglob("*")) == before, "nothing is left"
    return done.stderr


catalogue = cache(load_catalogue)  # which no test changes


def planned(path: str) -> tuple[Plan, Counter[str]]:
    """The plan of a run, and how many jobs of each stage it needs."""
    config = read_run(Path(path))
    plan = Plan(config, with_entries_of(config, catalogue()))
    return plan, Counter(each.stage.partition(".")[0] for each in needed_by(plan, everything_declared(plan)))


def raw(train: int = 60, dev: int = 20, words: str = "Two sentences. They are here") -> Path:
    """Files as Pyserini and trec_eval have them: 12 passages, queries that train, validate and test."""
    place = Path("raw")
    (place / "docs").mkdir(parents=True)
    rows = (json.dumps({"id": f"{n:03}", "contents": f"{words} {n}"}) for n in range(12))
    (place / "docs/docs.jsonl").write_text("\n".join(rows))
    splits = {"train": (0, train), "dev": (train, train + dev), "test": (80, 100)}
    for split, (first, last) in splits.items():
        if first < last:
            (place / f"topics.{split}.tsv").write_text("".join(f"{n}\t{words} {n}\n" for n in range(first, last)))
            (place / f"qrels.{split}.txt").write_text("".join(f"{n} 0 {n % 12:03} 1\n" for n in range(first, last)))
    return place


def encoder(place: str = "models/theirs", kind: str | None = None) -> Path:
    """A folder of sentence-transformers, as far as planning reads it: a BERT, or another type of model."""
    folder = Path(place)
    folder.mkdir(parents=True)
    config = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config |= {"max_position_embeddings": 512} | ({"model_type": kind} if kind else {})
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_text("weights")
    (folder / "tokenizer.json").write_text("{}")
    of_sentence_transformers(folder, length=128, prompts={"query": "query: "})
    return folder
