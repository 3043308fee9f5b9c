"""Read real files, count, score and test, and put next to it what others print about them. See docs/real-data.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from encore.storage.program import run

from harness import machine, published, real_bm25, real_counts, real_record, real_significance, trec_eval
from harness.trec_eval import Case

HERE = Path(__file__).parent
TOPICS, QUESTIONS, DL19, WIKISPEEDIA = (
    "msmarco-topics-qrels",
    "open-qa-questions",
    "msmarco-dl19-sample5k",
    "wikipedia-wikispeedia/articles.jsonl.xz",
)
Count = Callable[[Path], real_counts.Counts]
# By what is published about it: the file or folder that must be there, and how it is counted.
COUNTED: dict[str, tuple[str, Count]] = {
    **{
        name: (TOPICS, partial(real_counts.topics_and_judgments, topics=topics, qrels=qrels))
        for name, topics, qrels in (
            (
                "msmarco-passage dev",
                "topics.msmarco-passage.dev-subset.txt.gz",
                "qrels.msmarco-passage.dev-subset.txt.gz",
            ),
            ("msmarco-document dev", "topics.msmarco-doc.dev.txt.gz", "qrels.msmarco-doc.dev.txt.gz"),
            ("DL 2019 passage", "topics.dl19-passage.txt", "qrels.dl19-passage.txt.gz"),
            ("DL 2019 document", "topics.dl19-doc.txt", "qrels.dl19-doc.txt.gz"),
        )
    },
    "NQ-open dev": (f"{QUESTIONS}/NQ-open.dev.jsonl.gz", real_counts.questions),
    "EfficientQA dev": (f"{QUESTIONS}/NQ-open.efficientqa.dev.1.1.jsonl.gz", real_counts.questions),
    "DPR NQ test": (f"{QUESTIONS}/topics.dpr.nq.test.txt.gz", real_counts.questions),
    "DPR TriviaQA dev": (f"{QUESTIONS}/topics.dpr.trivia.dev.txt.gz", real_counts.questions),
    "DPR SQuAD test": (f"{QUESTIONS}/topics.dpr.squad.test.txt.gz", real_counts.questions),
    "SQuAD 1.1 dev": ("squad-v1.1-dev", real_counts.squad),
    "Cranfield": ("cranfield", real_counts.beir),
    "CACM": ("cacm", real_counts.beir),
    "DL 2019 sample": (DL19, real_counts.beir),
    "Wikispeedia part": (WIKISPEEDIA, real_counts.encyclopedia),
    "Wikipedia mini dump": ("wikipedia-enwiki-xml-mini/enwiki-minidump.xml.bz2", real_counts.dump),
}
RUNS = ("UIUC03Rd1", "aplrob03a", "humR03dc", "uic0301")
ROBUST = [
    Case(f"runs/input.{name}.gz", "qrels.robust03.txt.gz", f"trec_eval-10.0-rc3.output/{name}.{output}", ranks=ranks)
    for name in RUNS
    for output, ranks in (("all_trec.per-query.txt.gz", None), ("M10.per-query.txt.gz", 10))
]
NIST = [
    Case("results.test", "qrels.test", "out.test.aq"),
    Case("results.test", "qrels.test.with-comments", "out.test"),
    Case("results.comment.test.gz", "qrels.comment.test.gz", "out.comment.test"),
    Case("results.trunc", "qrels.test", "out.test.aqc", complete=True),
    Case("results.trunc", "qrels.test", "out.test.aqcM", ranks=100, complete=True),
    Case("results.test", "qrels.rel_level", "out.test.aql", rel=2),
]


def main() -> None:
    options = _options()
    record = measure(options.data, published.read())
    record["versions"] = machine.versions(("ir-measures", "mwparserfromhell"))
    real_record.write(options.output, options.name, record)
    print(real_record.markdown(record))
    if real_record.differing(record):
        sys.exit(1)


def measure(data: Path, printed: dict[str, Any]) -> dict[str, Any]:
    """All comparisons that the files of a folder allow."""
    reference = data / "eval-reference"
    counts, left_out = _counts(data, printed["counts"])
    groups = ((reference / "trec-robust03", ROBUST), (reference / "trec_eval", NIST))
    cases = [(folder, case) for folder, group in groups for case in group if _there(folder.is_dir(), folder, left_out)]
    tests = _there((reference / "significance").is_dir(), reference / "significance", left_out)
    searched, codes = real_bm25.cranfield(data / "cranfield") if (data / "cranfield").is_dir() else ([], [])
    if (data / "cacm").is_dir():
        searched += real_bm25.compared(real_bm25.cacm(data / "cacm"), printed["bm25"]["CACM"])
    return {
        "counts": counts,
        "measures": [trec_eval.compare(folder, case) for folder, case in cases],
        "significance": real_significance.compare(reference, printed["significance"]) if tests else [],
        "bm25": searched,
        "codes": codes,
        "left_out": sorted({Path(name).name for name in left_out}),
    }


def _counts(data: Path, printed: dict[str, Any]) -> tuple[list[published.Row], list[str]]:
    rows: list[published.Row] = []
    left_out: list[str] = []
    for name, (place, count) in COUNTED.items():
        if _there((data / place).exists(), data / place, left_out):
            rows += published.compared(name, count(data / place), printed[name])
    return rows, left_out


def _there(exists: bool, path: Path, left_out: list[str]) -> bool:
    """Whether something is there; what is not is noted."""
    if not exists:
        left_out.append(str(path))
    return exists


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of docs/real-data.md; any part may lack")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--name", default="real-data", help="of the files")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
