"""The configuration of docs/real-data.md plans its tables from files of the form that the page describes."""

import gzip
import json
import lzma
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.figures.plan import curves_plan
from encore.products.targets import everything_declared
from tests.support.small_dump import Wiki, write

ROOT = Path(__file__).parents[3]
RUN = ROOT / "benchmarks/real-data.yaml"
PAGE = (ROOT / "docs/real-data.md").read_text()


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        file.write(text)


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The run's content, with one row in every file that it names, below another folder than ``data``."""
    monkeypatch.chdir(ROOT)
    content = yaml.safe_load(RUN.read_text().replace("data/", f"{tmp_path}/"))
    qrels = "query-id\tcorpus-id\tscore\n1\t1\t1\n"
    for name in ("cranfield", "cacm", "msmarco-dl19-sample5k"):
        put(tmp_path / name / "corpus.jsonl.gz", '{"_id": "1", "title": "", "text": "wing"}\n')
        put(tmp_path / name / "queries.jsonl.gz", '{"_id": "1", "text": "wing"}\n')
        for file in ("qrels/test.tsv", "extra/qrels.binary-all.tsv", "extra/qrels.gain.tsv"):
            put(tmp_path / name / file, qrels)
    article = {"id": "A", "title": "A", "sections": [{"heading": "", "paragraphs": ["An A is a letter."]}], "links": []}
    (tmp_path / "wikipedia-wikispeedia").mkdir()
    with lzma.open(tmp_path / "wikipedia-wikispeedia/articles.jsonl.xz", "wt") as file:
        file.write(json.dumps(article) + "\n")
    (tmp_path / "wikipedia-enwiki-xml-mini").mkdir()
    write(tmp_path / "wikipedia-enwiki-xml-mini/enwiki-minidump.xml.bz2", [Wiki("A", "An A is a letter.")])
    put(tmp_path / "squad-v1.1-dev/dev-v1.1.json", '{"data": []}')
    return content


@pytest.fixture
def plan(given: dict[str, Any]) -> Plan:
    return load_plan(RUN, given)


def test_every_table_of_the_page_is_planned(plan: Plan) -> None:
    named = set(re.findall(r"results/tables/(real/[\w-]+)\.csv", PAGE))
    assert named == set(plan.config.tables)
    assert {f"results/tables/{name}.csv" for name in named} <= set(everything_declared(plan))


def test_what_is_learned_from_and_searched_are_the_real_files(plan: Plan) -> None:
    learned = {name for row in curves_plan(plan).dumped()["rows"] for name in row["step"].split("+")}
    assert {"ict", "bfs", "wlp", "ict-bfs-wlp", "mlm", "bow", "cpdae", "costa"} <= learned
    assert plan.resolve.dataset("wikipedia").name == "wikispeedia"
    tables = (plan.catalogue.tables[name] for name in plan.config.tables)
    searched = {plan.resolve.dataset(column.dataset).name for table in tables for column in table.columns}
    assert searched == {"cranfield", "cacm", "dl19-sample", "squad-dev"}


def test_a_folder_that_was_not_filled_is_named(given: dict[str, Any]) -> None:
    given["datasets"]["cacm"]["path"] = "data/nowhere"
    with pytest.raises(EncoreError, match="data/nowhere"):
        everything_declared(load_plan(RUN, given))


def test_the_page_names_every_path_of_the_run_with_a_digest() -> None:
    datasets = yaml.safe_load(RUN.read_text())["datasets"]
    folders = {Path(fields["path"]).parts[1] for fields in datasets.values()}
    described = {line for line in PAGE.splitlines() if re.search(r"`[0-9a-f]{12}", line)}
    assert {"cranfield", "cacm"} <= folders
    assert [folder for folder in folders if not any(f"`{folder}" in line for line in described)] == []
