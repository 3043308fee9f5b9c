"""Under `execution: {search_by_shard: true}` each shard is searched by a job, and a table has the same bytes."""

import shutil

from encore.storage.manifest import MANIFEST
from tests.support.clones import Clone
from tests.support.nano_jobs import CONFIG, NONE_MINED, PRODUCTS

SHARDS = [f"{number:03d}-of-003" for number in range(3)]  # the collection has three blocks of vectors
COMPARED = ("runs", "scores", "tables", "figures")


def test_a_table_has_the_same_bytes_where_each_shard_is_searched_by_a_job(nano: Clone) -> None:
    """All but trainings is made again for one row: vectors, hits, run, scores, table."""
    before, table = nano.files(), nano.root / "results/tables/table1.csv"
    nano.replace("config/nano.yaml", "shards: 1", "shards: 3, search_by_shard: true")
    assert nano.planned() == set(), "how a run is carried out is in no digest, and finished runs are taken"

    shutil.rmtree(nano.folder("indexes", NONE_MINED))
    for kind in ("runs", "scores"):
        (run,) = nano.folder(kind, NONE_MINED).glob("*.test*")
        shutil.rmtree(run)
    table.unlink()
    run_name = f"{NONE_MINED} pydocs-stdlib.test"
    each_of = f"encode {NONE_MINED} pydocs-stdlib", f"search_shard {run_name}"
    by_shard = {f"{job} {shard}" for job in each_of for shard in SHARDS}
    assert nano.built() == {*by_shard, f"search {run_name}", f"evaluate {run_name}"} | PRODUCTS

    made = nano.files()
    for kind in COMPARED:
        of_kind = {place for place in before if place.startswith(f"{kind}/") and not place.endswith(MANIFEST)}
        assert of_kind, kind
        assert {place: made.get(place) for place in of_kind} == {place: before[place] for place in of_kind}
    assert nano.planned() == set()
    assert "0 bad" in nano.encore("audit", "--deep", *CONFIG).succeeded()
