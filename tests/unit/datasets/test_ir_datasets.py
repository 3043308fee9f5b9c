"""The kind ir-datasets: official files in, the common form out, and nothing from the network but by the rule for it."""

import gzip
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from encore.config.languages import SPOKEN
from encore.config.run import Execution
from encore.config.run_file import read_run
from encore.data.collection import Collection
from encore.datasets.download.ir_datasets import explained
from encore.datasets.ir_datasets import IrDatasetsFields, IrDatasetsSpec, QuerySet, _other_languages, _queries
from encore.errors import EncoreError
from encore.plan.resolver import Resolver
from encore.products.catalogue import load_catalogue
from encore.storage.manifest import read_results
from tests.support import forks, inside

ROOT = Path(__file__).parents[3]
CATALOGUE = load_catalogue(ROOT / "config")
DATASETS = CATALOGUE.datasets
OURS = {name: fields for name, fields in DATASETS.items() if isinstance(fields, IrDatasetsFields)}


def fields_of(**changes):
    entry = {
        "kind": "ir-datasets",
        "id": "msmarco-passage",
        "valid_queries": 1,
        "splits": {
            "train": {"role": "train", "id": "msmarco-passage/train/judged"},
            "valid": {"role": "valid"},
            "test": {"role": "test", "id": "msmarco-passage/dev/small"},
            "graded": {"role": "graded", "id": "msmarco-passage/trec-dl-2019/judged"},
        },
        "licence": "free",
        "terms": "https://example.org/terms",
    }
    return IrDatasetsFields.model_validate(entry | changes)


def packed(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())


def marco(data_root):
    """MS MARCO's files as the library keeps them after its own downloads, with a few rows each."""
    home = data_root / "ir_datasets/msmarco-passage"
    packed(home / "irds_version.txt", "v2")
    packed(home / "collection.tsv", "".join(f"{n}\tpassage number {n}\n" for n in range(10)))
    packed(home / "train/queries.tsv", "100\tfirst\n101\tsecond\n102\tthird\n103\tnot judged\n")
    packed(home / "train/qrels", "100\t0\t1\t1\n101\t0\t2\t1\n102\t0\t3\t1\n")
    packed(home / "dev/small/queries.tsv", "200\tin dev\n")
    packed(home / "dev/small/qrels", "200\t0\t4\t1\n200\t0\t5\t1\n")
    packed(home / "trec-dl-2019/queries.tsv", "300\tgraded\n301\tnot judged\n")
    packed(home / "trec-dl-2019/qrels", "300 Q0 6 3\n300 Q0 7 0\n")


def run(*words, **environment):
    """A program in a separate process, a fork, since the library has one home a process."""
    path = [str(ROOT / "src"), *sys.path[1:]]
    return subprocess.run(
        [forks.python(), *map(str, words)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), **environment},
    )


def build(tmp_path, fields):
    """Bring a dataset into the common form, as the workflow does, and open it."""
    spec = {**fields.resolve(), **fields.language_spec}
    words = inside.making("collection", spec, {}, tmp_path / "collection")
    done = run(*words, ENCORE_DATA_ROOT=str(tmp_path / "data"))
    return done, Collection(tmp_path / "collection")


def test_official_files_become_a_collection(tmp_path):
    marco(tmp_path / "data")
    expected = {"passages": 10, "queries.train": 3, "queries.test": 1, "judgments.graded": 2}
    done, made = build(tmp_path, fields_of(expected=expected))
    assert done.returncode == 0, done.stderr
    assert list(made.corpus())[1] == {"_id": "1", "text": "passage number 1", "title": ""}
    assert made.queries() == {"100": "first", "101": "second", "102": "third", "200": "in dev", "300": "graded"}
    assert made.qrels("graded") == {"300": {"6": 3, "7": 0}}
    assert made.qrels("test") == {"200": {"4": 1, "5": 1}}
    parted = made.qrels("train"), made.qrels("valid")
    assert [len(part) for part in parted] == [2, 1]
    assert parted[0] | parted[1] == {"100": {"1": 1}, "101": {"2": 1}, "102": {"3": 1}}


@pytest.mark.parametrize(("language", "said"), [("en", []), ("zh", ["passages: en", "queries: en"])])
def test_a_language_that_is_not_the_datasets_is_reported(tmp_path, language, said):
    marco(tmp_path / "data")
    done, _ = build(tmp_path, fields_of(language=language))
    assert re.findall(r"language_of_(\w+: \w+)", done.stdout) == said
    results = read_results(str(tmp_path / "collection"))
    assert [f"{kind}: {results[key]}" for kind, key in SPOKEN.items() if key in results] == said


def test_languages_of_queries_are_reported_apart_from_that_of_the_passages():
    import ir_datasets

    for name, language in (("neumarco/zh", "zh"), ("mmarco/v2/dt", "nl")):
        spec = IrDatasetsSpec(id=name, splits={"test": QuerySet(id="neumarco/zh/dev/small")}, language=language)
        assert _other_languages(ir_datasets.load, spec) == {"language_of_queries": "en"}


@pytest.mark.parametrize("what", ["passages", "queries.test", "judgments.test"])
def test_other_counts_than_published_are_refused(tmp_path, what):
    marco(tmp_path / "data")
    done, _ = build(tmp_path, fields_of(expected={what: 9}))
    assert done.returncode == 1
    assert done.stderr.startswith("error: msmarco-passage: ")
    assert f" {what} were read, 9 are published" in done.stderr
    assert not (tmp_path / "collection/manifest.json").exists()


def test_what_was_not_fetched_is_not_downloaded(tmp_path):
    marco(tmp_path / "data")
    (tmp_path / "data/ir_datasets/msmarco-passage/train/qrels").unlink()
    done, _ = build(tmp_path, fields_of())
    assert done.returncode == 1
    assert "qrels.train.tsv is not in " in done.stderr
    assert done.stderr.count("error:") == 1
    assert "snakemake fetch" in done.stderr


def test_a_document_has_the_fields_that_are_named(tmp_path):
    marco(tmp_path / "data")
    done, _ = build(tmp_path, fields_of(rename={"text": "body"}))
    assert "documents of msmarco-passage have no 'body'; they have doc_id, text" in done.stderr


def test_questions_of_dpr_keep_answers_and_grades(tmp_path):
    home = tmp_path / "data/ir_datasets/dpr-w100"
    packed(home / "docs.tsv.gz", 'id\ttext\ttitle\n1\tis Ada\tAda\n2\t""\t\n3\telse\tElse\n')
    record = {
        "question": "who?",
        "answers": ["Ada", "A. L."],
        "positive_ctxs": [],
        "hard_negative_ctxs": [],
        "negative_ctxs": [],
    }
    contexts = {
        "positive_ctxs": [{"passage_id": "1", "score": 1000}],
        "hard_negative_ctxs": [{"passage_id": "3", "score": 1}],
    }
    packed(home / "nq-train.json.gz", json.dumps([record | contexts]))
    packed(home / "nq-dev.json.gz", json.dumps([record | contexts | {"question": "who else?"}]))
    names = {"train": "train", "valid": "dev"}
    splits = {
        split: {"role": split, "id": f"dpr-w100/natural-questions/{name}", "prefix": f"{name}-", "grades": {2: 2, 1: 1}}
        for split, name in names.items()
    }
    done, made = build(tmp_path, fields_of(id="dpr-w100", splits=splits, valid_queries=None))
    assert done.returncode == 0, done.stderr
    assert made.queries() == {"train-0": "who?", "dev-0": "who else?"}
    assert made.answers() == {"train-0": ["Ada", "A. L."], "dev-0": ["Ada", "A. L."]}
    assert made.qrels("train") == {"train-0": {"1": 2}}


def test_of_a_topic_without_text_its_title_is_searched():
    """As ir_datasets' own default says of TREC's topics, where some have a text and others have not."""
    from ir_datasets.formats import GenericQuery, TrecQuery

    sets = {"old": [TrecQuery("1", "a title", "longer", "much longer")], "new": [GenericQuery("2", "a text")]}

    def load(name):
        return SimpleNamespace(queries_iter=lambda: iter(sets[name]))

    rows = _queries(load, [QuerySet(id=name) for name in sets], {})
    assert list(rows) == [{"_id": "1", "text": "a title"}, {"_id": "2", "text": "a text"}]


def test_empty_documents_of_beir_are_left_out_and_counted(tmp_path):
    rows = [{"_id": "a", "title": "", "text": "one"}, {"_id": "b", "title": "", "text": " "}]
    archive = tmp_path / "data/ir_datasets/beir/fiqa/source.zip"
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("fiqa/corpus.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        file.writestr("fiqa/queries.jsonl", json.dumps({"_id": "q", "text": "which?", "metadata": {}}) + "\n")
        for split in ("train", "dev", "test"):
            file.writestr(f"fiqa/qrels/{split}.tsv", "query-id\tcorpus-id\tscore\nq\ta\t1\nq\tb\t1\n")
    fiqa = DATASETS["beir-fiqa"].model_dump() | {"expected": {"passages": 2}, "licence": "free", "terms": "x"}
    done, made = build(tmp_path, IrDatasetsFields.model_validate(fiqa))
    assert done.returncode == 0, done.stderr
    assert made.qrels("test") == {"q": {"a": 1}}
    assert "empty: 1" in done.stdout


def test_what_lies_in_data_root_is_fetched_without_a_download(tmp_path):
    marco(tmp_path / "data")
    spec, details = {"ids": fields_of().made_from.ids}, {"licence": "free", "terms": "https://x"}
    words = inside.making("fetch_ir_datasets", spec, {}, tmp_path / "small-marco-01234567", details=details)
    done = run(*words, ENCORE_DATA_ROOT=str(tmp_path / "data"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("small-marco: licence: free\nsmall-marco: terms: https://x\n")
    assert json.loads((tmp_path / "small-marco-01234567/manifest.json").read_text())["results"] == {
        "first_document": "0",
        "msmarco-passage/dev/small": {"queries": 1, "judgments": 2},
        "msmarco-passage/train/judged": {"queries": 3, "judgments": 3},
        "msmarco-passage/trec-dl-2019/judged": {"queries": 1, "judgments": 2},
    }


DOWNLOAD = """
import sys
from pathlib import Path
from types import SimpleNamespace
from encore.datasets.download import ir_datasets as ours
home = Path(sys.argv[1])
load = ours.library(home, ours._resumed(home, "https://example.org/terms"))
from ir_datasets.util import Download, RequestsDownload
with ours.explained("small"):
    print(Path(Download([RequestsDownload(sys.argv[2])], str(home / "file.txt"), sys.argv[3]).path()).read_text())
"""


@pytest.mark.parametrize("digest", ["5eb63bbbe01eeed093cb22bb8f5acdc3", "0" * 32])
def test_the_library_downloads_as_we_do(tmp_path, digest):
    (tmp_path / "web").mkdir()
    (tmp_path / "web/hello.txt").write_text("hello world")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path / "web")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/hello.txt"
    done = run("-c", DOWNLOAD, tmp_path / "home", url, digest)
    server.shutdown()
    server.server_close()
    right = digest[0] == "5"
    assert (done.returncode == 0) == right
    assert ("hello world" in done.stdout) == right
    assert right or "EncoreError: ir_datasets cannot give 'small': HashVerificationError" in done.stderr
    assert list((tmp_path / "home/tmp").iterdir()) == []
    assert (tmp_path / "home/file.txt").exists() == right


def test_an_error_among_several_mirrors_is_found():
    with pytest.raises(EncoreError, match=r"^gone$"), explained("x"):
        raise RuntimeError("All download sources failed", [("one", ValueError("a")), ("two", EncoreError("gone"))])
    with pytest.raises(EncoreError, match="no 'x'"), explained("x"):
        raise KeyError("x")


KNOWN = """
import json, sys, ir_datasets
found = {}
for name in json.loads(sys.argv[1]):
    known = ir_datasets.load(name)
    found[name] = {
        "has": [part for part in ("docs", "queries", "qrels") if getattr(known, "has_" + part)()],
        "fields": list(known.docs_cls()._fields),
        "docs": known.docs_metadata().get("count"),
        "queries": known.queries_metadata().get("count") if known.has_queries() else None,
    }
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """What the library says of every id that the catalogue names."""
    names = sorted({name for fields in OURS.values() for name in fields.made_from.ids})
    home = str(tmp_path_factory.mktemp("home"))
    done = subprocess.run(
        [sys.executable, "-c", KNOWN, json.dumps(names)],
        capture_output=True,
        text=True,
        env={**os.environ, "IR_DATASETS_HOME": home},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", OURS)
def test_the_library_has_what_the_catalogue_names(known, name):
    fields = OURS[name]
    documents, *sets = fields.made_from.ids
    theirs = {fields.rename.get(field, field) for field in fields.form.fields} - {"title"}
    assert theirs <= set(known[documents]["fields"])
    assert all({"docs", "queries", "qrels"} <= set(known[each]["has"]) for each in sets)
    assert fields.expected["passages"] == known[documents]["docs"]
    for split, each in fields.splits.items():
        if each.id:
            assert fields.expected[f"queries.{split}"] == known[each.id]["queries"]


def test_the_papers_collections_are_there_in_full():
    marco, documents = (DATASETS[f"msmarco-{kind}"].expected for kind in ("passage", "document"))
    assert (marco["passages"], marco["queries.test"]) == (8_841_823, 6_980)
    assert (documents["passages"], documents["queries.test"]) == (3_213_835, 5_193)
    forums = [name for name in DATASETS if name.startswith("beir-cqadupstack-")]
    assert len(forums) == 12
    assert len([name for name in DATASETS if name.startswith("beir-") and name not in forums]) == 18


def in_a_run(name, data_root):
    """The fields of a dataset of the catalogue in a run with this ``data_root``."""
    run = read_run(ROOT / "config/paper.yaml").model_copy(update={"execution": Execution(data_root=data_root)})
    return Resolver(run, CATALOGUE).own(name).fields


@pytest.mark.parametrize("data_root", ["data", "staged"])
@pytest.mark.parametrize("name", ["bioasq", "signal1m", "trec-news", "robust04"])
def test_a_restricted_set_says_how_to_get_it(name, data_root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fields = in_a_run(f"beir-{name}", data_root)
    assert re.fullmatch(
        f"{data_root}/beir/{name} is missing, which cannot be downloaded: .*https?://.*", fields.missing
    )
    assert fields.resolve()["content"] == {"absent": name}, "a run with it can be planned all the same"
    (tmp_path / data_root / "beir" / name).mkdir(parents=True)
    assert fields.missing is None
    with pytest.raises(EncoreError, match="corpus"):
        fields.resolve()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"expected": {"queries.other": 1}}, "not counted"),
        ({"valid_queries": 1, "splits": {"test": {"role": "test"}}}, "holds out training queries"),
        ({"splits": {"test": {"role": "test", "prefix": "a b"}}, "valid_queries": None}, "prefix"),
    ],
)
def test_an_entry_is_checked(wrong, says):
    with pytest.raises(ValueError, match=says):
        fields_of(**wrong)


def test_terms_and_titles_change_no_folder():
    assert fields_of().resolve() == fields_of(licence="other", terms="https://example.org/other").resolve()
