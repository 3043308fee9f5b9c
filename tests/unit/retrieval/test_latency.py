"""What a query takes: the arithmetic by hand, real systems end to end, and how systems made of others add up."""

import json
import subprocess
import sys
import time
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from encore.config.run import RunConfig
from encore.config.systems import Fp16
from encore.data import vocabulary
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.tokens import TokenStore, write_store
from encore.errors import EncoreError
from encore.models import checkpoint
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.plan.artifacts.scores import PARTS, READS
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.products.tables.entries import ColumnEntry
from encore.products.tables.plan import table_plan
from encore.retrieval import dense, indexing, latency, lucene
from encore.retrieval.encode import Encoding, make_shard
from encore.retrieval.latency import MEASURERS, LatencyInputs, TimedRun, gathered
from encore.storage.manifest import record
from tests.support import forks, inside
from tests.support.shipped import run_file
from tests.support.small_reads import table_reads

ROOT = Path(__file__).parents[3]
NANO = run_file("nano")
NUMERICS = {"precision": "fp32", "threads": 1}
WORDS = ["cat", "dog", "owl", "fox", "bee", "ant", "cow", "hen"]


def test_a_summary_is_the_one_by_hand():
    """Of 1 to 10: the median lies between 5 and 6; a tenth of the nine steps from 1 to 10 lies above 9.1."""
    assert latency.summary(np.arange(10, 0, -1.0)) == {"median_ms": 5.5, "p90_ms": 9.1, "mean_ms": 5.5}


def test_queries_are_timed_one_by_one_after_a_warm_up(monkeypatch):
    asked: list[int] = []
    clock = [0]

    def answer(number: int) -> None:
        asked.append(number)
        clock[0] += (number + 1) * 1_500_000

    monkeypatch.setattr(time, "perf_counter_ns", lambda: clock[0])
    given = LatencyInputs(TimedRun(system="x", split="test", depth=5), queries=3, warm_up=5)
    vars(given)["names"] = ["a", "b", "c"]
    times = given.timed(answer)
    assert asked == [0, 1, 2, 0, 1, 0, 1, 2]
    assert times.tolist() == [1.5, 3.0, 4.5]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """64 passages and 12 test queries, a random model, its shards, an index of half precision, and Lucene's index."""
    home = tmp_path_factory.mktemp("home")
    pairs = [(a, b) for a in WORDS for b in WORDS]
    texts = [f"the {a} sees the {b}" for a, b in pairs]
    with record(home / "collection", stage="collection.beir", spec={}, inputs=[]):
        write_collection(
            home / "collection",
            [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(texts)],
            [{"_id": f"q{i}", "text": f"{a} {b}"} for i, (a, b) in enumerate(pairs[:24])],
            {
                "train": [Judgment(f"q{i}", f"d{i}", 1) for i in range(12)],
                "test": [Judgment(f"q{i}", f"d{i}", 1) for i in range(12, 24)],
            },
        )
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(vocabulary.train(texts, 60)), home / "tokenizer")
    with record(home / "tokens", stage="tokens", spec={}, inputs=[]):
        write_store(Collection(home / "collection"), home / "tokenizer", home / "tokens")
    store = TokenStore(home / "tokens")
    special = store.special.pad, store.special.cls, store.special.sep
    with record(home / "model", stage="start", spec={}, inputs=[]):
        shape = EncoderConfig(store.vocabulary, 1, 16, 2, 32, 16, 0.0, "mean", "cosine", None, *special)
        checkpoint.save_model(Encoder(shape), {}, home / "model", store.tokenizer_folder)
    spec = {"length": 16, "numerics": NUMERICS}
    for name in ("000-of-002", "001-of-002"):
        with record(home / name, stage="encode", spec=spec, inputs=[]):
            how = Encoding(16, NUMERICS)
            make_shard(how, home / "model", home / "tokens", name, home / name, home / f"state-{name}")
    with record(home / "fp16", stage="build_index", spec={}, inputs=[]):
        indexing.make_index(Fp16(kind="fp16"), [home / "000-of-002", home / "001-of-002"], home / "fp16")
    with record(home / "words", stage="lucene_index", spec={}, inputs=[]):
        lucene.build_lucene_index([(f"d{i}", text) for i, text in enumerate(texts)], home / "words", memory_mb=256)
    return home


SEARCH = {"split": "test", "queries": None, "sample": 0, "depth": 5, "query_length": 8, "numerics": NUMERICS}


def measured_by_stage(home: Path, spec: dict, output: str, **inputs: str) -> dict:
    """By a process of its own, since Java would stay in this one, and with it its signal handlers, for all tests."""
    words = inside.making("measure_latency", spec, {"collection": "collection", **inputs}, output)
    done = subprocess.run([forks.python(), *words], cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(json.loads((home / output / "manifest.json").read_text())["outputs"]) == {"latency.json", "times.tsv"}
    return json.loads((home / output / "latency.json").read_text())


@pytest.fixture(scope="module")
def measured(home):
    """Exact search and BM25 as a job measures them, which fusion then reads."""
    counts = {"queries": 8, "warm_up": 3}
    exact = {"kind": "search", "run": SEARCH | {"system": "ours"}, **counts}
    words = {"kind": "lucene_search", "run": SEARCH | {"system": "bm25-x", "k1": 0.9, "b": 0.4}, **counts}
    dense = {"model": "model", "tokens": "tokens", "shard0": "000-of-002", "shard1": "001-of-002"}
    return {
        "exact": measured_by_stage(home, exact, "exact", **dense),
        "words": measured_by_stage(home, words, "bm25", index="words"),
    }


@pytest.mark.slow
def test_a_dense_system_has_an_encoder_and_a_search(home, measured):
    found = measured["exact"]
    assert [stage["stage"] for stage in found["stages"]] == ["encoder", "search"]
    assert all(0 < stage["median_ms"] <= stage["p90_ms"] for stage in found["stages"])
    size = sum((home / name / "index").stat().st_size for name in ("000-of-002", "001-of-002"))
    assert found["index"] == {"bytes": size, "passages": 64, "bytes_per_passage": round(size / 64, 2)}
    assert (found["queries"], found["split"], found["hardware"]["threads"]) == (8, "test", 1)
    assert found["hardware"]["processor"]


@pytest.mark.slow
def test_every_query_stands_in_the_table_of_times(home, measured):
    lines = [line.split("\t") for line in (home / "exact/times.tsv").read_text().splitlines()]
    assert lines[0] == ["query", "encoder", "search", "total"]
    assert len(lines) == 1 + 8
    assert {line[0] for line in lines[1:]} <= {f"q{i}" for i in range(12, 24)}
    numbers = np.array([line[1:] for line in lines[1:]], dtype=float)
    assert numbers[:, 0] + numbers[:, 1] == pytest.approx(numbers[:, 2], abs=2e-4)
    assert measured["exact"]["total"]["median_ms"] == pytest.approx(np.median(numbers[:, 2]), abs=2e-4)


RESIDENT = """
import sys
from pathlib import Path
from encore.retrieval.latency import resident
with resident(Path(sys.argv[1]), 0.9, 0.4, 256, "sw") as (searcher, _):
    print([len(searcher.search(word, 10)) for word in ("books", "book", "the")])
"""


@pytest.mark.slow
def test_the_resident_reads_a_language_without_analyser_as_the_runs_do(tmp_path):
    lucene.build_lucene_index([("d", "the BOOKS")], tmp_path, memory_mb=256, language="sw")
    done = subprocess.run([sys.executable, "-c", RESIDENT, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1, 0, 1]", "neither stems nor stop words"


@pytest.mark.slow
def test_bm25_is_one_warm_java_process_and_the_folder_of_its_index(home, measured):
    found = measured["words"]
    assert [stage["stage"] for stage in found["stages"]] == ["search"]
    assert found["index"]["bytes"] == sum(p.stat().st_size for p in (home / "words/lucene").iterdir())
    assert found["index"]["passages"] == 64
    assert found["total"] == {name: found["stages"][0][name] for name in ("median_ms", "p90_ms", "mean_ms")}


@pytest.mark.slow
def test_an_index_of_half_precision_is_measured_and_smaller(home, measured, tmp_path):
    folders = {"collection": ["collection"], "model": ["model"], "tokens": ["tokens"], "index": ["fp16"]}
    paths = {role: [home / name for name in names] for role, names in folders.items()}
    given = LatencyInputs(TimedRun(**SEARCH, system="ours@fp16", search={}), 8, 3, paths)
    results = latency.measure_latency("search_index", given, tmp_path)
    assert results["index_bytes"] == (home / "fp16/index").stat().st_size < measured["exact"]["index"]["bytes"]
    assert (results["queries"], results["passages"]) == (8, 64)


@pytest.mark.slow
def test_a_fusion_waits_for_the_slower_list_and_keeps_both_indexes(home, measured, tmp_path):
    names = [f"q{i}" for i in range(12, 24)]
    run = {name: indexing.Ranking(["d1", "d2"], np.array([2, 1], dtype=np.float32)) for name in names}
    for side in ("sparse", "dense"):
        header = dense.describe(side, collection="c", split="test", retrieval=[])
        dense.write_run(tmp_path / side, run, header)
    paths = {"collection": [home / "collection"], "sparse": [tmp_path / "sparse"], "dense": [tmp_path / "dense"]}
    parts = [home / "bm25", home / "exact"]
    found = MEASURERS["fuse"](LatencyInputs(TimedRun(**SEARCH, system="hybrid"), 8, 3, paths, parts))
    slower = np.maximum(*(np.loadtxt(part / "times.tsv", skiprows=1, usecols=-1) for part in parts))
    assert list(found.parts) == ["fusion"]
    assert found.total == pytest.approx(slower + found.parts["fusion"], abs=1e-3)
    sizes = [measured[name]["index"]["bytes"] for name in ("words", "exact")]
    assert (found.bytes, found.passages) == (sum(sizes), 64)


@pytest.mark.slow
def test_reranking_adds_to_its_first_stage(home, measured, tmp_path):
    names = [f"q{i}" for i in range(12, 24)]
    ranking = indexing.Ranking([f"d{i}" for i in range(9, 0, -1)], np.arange(9, 0, -1, dtype=np.float32))
    header = dense.describe("first", collection="c", split="test", retrieval=[])
    dense.write_run(tmp_path / "first", dict.fromkeys(names[1:], ranking), header)
    paths = {role: [home / role] for role in ("collection", "model", "tokens")} | {"first": [tmp_path / "first"]}
    run = TimedRun(**SEARCH, system="again", reranked=4)
    found = MEASURERS["rerank"](LatencyInputs(run, 8, 3, paths, [home / "bm25"]))
    first = np.loadtxt(home / "bm25/times.tsv", skiprows=1, usecols=-1)
    assert found.total == pytest.approx(first + found.parts["rerank"], abs=1e-3)
    assert found.bytes == measured["words"]["index"]["bytes"]


@pytest.mark.slow
def test_parts_that_timed_other_queries_are_refused(home, measured, tmp_path):
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "latency.json").write_text((home / "exact/latency.json").read_text())
    (cut / "times.tsv").write_text("".join((home / "exact/times.tsv").read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(EncoreError, match="timed different queries"):
        gathered([home / "exact", cut])


# Plans


@pytest.fixture
def plan(monkeypatch):
    monkeypatch.chdir(ROOT)
    return make()


def make(**changes):
    content = deepcopy(NANO) | {"tables": {"table2": "all"}} | changes
    return Plan(RunConfig.model_validate(content), load_catalogue())


def test_every_measurer_can_be_planned():
    assert set(READS) == set(MEASURERS)
    assert set(PARTS) < set(READS)


def measured_of(plan):
    """The measurement that each row of table 2 shows."""
    rows = table_plan(plan, "table2").dumped()["rows"]
    assert all(row["cells"]["latency"]["reads"] == row["cells"]["size"]["reads"] for row in rows)
    return {row["id"]: row["cells"]["latency"]["reads"][0]["folder"] for row in rows}


def test_a_system_made_of_others_reads_their_measurements(plan):
    found = measured_of(plan)
    for system, parts in (("fusion", ["bm25", "exact"]), ("colbert", ["bm25"])):
        inputs = sorted(plan.find(found[system]).inputs.items())
        assert [each.folder for role, each in inputs if role.startswith("part")] == [found[part] for part in parts]


def test_a_table_measures_each_row_once_whatever_the_seeds(plan):
    found = measured_of(plan)
    assert found["bm25"].startswith("results/latency/bm25-")
    assert "@hnsw/pydocs-stdlib.test-" in found["hnsw"]
    several = make(seeds=[0, 1])
    assert measured_of(several) == found
    tct = next(row for row in table_plan(several, "table2").dumped()["rows"] if row["id"] == "tct")["cells"]
    assert (len(tct["rr10"]["reads"]), len(tct["latency"]["reads"])) == (2, 1)
    # Two rows that are searched exactly are one system, which is measured once.
    read = [artifact for artifact in table_reads(plan, "table2") if artifact.stage == "measure_latency"]
    assert len(read) == len(set(found.values()))


def test_a_measurement_is_part_of_no_other_artifact(plan):
    table_plan(plan, "table2").dumped()
    measurements = {folder for folder in plan.made if "/latency/" in folder}
    before = set(plan.made) - measurements
    other = make(latency={"queries": 7, "warm_up": 1})
    table_plan(other, "table2").dumped()
    assert before < set(other.made)
    assert measurements
    assert measurements.isdisjoint(other.made)
    assert not [
        a for a in plan.made.values() if a.stage != "measure_latency" for i in a.inputs.values() if "latency" in i.stage
    ]


def test_a_measurement_is_found_from_its_folder(plan):
    folder = measured_of(plan)["ivfpq"]
    assert make(tables={}).find(folder).spec == plan.find(folder).spec


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "needs one source of its values"),
        ({"measure": "RR@10", "efficiency": "size"}, "and only one: `measure`, `efficiency`"),
        ({"efficiency": "size", "primary": True}, "cannot be primary"),
        ({"efficiency": "speed"}, "latency"),
    ],
)
def test_a_column_shows_one_thing(fields, says):
    with pytest.raises(ValueError, match=says):
        ColumnEntry.model_validate({"id": "x", "label": "x", "dataset": "d", "split": "test", **fields})
