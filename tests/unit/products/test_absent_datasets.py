"""Datasets that nothing stands for at a scale: columns stay empty with the reason, means are over the others."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.products.tables.entries import Table
from encore.products.tables.plan import table_plan
from encore.products.tables.sources.measures import MeanSource
from encore.products.targets import lineage_targets
from tests.support.shipped import run_file

ROOT = Path(__file__).parents[3]
NANO = run_file("nano")
REASON = "it is too large for a day"
SETS = ["beir-fever", "beir-fiqa", "beir-nq", "beir-quora"]


def column(name: str) -> dict[str, Any]:
    return {"id": name, "label": name.upper(), "dataset": name, "split": "test", "measure": "nDCG@10"}


@pytest.fixture
def make(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plan]:
    """Nano with a table of four sets and two means, where some sets are absent."""
    monkeypatch.chdir(ROOT)

    def plan(*absent: str, **scale: Any) -> Plan:
        kept = copy.deepcopy(catalogue)
        columns = [column(name) for name in SETS]
        columns += [
            {"id": "two", "label": "TWO", "mean_of": SETS[:2]},
            {"id": "all", "label": "ALL", "mean_of": ["two", *SETS[2:]]},
        ]
        rows = [{"id": "bm25", "label": "BM25", "system": "bm25"}]
        kept.tables["t"] = Table.model_validate({"title": "T", "rows": rows, "columns": columns})
        content = copy.deepcopy(NANO) | {"tables": {"t": "all"}}
        here = {name: name for name in SETS if name not in absent}
        content["scale"]["datasets"] |= here
        content["scale"] |= {"absent": dict.fromkeys(absent, REASON), **scale}
        return Plan(RunConfig.model_validate(content), kept)

    return plan


def over(plan: Plan) -> dict[str, list[str]]:
    return {
        column["id"]: column["mean_of"] for column in table_plan(plan, "t").dumped()["columns"] if column["mean_of"]
    }


def test_a_whole_table_has_nothing_to_say_of_absence(make: Callable[..., Plan]) -> None:
    plan = make()
    assert over(plan) == {"two": SETS[:2], "all": ["two", *SETS[2:]]}
    assert table_plan(plan, "t").dumped()["notes"] == []
    (row,) = table_plan(plan, "t").dumped()["rows"]
    assert all(row["cells"][name]["reads"] for name in SETS)


def test_an_absent_set_is_empty_with_one_note_for_each_reason_and_is_never_planned(make: Callable[..., Plan]) -> None:
    plan = make("beir-fever", "beir-quora")
    (row,) = table_plan(plan, "t").dumped()["rows"]
    assert [name for name in SETS if not row["cells"][name]["reads"]] == ["beir-fever", "beir-quora"]
    assert f"BEIR-FEVER, BEIR-QUORA are not testable here: {REASON}." in table_plan(plan, "t").dumped()["notes"]
    assert not [folder for folder in plan.made if "beir-fever" in folder or "beir-quora" in folder]
    assert [folder for folder in plan.made if "beir-nq" in folder]
    assert "beir-fever" not in plan.resolve.datasets.in_use()
    assert not [path for path in lineage_targets(plan, "bm25") if "beir-fever" in path]


def test_a_mean_is_over_the_sets_that_are_there_and_says_so(make: Callable[..., Plan]) -> None:
    plan = make("beir-fever", "beir-quora")
    assert over(plan) == {"two": ["beir-fiqa"], "all": ["two", "beir-nq"]}
    columns = {column["id"]: column.get("partial", False) for column in table_plan(plan, "t").dumped()["columns"]}
    assert {name for name, partial in columns.items() if partial} == {"two", "all"}
    assert [note for note in table_plan(plan, "t").dumped()["notes"] if "mean" in note] == [
        "TWO is the mean of 1 of 2 columns here; a number printed next to it is of all.",
        "ALL is the mean of 2 of 3 columns here; a number printed next to it is of all.",
    ]


def test_a_mean_of_absent_sets_alone_is_absent_too(make: Callable[..., Plan]) -> None:
    assert over(make(*SETS[:2])) == {"two": SETS[:2], "all": SETS[2:]}
    assert over(make(*SETS)) == {"two": SETS[:2], "all": ["two", *SETS[2:]]}
    assert MeanSource().values(None, dict.fromkeys(SETS)) is None  # type: ignore[arg-type]  # it asks nothing


@pytest.mark.parametrize(
    ("scale", "says"),
    [
        ({"absent": {"beir-fevr": "no"}}, "scale.absent: unknown name 'beir-fevr'; did you mean beir-fever"),
        (
            {"absent": {"msmarco-passage": "no"}},
            "scale.absent: 'msmarco-passage' has a replacement under `datasets`; leave one of the two out",
        ),
    ],
)
def test_what_is_absent_has_a_name_and_no_stand_in(make: Callable[..., Plan], scale: Any, says: str) -> None:
    with pytest.raises(EncoreError, match=says):
        make(**scale)


def test_what_a_scale_that_replaces_datasets_does_not_name_is_absent_without_a_reason_of_its_own(
    make: Callable[..., Plan],
) -> None:
    plan = make(datasets={"beir-fiqa": "pydocs-numpy", "beir-nq": "beir-nq"})
    (row,) = table_plan(plan, "t").dumped()["rows"]
    assert [name for name in SETS if row["cells"][name]["reads"]] == ["beir-fiqa", "beir-nq"]
    assert (
        "BEIR-FEVER, BEIR-QUORA are not testable here: nothing stands for it at this scale."
        in (table_plan(plan, "t").dumped()["notes"])
    )
    assert plan.resolve.datasets.absence("pydocs-sympy") is None, "every installation has it"
    assert make(datasets={}).resolve.datasets.absence("beir-quora") is None, "the papers' own scale"


def test_a_group_of_reasons_is_of_what_nothing_replaces(make: Callable[..., Plan]) -> None:
    groups = {"beir-*": "no room", "{beir-nq,simcse-released}": "no room either"}
    with pytest.raises(EncoreError, match=r"'beir-\*' and '\{beir-nq,simcse-released\}' both give 'beir-nq' a reason"):
        make(absent=groups, datasets={"wikipedia": "pydocs"})
    here = {"beir-fiqa": "pydocs-numpy"}
    resolve = make(absent={"beir-*": "no room", "beir-nq": "no time"}, datasets=here).resolve
    reasons = {name: resolve.datasets.absence(name) for name in ("beir-fever", "beir-nq", "beir-fiqa")}
    assert reasons == {"beir-fever": "no room", "beir-nq": "no time", "beir-fiqa": None}


@pytest.mark.parametrize(
    ("section", "entries", "says"),
    [
        ("steps", {"{ict,btp}": {}}, "scale.steps: unknown name 'btp'; did you mean"),
        ("steps", {"icd-*": {}}, r"scale.steps: unknown name 'icd-\*'"),
        ("steps", {"{ict,{bfs}}": {}}, "scale.steps: unknown name"),
        ("steps", {"ic{t": {}}, "scale.steps: unknown name"),
        ("absent", {"bier-*": "no"}, r"scale.absent: unknown name 'bier-\*'"),
        ("absent", {"{beir-fever,beir-fvr}": "no"}, "scale.absent: unknown name 'beir-fvr'"),
        ("absent", {"{trivia-qa,wikipedia}": "no"}, "'wikipedia' has a replacement under `datasets`"),
        (
            "steps",
            {"{ict,bfs}": {"steps": 3}, "{bfs,wlp}": {"steps": 4}},
            "both give 'bfs' a steps; take it out of one of them",
        ),
        ("figures", {"bow/figure*": {"lenght": 3}}, "scale.figures: bow/figure.*lenght: unknown key; did you mean"),
        ("figures", {"bow/figure{2,9}": {}}, "scale.figures: unknown name 'bow/figure9'; did you mean bow/figure"),
        ("systems", {"hybrid*": {"depht": 3}}, "scale.systems: hybrid.*depht"),
    ],
)
def test_a_wrong_group_is_told_in_one_line(section: str, entries: Any, says: str, make: Callable[..., Plan]) -> None:
    with pytest.raises(EncoreError, match=says) as refused:
        make(**{section: entries})
    assert "\n" not in str(refused.value)


def test_a_step_of_its_own_is_applied_after_its_groups_in_any_order(make: Callable[..., Plan]) -> None:
    groups = {"ict": {"batch": 4}, "{ict,bfs}": {"batch": 8, "length": 40}, "*-two-tower": {"batch": 2}}
    for entries in (groups, dict(reversed(groups.items()))):
        steps = make(steps=entries).config.scale.steps
        assert steps["ict"] == {"batch": 4, "length": 40}
        assert steps["bfs"] == {"batch": 8, "length": 40}
        assert steps["mlm-two-tower"] == {"batch": 2}
