"""Every stage on the processor at several sizes of made-up passages; what a unit of its work costs must not grow."""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from encore.storage.program import run

import numpy as np
from harness import figures, machine, record, usage

from encore import stages
from encore.data.runs import RUN
from encore.data.tokens import TokenStore
from encore.datasets.beir import BeirFields
from encore.errors import EncoreError
from encore.models.config import EncoderConfig
from encore.retrieval.dense import USUAL
from encore.retrieval.encode import BLOCK, CollectionShard, write_shard
from encore.stages.needs import SPARE_MEMORY, CollectionSize, Needs, Size, Texts
from encore.stages.tokenizer import WORD, words_in
from encore.storage import environment
from encore.storage.manifest import record as recorded
from encore.storage.sealed import SealedBlocks

ROOT = Path(__file__).parents[1]
SIZES = (100_000, 300_000, 1_000_000, 3_000_000)
GROWTH = 4 / 3  # of what a unit costs, from one size to the next: more is an error
JAVA_MB, DIMENSION, VOCABULARY = 2048, 768, 30_522
NUMERICS = {"precision": "fp32", "threads": 1}
BM25 = {"k1": 0.82, "b": 0.68, "queries": None, "sample": 0, "system": "bm25"}
HNSW = {"kind": "hnsw", "m": 32, "ef_construction": 200, "ef_search": 256}
MEASURES = {"rr@10": "RR@10", "ndcg@10": "nDCG@10", "r@1000": "R@1000"}
DEPTHS = {"train": 200, "dev": 1000}  # passages that BM25 keeps for a query
SEARCHED = 1000  # queries of exact search
WORDS = 430_000  # different ones in made-up texts, which real texts go beyond
IN_ENVIRONMENT = {"build_index": "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"}  # as in workflow/rules/common.smk
IN_ENVIRONMENT |= dict.fromkeys(("lucene_index", "lucene_search"), f"{environment.JAVA_MB}={JAVA_MB}")
RANGES = 2  # of rows, which the vectors are shards of
TEXTS = {"collection": "collection"}
MODEL = {**TEXTS, "model": "model", "tokens": "tokens"}
INDEXED = {**MODEL, "index": "hnsw", "exact": "exact"}


Measuring = Callable[[Sequence[str], Path, Path], dict[str, float]]  # runs a program in a folder with a log


class Stage(NamedTuple):
    """A stage: its name here and in the workflow, what it reads, its fields, the amount that its work is a multiple of.

    ``does`` is what the stage does here, where it does several things.
    """

    name: str
    program: str
    reads: dict[str, str]
    spec: dict[str, Any]
    unit: str
    does: str = ""
    threads: int = 1

    @property
    def told(self) -> str:
        """Its row of the table."""
        return ", ".join(filter(None, (self.program, self.does)))

    @property
    def jobs(self) -> dict[str, dict[str, str]]:
        """The folders that its jobs make, and what each reads: all, or the others and one shard."""
        if self.program != "search_shard":
            return {self.name: self.reads}
        shards = [shard for role, shard in self.reads.items() if role.startswith("shard")]
        return {f"{self.name}/{Path(shard).name}": {**MODEL, "shard0": shard} for shard in shards}

    def commands(self, folder: Path) -> list[list[str]]:
        """The program as the workflow calls it in the folder, for each of its jobs."""
        return [self._command(folder, output, reads) for output, reads in self.jobs.items()]

    def _command(self, folder: Path, output: str, reads: dict[str, str]) -> list[str]:
        stage, spec = stages.load(self.program).planned(self.spec, reads)
        planned = folder / f"{output.replace('/', '.')}.planned.json"
        source = {"source": "texts"} if self.program == "collection" else {}
        planned.write_text(json.dumps({"stage": stage, "spec": spec, "inputs": reads, **source}))
        command = [sys.executable, str(ROOT / "workflow/scripts/make.py"), self.program, "--planned", planned.name]
        command += ["--threads", str(self.threads), "--output", output]
        own = IN_ENVIRONMENT.get(self.program)
        return ["env", own, *command] if own else command


def in_ranges(role: str, folder: str, ranges: int) -> dict[str, str]:
    """The shards in a folder, by role."""
    return {f"{role}{number}": f"{folder}/{number:03d}-of-{ranges:03d}" for number in range(ranges)}


def measured_stages(threads: int = 1, ranges: int = RANGES) -> list[Stage]:
    """All stages, each after those that it reads; BM25's searches with so many threads, vectors in so many ranges."""
    words, added = {**TEXTS, "index": "lucene"}, in_ranges("shard", "vectors", ranges)
    searching, hits = {**MODEL, **added}, {**MODEL, **in_ranges("hit", "hits", ranges)}
    mined = {"split": "train", "depth": DEPTHS["train"], "keep": 30, "exclude_judged": True, "seed": 0}
    dense = {"split": "dev", "queries": SEARCHED, "sample": 0, "depth": 1000, "query_length": 32, "system": "ours"}
    dense["numerics"], asked, probed = NUMERICS, {"split": "train", "queries": None}, {"ef_search": HNSW["ef_search"]}
    exact, indexed, trains = {**dense, "index": "vectors"}, {"vectors": "vectors"}, {**asked, "depth": DEPTHS["train"]}
    tests = {"split": "dev", "depth": DEPTHS["dev"]}
    tested, trained = f"{DEPTHS['dev']} of each test query", f"{DEPTHS['train']} of each training query"
    return [
        Stage("collection", "collection", {}, {}, "passages"),
        Stage("tokenizer", "tokenizer", TEXTS, {"vocabulary": VOCABULARY}, "tokens"),
        Stage("tokens", "tokens", {**TEXTS, "tokenizer": "tokenizer"}, TEXTS, "tokens"),
        Stage("lucene", "lucene_index", TEXTS, {}, "tokens"),
        Stage("bm25-dev", "lucene_search", words, {**BM25, **tests}, "ranked", tested, threads),
        Stage("bm25-train", "lucene_search", words, {**BM25, **trains}, "ranked", trained, threads),
        Stage("negatives", "negatives", {**TEXTS, "run": "bm25-train"}, mined, "lines", "of BM25"),
        Stage("scores", "evaluate", {**TEXTS, "run": "bm25-dev"}, {"splits": {"dev": MEASURES}}, "lines"),
        Stage("fp16", "build_index", added, {**indexed, "index": {"kind": "fp16"}}, "passages", "16 bits"),
        Stage("hnsw", "build_index", added, {**indexed, "index": HNSW}, "passages", "HNSW"),
        Stage("exact", "search", searching, exact, "ranked", tested),
        Stage("hits", "search_shard", searching, exact, "ranked", f"{tested}, each of {ranges} shards by a job"),
        Stage("merged", "search", hits, exact, "lines", f"the same of hits in {ranges} shards"),
        Stage("approximate", "search_index", INDEXED, {**dense, "search": probed}, "queries", "HNSW"),
        Stage("mining", "search", searching, {**exact, **trains}, "ranked", trained),
        Stage("mined", "negatives", {**TEXTS, "run": "mining"}, mined, "lines", "of exact search"),
    ]


def write_texts(folder: Path, passages: int, seed: int) -> dict[str, float]:
    """Write made-up texts, and return the counts that all amounts follow from."""
    command = [sys.executable, "-m", "tools.synthetic_msmarco", str(folder / "texts")]
    command += ["--passages", str(passages), "--seed", str(seed)]
    usage.measured(command, ROOT, folder / "texts.log")
    said = dict(line.split(": ") for line in (folder / "texts.log").read_text().splitlines())
    return {"passages": passages, **{split: float(said[f"{split} queries"]) for split in ("train", "dev")}}


def shape_of_model(vocabulary: int = VOCABULARY) -> EncoderConfig:
    """One layer, as wide as vectors are."""
    return EncoderConfig(vocabulary, 1, DIMENSION, 12, DIMENSION)


def draw_model(folder: Path, ranges: int = RANGES) -> None:
    """A model of one layer, and a vector of each passage that it could have given, the same in any number of ranges."""
    import torch

    from encore.models import checkpoint
    from encore.models.encoder import Encoder

    store = TokenStore(folder / "tokens")
    torch.manual_seed(0)
    special = store.special
    shape = replace(shape_of_model(store.vocabulary), pad=special.pad, cls=special.cls, sep=special.sep)
    with recorded(folder / "model", stage="start", spec={}, inputs=[]):
        checkpoint.save_model(Encoder(shape), {}, folder / "model", store.tokenizer_folder)
    random, names = np.random.default_rng(0), store.passages.names
    for shard in in_ranges("shard", "vectors", ranges).values():
        rows = CollectionShard.parse(Path(shard).name).rows(len(names))
        sizes = (min(BLOCK, rows.stop - first) for first in range(rows.start, rows.stop, BLOCK))
        blocks = (random.standard_normal((size, DIMENSION), np.float32) for size in sizes)
        with recorded(folder / shard, stage="encode", spec={}, inputs=[]):
            written = SealedBlocks(folder / "state", shard)
            write_shard(folder / shard, names.part(rows), DIMENSION, blocks, written)


def counts_of(stage: Stage, found: dict[str, float], folder: Path) -> dict[str, float]:
    """What a stage's amounts follow from: passages, their tokens, its queries, and the bytes of its index."""
    asked, most = found.get(_split(stage), 0.0), stage.spec.get("queries")
    counts = {"passages": found["passages"], "queries": min(asked, most or asked)}
    counts |= {name: found[name] for name in ("tokens",) if name in found}
    if stage.name in ("hits", "merged"):
        counts["ranges"] = len(list((folder / "hits").iterdir()))
    index = {"build_index": stage.name, "search_index": "hnsw"}.get(stage.program)
    return counts | ({"index": float((folder / index / "index").stat().st_size)} if index else {})


def units_of(stage: Stage, counts: dict[str, float]) -> float:
    """How much a stage has to do, in its unit."""
    lines = counts["queries"] * DEPTHS.get(_split(stage), 0)
    products = {"ranked": counts["queries"] * counts["passages"], "lines": lines}
    return max((counts | products).get(stage.unit, 0.0), 1.0)


def needs_of(stage: Stage, counts: dict[str, float]) -> Needs:
    """What a stage needs, or each of its jobs, as preflight forecasts it."""
    passages, tokens, split = counts["passages"], counts.get("tokens", 75.0 * counts["passages"]), _split(stage)
    size = Size(
        collection=CollectionSize(Texts(passages, tokens / passages), queries={split: counts["queries"]}),
        shape=shape_of_model(),
        run={"split": split, "queries": None, "depth": DEPTHS.get(split, 0)} if split else {},
        given={**{role: {} for role in stage.reads}, "index": {"index": HNSW}},
        folder=next(iter(stage.jobs)),
        java=JAVA_MB * 2.0**20,
    )
    kind = stages.load(stage.program)
    spec = {"kind": "beir"} if stage.program == "collection" else stage.spec
    needs = kind(kind.spec_of(spec, (), stage.name), None).needs(size)
    if stage.program == "tokenizer":
        words = words_in(tokens)
        return replace(needs, memory=needs.memory - WORD * (words - min(words, WORDS)))
    return needs


def seconds_of(stage: Stage, needs: Needs) -> float:
    """Seconds that are forecast of a job; of exact search with its products, which preflight leaves to a GPU."""
    products = needs.operations if stage.program in ("search", "search_shard") else 0.0
    return needs.core_seconds + products / (USUAL["cpu"] * 1e9)


def _split(stage: Stage) -> str:
    return str(stage.spec.get("split") or next(iter(stage.spec.get("splits", [""]))))


def rows_of(
    folder: Path,
    passages: int,
    only: Sequence[str],
    seed: int = 0,
    run_it: Measuring = usage.measured,
    threads: int = 1,
    ranges: int = RANGES,
) -> Iterator[dict[str, Any]]:
    """Run the stages at one size; a row for each: what it took, and how much it had to do.

    Raises:
        EncoreError: hits in ranges gave another run than the undivided search.
    """
    found = write_texts(folder, passages, seed)
    chosen = [each for each in measured_stages(threads, ranges) if each.name in only]
    for stage in chosen:
        if stage.program == "collection":
            splits = {"train": {"role": "train"}, "dev": {"role": "test"}}
            fields = BeirFields.model_validate({"kind": "beir", "path": str(folder / "texts"), "splits": splits})
            stage.spec.update(fields.resolve())
        took = of_all([run_it(command, folder, folder / f"{stage.name}.log") for command in stage.commands(folder)])
        if stage.program == "tokens":
            results = json.loads((folder / "tokens/manifest.json").read_text())["results"]
            found["tokens"] = results["tokens_in_passages"]
            if any("shard0" in each.reads for each in chosen):
                draw_model(folder, ranges)
        if stage.name == "merged" and "exact" in only and not same_run(folder / "merged", folder / "exact"):
            raise EncoreError(f"the run of hits in {ranges} shards has other bytes than the undivided one")
        files = [path.stat() for path in (folder / stage.name).rglob("*") if path.is_file()]
        yield {
            "stage": stage.name,
            **took,
            "disk_mb": round(sum({each.st_ino: each.st_size for each in files}.values()) / 1e6),  # hard links once
            "counts": counts_of(stage, found, folder),
        }


def of_all(jobs: Sequence[dict[str, float]]) -> dict[str, float]:
    """What the jobs of a stage took, one after another: seconds of all, memory of the largest."""
    return {
        name: max(job[name] for job in jobs) if name == "memory_mb" else round(math.fsum(job[name] for job in jobs), 2)
        for name in jobs[0]
    }


def same_run(one: Path, other: Path) -> bool:
    """Whether two folders have a run of the same bytes."""
    return (one / RUN).read_bytes() == (other / RUN).read_bytes()


def stage_of(row: dict[str, Any]) -> Stage:
    """The stage that a row is of."""
    return {stage.name: stage for stage in measured_stages(ranges=row["counts"].get("ranges", RANGES))}[row["stage"]]


def next_to_forecasts(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of a table: what was measured, what preflight forecasts of the same amounts, and what a job requests."""
    return [
        {
            "stage": stage.told,
            "passages": f"{row['counts']['passages']:,}",
            "CPU s": row["cpu_seconds"],
            "forecast s": figures.rounded(len(stage.jobs) * seconds_of(stage, needs)),
            "memory MB": row["memory_mb"],
            "forecast MB": round(needs.memory / 1e6),
            "request MB": round(SPARE_MEMORY * needs.memory / 1e6),
            "disk MB": row["disk_mb"],
            "forecast of disk MB": round(len(stage.jobs) * needs.disk / 1e6),
        }
        for row in rows
        for stage in [stage_of(row)]
        for needs in [needs_of(stage, row["counts"])]
    ]


def largest(records: Path) -> list[dict[str, Any]]:
    """The row of each stage's largest size among the records in a folder, the quickest of equal sizes; by stages."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(records.glob("*.json")):
        for row in json.loads(path.read_text())["rows"]:
            found[row["stage"]] = max(found.get(row["stage"], row), row, key=_size)
    return sorted(found.values(), key=lambda row: list(STAGES).index(row["stage"]))


def _size(row: dict[str, Any]) -> tuple[float, float]:
    return row["counts"]["passages"], -row["cpu_seconds"]  # other work on a machine only adds


def grown(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The stages whose unit of work costs more than a third more than at the size before, in words."""
    found = []
    for name in dict.fromkeys(row["stage"] for row in rows):
        its = [row for row in rows if row["stage"] == name]
        for small, large in pairwise(its):
            one, more = (row["cpu_seconds"] / units_of(STAGES[name], row["counts"]) for row in (small, large))
            ratio = more / one
            if ratio > GROWTH:
                sizes = f"from {small['counts']['passages']} to {large['counts']['passages']} passages"
                found.append(f"{name}: {ratio:.2f} times as long for each of its {STAGES[name].unit} {sizes}")
    return found


STAGES = {stage.name: stage for stage in measured_stages()}


def main() -> None:
    """Measure, print and record; ends with 1 where costs grow."""
    options = _options()
    if options.table:
        print("\n".join(record.table(next_to_forecasts(largest(options.table)))))
        return
    before, rows = machine.load(), list[dict[str, Any]]()
    if options.work:
        options.work.mkdir(parents=True, exist_ok=True)
    setting = {"java_memory_mb": JAVA_MB, "dimension": DIMENSION, "threads_of_bm25": options.threads}
    for passages in options.passages:
        with tempfile.TemporaryDirectory(dir=options.work) as place:
            of = options.only, options.seed
            for row in rows_of(Path(place), passages, *of, threads=options.threads, ranges=options.ranges):
                rows.append(row)
                print(json.dumps(row), flush=True)
                record.write(options.output, options.name, {"setting": setting, "rows": rows}, before)
    print("\n".join(record.table(next_to_forecasts(rows))))
    if found := grown(rows):
        raise EncoreError("; ".join(found))


def _options() -> argparse.Namespace:
    names = list(STAGES)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, nargs="+", default=SIZES)
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="with those that they read")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="that search by BM25")
    parser.add_argument("--ranges", type=int, default=RANGES, help="of rows, that vectors are encoded and searched in")
    parser.add_argument("--work", type=Path, help="folder for some 6 KB a passage, most of them vectors")
    parser.add_argument("--table", type=Path, metavar="RECORDS", help="only print the table of a folder of records")
    record.add_flags(parser, "scale")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
