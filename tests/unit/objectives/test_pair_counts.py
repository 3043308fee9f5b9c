"""Counts of pairs: by hand, the same at every run, of one step whatever else it says, and as columns of a table."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore import objectives
from encore.config.run import RunConfig
from encore.config.validation import checked, read_yaml
from encore.errors import EncoreError
from encore.objectives.inspection import pretraining
from encore.objectives.inspection.pretraining import count_pairs
from encore.plan.artifacts.inspections import pairs
from encore.plan.plan import Plan
from encore.products.tables import formats
from tests.support import inside, small_store
from tests.support.small_table import lines_of, notes_of, table_of, write_artifact
from tests.support.small_table import plan as small_plan

STEP: dict[str, Any] = {
    "kind": "pretrain",
    "collection": "made-up",
    "steps": 1,
    "batch": 2,
    "learning_rate": 1.0,
    "length": 40,
    "query_length": 8,
    "titles": True,
}


def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Any, **fields: Any) -> dict[str, Any]:
    monkeypatch.setattr(pretraining, "TokenStore", lambda path: store)
    return count_pairs(objectives.fields(STEP | fields), tmp_path, tmp_path)


def articles(*texts: Any, **fields: Any) -> Any:
    return small_store.store(texts, **fields)


def test_pairs_and_their_tokens_are_those_counted_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One article: an introduction of one sentence of 9 pieces, then two sections, of 5 and of 4 + 4 pieces."""
    store = articles([[[20] * 9], [[21] * 5], [[22] * 4, [23] * 4]], links=[(1, 2)], titles=[[10, 11]])
    bfs = counted(tmp_path, monkeypatch, store, objective="bfs")
    # A query is cut to 8 - 2 pieces; a document has the two pieces of its title.
    assert bfs == {"pairs": 2, "tokens": 2 * 6 + 7 + 10, "query_tokens": 6.0, "document_tokens": 8.5}
    ict = counted(tmp_path, monkeypatch, store, objective="ict")
    assert ict == {"pairs": 1, "tokens": 4 + 6, "query_tokens": 4.0, "document_tokens": 6.0}
    wlp = counted(tmp_path, monkeypatch, store, objective="wlp", titles=False)
    assert wlp == {"pairs": 1, "tokens": 4 + 5, "query_tokens": 4.0, "document_tokens": 5.0}
    assert json.loads((tmp_path / "pairs.json").read_text()) == wlp


def test_counts_are_sums_over_examples_and_the_same_bytes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    texts = [[[[20] * int(n) for n in rng.integers(1, 6, size=4)] for _ in range(5)] for _ in range(20)]
    store = articles(*texts)
    found = counted(tmp_path, monkeypatch, store, objective="ict", titles=False)
    before = (tmp_path / "pairs.json").read_bytes()
    assert found["pairs"] == 100
    # Whatever sentence is drawn, a pair of ICT without titles has all pieces of its chunk.
    assert found["tokens"] == sum(len(sentence) for text in texts for section in text for sentence in section)
    assert found["query_tokens"] + found["document_tokens"] == pytest.approx(found["tokens"] / 100)
    counted(tmp_path, monkeypatch, store, objective="ict", titles=False)
    assert (tmp_path / "pairs.json").read_bytes() == before


def test_a_collection_without_pairs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EncoreError, match="wlp needs links"):
        counted(tmp_path, monkeypatch, articles([[[20] * 5], [[21] * 5]]), objective="wlp")


@pytest.fixture
def plan(catalogue: Any, at_the_root: None) -> Plan:
    return Plan(checked(RunConfig, read_yaml(Path("config/nano.yaml")), "nano"), catalogue)


def test_only_what_decides_the_pairs_decides_the_folder(plan: Plan) -> None:
    made = pairs(plan, plan.resolve.lineage("two-tower+ict"))
    assert made.folder.startswith("results/pairs/pydocs-stdlib.ict-")
    assert pairs(plan, plan.resolve.lineage("two-tower+ict~temperature=0.3")).folder == made.folder
    assert pairs(plan, plan.resolve.lineage("two-tower+ict~titles=false")).folder != made.folder
    assert plan.find(made.folder) is made
    with pytest.raises(EncoreError, match=r"'mlm' has no pairs to learn from; name ict, bfs or wlp"):
        pairs(plan, plan.resolve.lineage("bert-base+mlm"))


def test_a_table_shows_counts_and_says_of_what(tmp_path: Path) -> None:
    content = {"pairs": 1234, "tokens": 20000, "query_tokens": 5.25, "document_tokens": 7.0}
    reads = [{"seed": None, "folder": write_artifact(tmp_path / "pairs", "pairs.json", content)}]
    table = small_plan(tmp_path, seeds=1)
    for key in ("pairs", "query_tokens"):
        table["columns"].append({"id": key, "label": key, "source": "pairs"})
        for row in table["rows"]:
            row["cells"][key] = {"value": key, "reads": reads} if row["id"] == "ict" else {}
    lines = lines_of(tmp_path, table_of(table))
    assert lines["ict", "pairs of an epoch"]["reproduced"] == "1234.0"
    assert lines["ict", "query_tokens of an epoch"]["reproduced"] == "5.25"
    assert lines["mlm", " of an epoch"]["reproduced"] == ""
    shown = table_of(table)
    assert "1,234" in formats.render(shown, "md")
    assert [note for note in notes_of(shown) if note.startswith("pairs, query_tokens: of one epoch of the step")]


def test_the_program_says_what_it_lacks_in_one_line(tmp_path: Path) -> None:
    done = inside.make("count_pairs", {"step": STEP | {"objective": "ict"}}, {"tokens": tmp_path / "t"}, tmp_path / "p")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
