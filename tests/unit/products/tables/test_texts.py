"""Counts of texts in the notes below a table: copies, passages that are cut, unknown tokens."""

import json
from pathlib import Path

import numpy as np
import pytest

from encore.errors import EncoreError
from encore.products.catalogue import load_plan
from encore.products.kinds import BY_RULE
from encore.products.tables.footnotes import _thresholds
from encore.products.tables.layout import Layout
from encore.products.tables.plan import table_plan
from encore.products.tables.texts import SearchedTexts

CONFIG = Path(__file__).parents[4] / "config"


def texts(folder: Path, ignore_copies: bool = True, **counts: int | str) -> SearchedTexts:
    tokens = folder / "tokens"
    tokens.mkdir()
    np.save(tokens / "passages.offsets.npy", np.array([0, 62, 125, 130]))
    manifest = {"stage": "", "spec": {}, "inputs": {}, "outputs": {}}
    found = {tokens: {"tokens_in_passages": 130, "unknown_share_in_queries": 0.123}}
    found[folder] = {"passages": 3, "queries": 2000, **counts}
    for place, results in found.items():
        (place / "manifest.json").write_text(json.dumps({**manifest, "results": results}))
    return SearchedTexts(
        dataset="own",
        collection=str(folder),
        ignore_copies=ignore_copies,
        tokens=[(str(tokens), 64), (str(tokens), 80)],
    )


def test_what_is_counted_is_said(tmp_path: Path) -> None:
    own = texts(tmp_path, repeated_passages=2, repeated_queries=1200)
    assert list(own.notes()) == [
        "own: 2 of 3 passages and 1,200 of 2,000 queries repeat the text of an earlier one; copies of what is relevant "
        "are no negatives.",
        "own: models read 64 tokens of a passage, and 1 of 3 are longer.",
        "own: 12.3% of the tokens of queries are unknown to the vocabulary.",
    ]


def test_another_language_is_noted(tmp_path: Path) -> None:
    first = next(iter(texts(tmp_path, language_of_queries="en, fr").notes()))
    assert first == "own: its queries are in en, fr, and BM25 reads them as another language."


def test_copies_that_may_be_negatives_are_said(tmp_path: Path) -> None:
    first = next(iter(texts(tmp_path, ignore_copies=False, repeated_queries=3).notes()))
    assert first.startswith("own: 3 of 2,000 queries repeat")
    assert first.endswith("may be negatives, unless the dataset has `ignore_copies: true`.")


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    own = texts(tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(EncoreError, match=r"manifest\.json is missing"):
        list(own.notes())


def test_a_table_reads_the_texts_of_its_datasets_but_not_of_encores_own() -> None:
    plan = load_plan(CONFIG / "paper.yaml")
    content = table_plan(plan, "table1").dumped()
    (own,) = content["texts"]
    assert own["dataset"] == "msmarco-passage-titles"
    assert all(length > 64 for _, length in own["tokens"])
    assert f"{own['collection']}/manifest.json" in BY_RULE["table"].reads(table_plan(plan, "table1"), "table1")
    assert "texts" not in table_plan(load_plan(CONFIG / "nano.yaml"), "table1").dumped()


def test_the_least_relevant_grade_is_named_for_every_measure_that_has_one() -> None:
    plan = load_plan(CONFIG / "paper.yaml")

    def said(table: str) -> list[str]:
        return list(_thresholds(Layout.model_validate(table_plan(plan, table).dumped())))

    assert said("tct_colbert/table1") == [], "of no measure with rel"
    graded = "R@1000 (DL19): relevant are grades from 2 on of msmarco-passage-titles."
    assert said("costa/table1")[-1] == graded
    measures = plan.resolve.dataset("msmarco-passage-titles").fields.splits["test"].measures
    measures |= {name: expression.replace("@", "(rel=1)@") for name, expression in measures.items()}
    assert said("table1") == ["MRR@10, R@100, R@1000: relevant are grades from 1 on of msmarco-passage-titles."]
