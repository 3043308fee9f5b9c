"""From a cell to bytes: the chain is whole, each artifact is told once, and what is named wrongly is refused."""

import json
from pathlib import Path

import pytest

from encore.commands import chain
from encore.errors import EncoreError
from encore.plan.artifact import upstream
from encore.products import explained
from encore.products.catalogue import load_plan
from encore.products.explained import explanations
from encore.products.tables.grid import CellRequest
from encore.products.tables.layout import Layout
from encore.storage import manifest
from encore.storage.manifest import record


@pytest.fixture(scope="module")
def plan():
    return load_plan(Path("config/nano.yaml"))


def test_the_chain_is_all_that_is_behind_a_cell_and_ends_with_texts(plan):
    (cell,) = explanations(plan, "results/tables/costa/table1.csv", "COSTA", "MRR@10", "BM25 negatives")
    links = list(chain.of_reads(plan, cell.reads))
    scores = [plan.find(read.folder) for read in cell.reads]
    own = [link.artifact.folder for link in links if not link.again]
    assert len(own) == len(set(own))
    assert set(own) == {artifact.folder for artifact in upstream(scores)}
    assert all(link.artifact.stage.startswith("collection") for link in links if not link.artifact.inputs)
    assert {link.depth for link in links if link.role.startswith("reads")} == {0}


def test_a_row_of_several_settings_is_told_under_each(plan):
    cells = explanations(plan, "results/tables/costa/table1.csv", "COSTA", "MRR@10")
    assert [cell.address["setting"] for cell in cells] == ["BM25 negatives", "Static hard negatives"]
    stages = [{link.artifact.stage for link in chain.of_reads(plan, cell.reads)} for cell in cells]
    assert all({"evaluate", "search", "finetune", "pretrain.costa", "negatives"} <= each for each in stages)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("costa/tabel1", "COSTA", "MRR@10", None), "no table 'costa/tabel1'; did you mean"),
        (("costa/table1", "COSTAR", "MRR@10", None), "no row 'COSTAR'; did you mean"),
        (("costa/table1", "COSTA", "MRR@11", None), "no column 'MRR@11'; did you mean"),
        (("costa/table1", "COSTA", "MRR@10", "Mined"), "'Static hard negatives', not under 'Mined'"),
    ],
    ids=["table", "row", "column", "setting"],
)
def test_what_is_named_wrongly_is_refused(plan, asked, message):
    with pytest.raises(EncoreError, match=message):
        explanations(plan, *asked)


def test_a_copied_row_says_whose_it_is(plan):
    (cell,) = explanations(plan, "costa/table1", "deepct", "mrr10")
    assert "copied from Dai and Callan 2019" in "\n".join(cell.lines)


def test_a_mean_and_a_gain_stand_on_what_they_are_made_of():
    plan = load_plan(Path("config/nano-papers.yaml"))
    cells = {name: explanations(plan, "bow/table6", "bow-30", name)[0] for name in ("average", "gain", "nfcorpus")}
    read = {
        name: {link.artifact.folder for link in chain.of_reads(plan, cell.reads) if link.depth == 0}
        for name, cell in cells.items()
    }
    baseline = {one.folder for one in explanations(plan, "bow/table6", "baseline", "nfcorpus")[0].reads}
    assert read["average"] == read["nfcorpus"] != set()  # of BEIR's sets nano has a stand-in for one
    assert read["gain"] == read["average"] | baseline != read["average"]


def test_a_recorded_number_names_its_file(plan, monkeypatch):
    recorded = {("bm25", "mrr10"): CellRequest(record="README.md")}
    monkeypatch.setattr(Layout, "upstream", lambda *_: recorded)
    (cell,) = explanations(plan, "costa/table1", "bm25", "mrr10")
    assert "recorded in README.md, sha256 " in "\n".join(cell.lines)
    assert cell.address["records"] == ["README.md"]


def test_what_was_made_is_told_with_its_digest_its_cost_and_its_command(plan, tmp_path, monkeypatch):
    (cell,) = explanations(plan, "costa/table1", "bm25", "mrr10")
    monkeypatch.chdir(tmp_path)
    (scores,) = (plan.find(read.folder) for read in cell.reads)
    folder = Path(scores.folder)
    folder.mkdir(parents=True)
    with record(folder, stage="evaluate", spec=scores.spec, inputs=[]):
        (folder / "scores.parquet").write_bytes(b"twelve bytes")
    first = next(iter(chain.of_reads(plan, cell.reads)))
    assert first.size == 12
    assert first.digest == manifest.describe(folder / "manifest.json")["sha256"]
    said = "\n".join([cell.title, *cell.lines, *chain.chain_text(list(chain.of_reads(plan, cell.reads)))])
    assert said.startswith("costa/table1: BM25 [Traditional], MRR@10\n")
    assert f"1 file, 12 bytes, manifest sha256 {first.digest}" in said
    assert "\n  commit " in said
    assert "\n  $ " in said
    assert "not made yet" in said  # the run behind the scores
    data = chain.chain_json(chain.of_reads(plan, cell.reads))
    assert json.loads(json.dumps(data))[0]["manifest_sha256"] == first.digest


def test_a_tree_counts_each_artifact_once_and_says_which_are_verified(plan, tmp_path, monkeypatch):
    (cell,) = explanations(plan, "costa/table1", "COSTA", "MRR@10", "BM25 negatives")
    links = list(chain.of_reads(plan, cell.reads))
    monkeypatch.chdir(tmp_path)
    lines = chain.chain_tree(chain.of_reads(plan, cell.reads))
    assert 8 <= len(lines) <= 20, lines
    stages = {line.strip().partition(":")[0] for line in lines[:-1]}
    assert stages == {link.artifact.stage for link in links}
    assert all(line.endswith(" not made yet)") for line in lines[:-1])
    assert lines[-1].startswith(f"{len({link.artifact.folder for link in links})} folders, 0 bytes; ")
    texts = next(link.artifact for link in links if not link.artifact.inputs)
    with record(Path(texts.folder), stage=texts.stage, spec=texts.spec, inputs=[]):
        Path(texts.folder, "collection.jsonl").write_bytes(b"twelve bytes")
    told = [line.strip() for line in chain.chain_tree(chain.of_reads(plan, cell.reads))]
    assert f"{texts.stage}: {texts.folder} (12 bytes, verified)" in told
    Path(texts.folder, "collection.jsonl").write_bytes(b"other  bytes")
    told = [line.strip() for line in chain.chain_tree(chain.of_reads(plan, cell.reads))]
    assert any(line.startswith(f"{texts.stage}: {texts.folder} (12 bytes, NOT VERIFIED: ") for line in told)


def test_what_the_table_shows_is_read_from_it(tmp_path, monkeypatch):
    address = "costa/table1", "Traditional", "bm25", "mrr10"
    monkeypatch.chdir(tmp_path)
    assert explained.shown_in(*address) == ""
    table = Path("results/tables/costa/table1.csv")
    table.parent.mkdir(parents=True)
    header = "row,setting,column,reported,reproduced,sd,seeds"
    table.write_text(f"{header}\nbm25,Traditional,r1000,0.8,0.7,,\nbm25,Traditional,mrr10,0.187,0.43,,\n")
    assert explained.shown_in(*address) == "ours 0.43, paper's 0.187"
    table.write_text("row,setting\nbm25,Traditional\n")
    with pytest.raises(EncoreError, match=r"table1.csv has no column column, reproduced, sd, seeds, reported"):
        explained.shown_in(*address)


def test_a_cell_says_what_its_table_shows(plan, monkeypatch):
    monkeypatch.setattr(explained, "shown_in", lambda *address: f"ours 0.5 at {'/'.join(address)}")
    (cell,) = explanations(plan, "costa/table1", "bm25", "mrr10")
    assert cell.lines == ["shows ours 0.5 at costa/table1/Traditional/bm25/mrr10"]
