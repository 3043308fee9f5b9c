"""A folder of one's own texts in BEIR's layout, and ``encore new`` over it."""

import gzip
import json
from pathlib import Path

from tests.support import inside

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
