"""Indexes of named types: equal bytes for any number of shards, recall against exact search, names and plans."""

import json
import tracemalloc
from copy import deepcopy

import faiss
import numpy as np
import pytest

from encore.config import systems
from encore.config.run import RunConfig
from encore.data.rankings import Ranking
from encore.errors import EncoreError
from encore.plan.lineage import split_index
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.retrieval import indexing
from encore.retrieval.dense import Searcher, Shard
from encore.retrieval.encode import CollectionShard
from encore.storage.document_ids import DocIds
from encore.storage.manifest import record
from tests.support.quick_first import quick_first
from tests.support.shipped import run_file
from tests.support.small_shard import write_shard

NANO = run_file("nano")
LINEAGE = "bert-base+marco-bm25"
PASSAGES, DIMENSION = 4000, 32
TYPES = {
    "hnsw": {"kind": "hnsw", "m": 16, "ef_construction": 80, "ef_search": 128},
    "ivfpq": {"kind": "ivfpq", "nlist": 32, "m": 16, "bits": 6, "nprobe": 8},
    "fp16": {"kind": "fp16"},
}


@pytest.fixture(scope="module")
def data():
    """Clustered vectors of unit length, as a model's are, the ids of their documents, and queries near some."""
    generator = np.random.default_rng(3)
    centres = generator.normal(size=(60, DIMENSION))
    vectors = centres[generator.integers(0, 60, PASSAGES)] + 0.7 * generator.normal(size=(PASSAGES, DIMENSION))
    queries = vectors[generator.integers(0, PASSAGES, 40)] + 0.3 * generator.normal(size=(40, DIMENSION))
    units = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (vectors, queries)]
    documents = [f"d{number}" for number in generator.permutation(PASSAGES)]
    return units[0].astype(np.float32), documents, units[1].astype(np.float32)


def shards(data, folder, count):
    """The vectors in so many shards, as encoding writes them."""
    vectors, documents, _ = data
    made = []
    for number in range(count):
        rows = CollectionShard(number, count).rows(PASSAGES)
        made.append(folder / f"{number:03d}-of-{count:03d}")
        with record(made[-1], stage="encode", spec={}, inputs=[]):
            parts = [vectors[rows.start : rows.stop]]
            write_shard(made[-1], documents[rows.start : rows.stop], vectors.shape[1], parts)
    return made


def built(fields, vectors):
    """An index alone."""
    return indexing.build_index(fields, [vectors])[0]


@pytest.mark.parametrize("kind", quick_first(["hnsw", "fp16", "ivfpq"], quick=2))
def test_an_index_has_the_same_bytes_for_any_number_of_shards_in_any_order(data, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(indexing, "PIECE", 500)
    fields = systems.read_index_type(TYPES[kind])
    results = [
        indexing.make_index(fields, shards(data, tmp_path / str(count), count)[::-1], tmp_path / f"made{count}")[0]
        for count in (1, 3)
    ]
    assert results[0] == results[1]
    assert results[0]["passages"] == PASSAGES
    assert results[0]["bytes"] == (tmp_path / "made1/index").stat().st_size
    for file in ("index", "docid"):
        assert (tmp_path / "made1" / file).read_bytes() == (tmp_path / "made3" / file).read_bytes()
    again = built(fields, data[0])
    assert faiss.serialize_index(again).tobytes() == (tmp_path / "made1/index").read_bytes()


def test_a_graph_of_pieces_finds_as_much_as_faiss_s_own(data, monkeypatch):
    truth, own = exact(data), faiss.IndexHNSWFlat(DIMENSION, TYPES["hnsw"]["m"], faiss.METRIC_INNER_PRODUCT)
    own.hnsw.efConstruction = TYPES["hnsw"]["ef_construction"]
    own.add(data[0])
    whole = built(systems.read_index_type(TYPES["hnsw"]), data[0])
    assert faiss.serialize_index(whole).tobytes() == faiss.serialize_index(own).tobytes()
    monkeypatch.setattr(indexing, "PIECE", 500)
    in_pieces = built(systems.read_index_type(TYPES["hnsw"]), data[0])
    assert faiss.serialize_index(in_pieces).tobytes() != faiss.serialize_index(own).tobytes()
    for index in (own, in_pieces):
        indexing.set_up(index, {"ef_search": 128})
        held = Shard(index, DocIds.of(data[1]))
        run = indexing.search_approximate(held, [f"q{n}" for n in range(40)], data[2], 20)
        assert indexing.recall(run, truth, 20)["recall@10"] > 0.97


@pytest.mark.parametrize(("kind", "copies"), [("hnsw", 0.3), ("ivfpq", 1.2), ("fp16", 0.3)])
def test_an_index_is_built_of_at_most_one_copy_of_the_vectors(data, tmp_path, kind, copies, monkeypatch):
    """Next to FAISS's own memory, which is not counted here: at MS MARCO's size each copy takes 27 GB."""
    monkeypatch.setattr(indexing, "PIECE", 256)
    made, wide = tmp_path / "made", np.tile(data[0], 8)
    parts = shards((wide, *data[1:]), tmp_path, 3)
    tracemalloc.start()
    indexing.make_index(systems.read_index_type(TYPES[kind]), parts, made)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < copies * wide.nbytes


def test_k_means_learns_from_a_sample_as_faiss_does_with_all_vectors_in_memory(data, tmp_path):
    fields = systems.read_index_type({"kind": "ivfpq", "nlist": 4, "m": 4, "bits": 4, "nprobe": 2, "seed": 5})
    vectors = np.concatenate([data[0], data[0][::-1] + 0.1])  # FAISS draws 1,024 for the lists, 4,096 for the codes
    whole = faiss.IndexIVFPQ(lists := faiss.IndexFlatIP(DIMENSION), DIMENSION, 4, 4, 4, faiss.METRIC_INNER_PRODUCT)
    whole.cp.seed = whole.pq.cp.seed = 5
    whole.train(vectors)
    whole.add(vectors)
    assert lists.ntotal == 4
    tracemalloc.start()
    made, _ = indexing.build_index(fields, [vectors[:1000], vectors[1000:]])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert faiss.serialize_index(made).tobytes() == faiss.serialize_index(whole).tobytes()
    assert peak < 2.5 * 4096 * 4 * DIMENSION


def test_a_graph_that_the_machine_has_no_memory_for_is_refused(data, monkeypatch):
    monkeypatch.setattr(indexing.machine, "memory", lambda: 4000 * 4 * (DIMENSION + 4 * 16) - 1)
    said = "a graph of 4,000 vectors takes 0 GB of memory, and this machine has 0; take @ivfpq, or a larger machine"
    with pytest.raises(EncoreError, match=said):
        built(systems.read_index_type(TYPES["hnsw"]), data[0])


@pytest.mark.slow
def test_k_means_draws_from_the_seed(data):
    types = (systems.read_index_type({**TYPES["ivfpq"], "seed": seed}) for seed in (0, 1))
    one, other = (faiss.serialize_index(built(fields, data[0])).tobytes() for fields in types)
    assert one != other


def test_shards_that_are_no_whole_division_are_refused(data, tmp_path):
    three, two = shards(data, tmp_path / "a", 3), shards(data, tmp_path / "b", 2)
    for given in (three[:2], [*three, three[0]], [three[0], two[1], three[2]]):
        with pytest.raises(EncoreError, match="not the shards of one division"):
            indexing.gather(given)


def answered(data, kind, depth=20, **how):
    vectors, documents, queries = data
    fields = systems.read_index_type({**TYPES[kind], **how})
    index = built(fields, vectors)
    indexing.set_up(index, fields.searching())
    return indexing.search_approximate(
        Shard(index, DocIds.of(documents)), [f"q{n}" for n in range(len(queries))], queries, depth
    )


def exact(data, depth=20):
    vectors, documents, queries = data
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(vectors)
    return Searcher([Shard(index, DocIds.of(documents))]).search([f"q{n}" for n in range(len(queries))], queries, depth)


@pytest.mark.slow
def test_searching_further_finds_more_of_the_exact_answer(data):
    """Every list: only quantisation is left. A wide graph: nearly everything. Half precision: nearly everything."""
    truth = exact(data)
    found = {
        name: indexing.recall(run, truth, 20)["recall@10"]
        for name, run in {
            "one list": answered(data, "ivfpq", nprobe=1),
            "8 lists": answered(data, "ivfpq"),
            "all lists": answered(data, "ivfpq", nprobe=32),
            "narrow": answered(data, "hnsw", ef_search=1),
            "wide": answered(data, "hnsw", ef_search=512),
            "fp16": answered(data, "fp16"),
        }.items()
    }
    assert found["one list"] < found["8 lists"] <= found["all lists"] < 1
    assert found["narrow"] <= found["wide"]
    assert found["wide"] > 0.98
    assert found["fp16"] > 0.98


def test_recall_is_the_share_of_the_exact_top_k_found_in_the_top_k():
    """By hand: of [a b], the run's first two hold one; of [c d], both, in another order; at most the depth counts."""

    def ranking(*documents):
        return Ranking(list(documents), np.arange(len(documents), 0, -1, dtype=np.float32))

    pad = [f"x{n}" for n in range(8)]
    truth = {"p": ranking("a", "b", *pad), "q": ranking("c", "d", *pad)}
    run = {"p": ranking("a", *(f"y{n}" for n in range(9)), "b"), "q": ranking("d", *pad, "c")}
    assert indexing.recall(run, truth, 10) == {"recall@10": pytest.approx((1 / 10 + 10 / 10) / 2)}
    assert list(indexing.recall(truth, truth, 1000)) == ["recall@10", "recall@100", "recall@1000"]
    assert set(indexing.recall(truth, truth, 1000).values()) == {1.0}


def test_recall_agrees_with_a_count_by_sets(data):
    """An oracle of its own: sets of each query's first documents."""
    truth, run = exact(data, 100), answered(data, "ivfpq", 100)
    for cut in (10, 100):
        counts = [len(set(truth[q].documents[:cut]) & set(run[q].documents[:cut])) for q in truth]
        assert indexing.recall(run, truth, 100)[f"recall@{cut}"] == pytest.approx(sum(counts) / cut / 40, abs=1e-6)


def test_a_query_s_answer_does_not_depend_on_its_neighbours(data):
    vectors, documents, queries = data
    fields = systems.read_index_type(TYPES["hnsw"])
    held = Shard(built(fields, vectors), DocIds.of(documents))
    together = indexing.search_approximate(held, ["a", "b"], queries[:2], 10)
    alone = indexing.search_approximate(held, ["b"], queries[1:2], 10)
    assert together["b"].documents == alone["b"].documents


@pytest.mark.parametrize("kind", ["hnsw", "fp16"])
def test_a_tie_at_the_cut_is_complete_and_stands_by_descending_id(kind):
    vectors = np.zeros((900, DIMENSION), dtype=np.float32)
    vectors[:5, 0], vectors[5:105, 0] = 2.0, 1.0
    documents = [f"d{number:03d}" for number in range(900)]
    index = built(systems.read_index_type({**TYPES[kind], **({"ef_search": 900} if kind == "hnsw" else {})}), vectors)
    run = indexing.search_approximate(
        Shard(index, DocIds.of(documents)), ["q"], np.eye(DIMENSION, dtype=np.float32)[:1], 10
    )
    assert run["q"].documents[:5] == ["d004", "d003", "d002", "d001", "d000"]
    if kind == "fp16":  # all vectors are compared, so the best of the tie are known
        assert run["q"].documents[5:] == ["d104", "d103", "d102", "d101", "d100"]


def test_half_precision_takes_half_the_bytes(data):
    vectors = data[0]
    flat = faiss.IndexFlatIP(DIMENSION)
    flat.add(vectors)
    half = len(faiss.serialize_index(built(systems.read_index_type(TYPES["fp16"]), vectors)))
    assert half == pytest.approx(len(faiss.serialize_index(flat)) / 2, rel=0.01)


def test_too_few_vectors_are_refused_with_the_number_that_would_do(data):
    fields = systems.read_index_type({"kind": "ivfpq", "nlist": 8, "m": 16, "bits": 8, "nprobe": 8})
    with pytest.raises(EncoreError, match=r"bits=8 has 256 centroids, for which k-means wants 9984 vectors.*4000"):
        built(fields, data[0])
    fields = systems.read_index_type({"kind": "ivfpq", "nlist": 200, "m": 16, "bits": 4, "nprobe": 8})
    with pytest.raises(EncoreError, match=r"nlist=200 .*lower nlist under `scale: indexes:`"):
        built(fields, data[0])


# Names and plans


def make(changes=None):
    return Plan(RunConfig.model_validate(deepcopy(NANO) | (changes or {})), load_catalogue())


pytestmark = pytest.mark.usefixtures("at_the_root")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (f"{LINEAGE}@hnws", "unknown index 'hnws'.*did you mean hnsw"),
        (f"{LINEAGE}@hnsw~efsearch=3", "has no field"),
        (f"{LINEAGE}@hnsw~ef_serch=3", "did you mean ef_search"),
        (f"{LINEAGE}@ivfpq~nprobe=8", "its value already"),
        (f"{LINEAGE}@ivfpq~nprobe=17", "nprobe 17 is more than the nlist 16"),
        (f"{LINEAGE}@ivfpq~nprobe=04", "must be spelled"),
        (f"{LINEAGE}@ivfpq~m=48", "m=48 does not divide the 128 dimensions"),
        (f"{LINEAGE}@", "is not `index`"),
        (f"{LINEAGE}@fp16@fp16", "is not `index`"),
    ],
)
def test_a_wrong_name_is_explained_in_one_line(name, says):
    with pytest.raises(EncoreError, match=says) as refused:
        make().scores(name, 0, "msmarco-passage", "test")
    assert "\n" not in str(refused.value)


def test_a_wrong_scale_is_explained_before_anything_is_planned():
    for indexes, says in (({"hnws": {}}, "did you mean hnsw"), ({"hnsw": {"mm": 3}}, "scale.indexes.hnsw.*mm")):
        with pytest.raises(EncoreError, match=says):
            make({"scale": NANO["scale"] | {"indexes": indexes}})


def test_names_are_split_at_the_index():
    assert split_index("a+b") == ("a+b", None)
    lineage, index = split_index("a+b@ivfpq~nlist=4~nprobe=2")
    assert (lineage, str(index)) == ("a+b", "ivfpq~nlist=4~nprobe=2")


def test_every_entry_says_where_its_values_come_from():
    entries = {name: systems.read_index_type(fields) for name, fields in load_catalogue().indexes.items()}
    assert set(entries) == {"hnsw", "ivfpq", "fp16"}
    assert all(entry.source for entry in entries.values())


def test_the_plan_of_an_index_is_found_from_its_folders(monkeypatch):
    plan = make()
    scores = plan.scores(f"{LINEAGE}@hnsw", 0, "msmarco-passage", "test")
    run = scores.inputs["run"]
    assert run.stage == "search_index"
    assert run.owner == scores.owner == f"{run.inputs['model'].name}@hnsw"
    assert run.inputs["exact"] is plan.run(LINEAGE, 0, "msmarco-passage", _topics(run))
    assert run.inputs["index"].stage == "build_index"
    again = make()
    for artifact in (scores, run, run.inputs["index"]):
        assert again.find(artifact.folder).spec == artifact.spec
    assert plan.resolve.has_chance(f"{LINEAGE}@hnsw")
    assert plan.resolve.canonical(f"{LINEAGE}@hnsw") == "tiny+marco-bm25@hnsw"


def _topics(run):
    from encore.plan.artifact import Topics

    return Topics(*(run.spec[name] for name in Topics._fields))


@pytest.mark.parametrize("name", ["hnsw", "ivfpq", "fp16"])
def test_a_spec_builds_what_the_plan_meant(name):
    """The spec of an index leaves out how it is searched, and must be readable without."""
    fields = make().resolve.index_type(split_index(f"x@{name}")[1])
    assert systems.read_index_type(fields.building()).building() == fields.building()
    assert fields.building().keys() | fields.searching().keys() == type(fields).model_fields.keys() - {"source"}


def test_how_an_index_is_searched_and_the_number_of_shards_are_no_part_of_it():
    def index_of(name, shards=1):
        plan = make({"execution": {"shards": shards}})
        return plan.scores(f"{LINEAGE}@{name}", 0, "msmarco-passage", "test").inputs["run"]

    usual, searched, shaped, cut = (index_of(name) for name in ("ivfpq", "ivfpq~nprobe=4", "ivfpq~nlist=8", "fp16"))
    assert usual.inputs["index"].folder == searched.inputs["index"].folder
    assert usual.folder != searched.folder
    assert len({one.inputs["index"].folder for one in (usual, shaped, cut)}) == 3
    assert index_of("ivfpq", shards=3).folder == usual.folder
    assert len(index_of("ivfpq", shards=3).inputs["index"].inputs) == 3
    assert json.dumps(usual.spec)
