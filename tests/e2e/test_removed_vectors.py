"""Vectors under `execution: {keep_vectors: false}`: gone when all is made of them, and encoded again where needed."""

import re

from tests.support.clones import Clone
from tests.support.nano_jobs import CONFIG, NONE_MINED


def test_vectors_are_removed_after_use_and_encoded_again(nano: Clone) -> None:
    before = nano.manifests()
    config = nano.root / "config/nano.yaml"
    config.write_text(config.read_text().replace("execution: {", "execution: {keep_vectors: false, "))
    assert nano.planned() == set(), "how a run is carried out is in no digest"

    vectors = nano.folder("indexes", NONE_MINED)
    (index,) = vectors.rglob("index")
    run = nano.folder("runs", NONE_MINED)
    (made,) = run.glob("*test*/manifest.json")
    target = str(made.relative_to(nano.root))
    made.unlink()
    nano.nano(target).succeeded()
    assert index.stat().st_size == 0
    assert {path.name for path in index.parent.iterdir()} == {"docid", "index", "manifest.json", "run.json"}

    made.unlink()
    nano.nano(target).succeeded()
    (log,) = (nano.root / "results/logs/search" / run.name).glob("*test*.log")
    assert f"the vectors of {index.parent.relative_to(nano.root)} were removed: encoding again" in log.read_text()
    assert index.stat().st_size == 0
    assert nano.manifests() == before, "the same vectors, and the same run"
    assert not list((nano.root / "results/state").glob("**/index"))
    assert nano.planned() == set()

    audited = nano.encore("audit", "--deep", "--queries", "2", *CONFIG)
    assert audited.code == 1, "a run could not be searched again"
    assert "note: the vectors of 1 shards were removed" in audited.output
    assert re.search(r"audit: \d\d artifacts verified, 0 bad", audited.output)
    assert re.search(r"NOT audited: 1 file: \S+/run.npz \(the vectors that were searched are removed\)", audited.output)
    assert nano.encore("audit", *CONFIG).succeeded()
