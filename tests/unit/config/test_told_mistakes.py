"""Mistakes in what users write, told in one line with file and place before any job is planned."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from encore import objectives
from encore.config.datasets import Split, parse_measure
from encore.config.finetuning import FinetuneStep
from encore.config.run import RunConfig
from encore.config.run_file import read_run
from encore.config.systems import WeightGrid
from encore.config.validation import checked, load_yaml, read_yaml, refuse_odd_name
from encore.datasets import kinds
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue, read_dataset
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.tables.entries import Table
from encore.products.targets import everything_declared

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("depth: 1\nseeds: [0]\ndepth: 2\n", r"run\.yaml, line 3: the key `depth` is there twice"),
        ("scale:\n  steps:\n    mlm: {steps: 1, steps: 2}\n", r"run\.yaml, line 3: the key `steps` is there twice"),
        ("a: [{b: 1, b: 1}]\n", r"run\.yaml, line 1: the key `b` is there twice"),
        ("a: &x {b: 1}\nc: *y\n", r"run\.yaml is not YAML: .*undefined alias.*line 2"),
        ("a: [1\nb: 2\n", r"run\.yaml is not YAML: .*line 2"),
        ("a:\tb:\n\tc", r"run\.yaml is not YAML: .*line [12]"),
        (
            "depth: 0200\n",
            r"run\.yaml, line 1: YAML reads 0200 as 128; write the number without a leading 0 or a colon",
        ),
        ("a: 1\nseeds: [1, 1:30]\n", r"run\.yaml, line 2: YAML reads 1:30 as 90; write"),
        ("a: !!python/object/apply:os.system ['true']\n", r"run\.yaml is not YAML: .*line 1"),
        ("a: \0\n", r"run\.yaml is not YAML: "),
        ("a: 2026-13-45\n", r"run\.yaml is not YAML: month must be in 1\.\.12"),
        ("? [a]\n: 1\n", r"run\.yaml is not YAML: .*unhashable.*line 1"),
        ("a: " + "x" * 1_000_000, r"run\.yaml has more than 1,000,000 bytes"),
        ("", r"run\.yaml must hold a mapping"),
        ("- a\n", r"run\.yaml must hold a mapping"),
        ("a: é".encode("latin-1"), r"run\.yaml is not YAML: .*utf-8"),
        ("a: 1".encode("utf-16"), r"run\.yaml is not YAML: .*utf-8"),
    ],
)
def test_broken_yaml_is_one_line_with_file_and_line(text: str | bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(EncoreError, match=says) as refused:
        read_yaml(path)
    assert "\n" not in str(refused.value)


def test_a_folder_in_place_of_a_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="cannot be read: Is a directory"):
        read_yaml(tmp_path)


def test_keys_of_different_mappings_merges_and_aliases_are_read(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("[0, -0.5, 0x1F, '0200', 1e3, 2026-01-02, 12:30 h]")
    assert load_yaml(tmp_path / "b.yaml")[:4] == [0, -0.5, 31, "0200"]
    text = "a: {in: &y {b: 1, c: 2}, and: &x {<<: *y, b: 4}}\nd: {<<: *x, b: 3}\ne: [*x, *x]\n1: 0\n'1': 0\n"
    (tmp_path / "a.yaml").write_text(text)
    assert load_yaml(tmp_path / "a.yaml") == {
        "a": {"in": {"b": 1, "c": 2}, "and": {"b": 4, "c": 2}},
        "d": {"b": 3, "c": 2},
        "e": [{"b": 4, "c": 2}] * 2,
        1: 0,
        "1": 0,
    }


def test_what_snakemake_has_read_is_looked_at_again_for_keys_that_are_there_twice(
    tmp_path: Path, nano_config: dict[str, Any]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text((ROOT / "config/nano.yaml").read_text() + "\ntitle: another\n")
    with pytest.raises(EncoreError, match=r"run\.yaml, line \d+: the key `title` is there twice"):
        read_run(path, nano_config)
    path.unlink()
    assert read_run(path, nano_config).title == nano_config["title"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seeds": [True]}, "seeds: must be a number, not true or false"),
        ({"depth": True}, "depth: must be a number, not true or false"),
        ({"numerics": {"threads": True}}, r"numerics: threads: must be a number, not true or false"),
        ({"execution": {"shards": {"pydocs": False}}}, r"execution: shards: must be a number, not true or false"),
        ({"limits": {"gpu_hours": True}}, r"limits: gpu_hours: must be a number, not true or false"),
        ({"seeds": [2**32]}, "seeds must be different, not negative, and 4294967295 at most"),
        ({"depth": 10**30}, "depth: 1000000000000000000000000000000 ranks are more than 1000000"),
        ({"execution": {"shards": 10**9}}, r"execution\.shards: more than 10000 parts"),
        ({"execution": {"shards": {"pydocs": 100_000}}}, r"execution\.shards: more than 10000 parts"),
    ],
)
def test_a_run_within_reason(change: dict[str, Any], says: str, nano_config: dict[str, Any]) -> None:
    with pytest.raises(EncoreError, match=says) as refused:
        checked(RunConfig, nano_config | change, "config/nano.yaml")
    assert str(refused.value).startswith("config/nano.yaml")
    assert "\n" not in str(refused.value)


ODD = ["my set", "données", "", "mine@x", "{x}", "a\nb", "../../evil", "x; touch y", "..", "-rf"]
ODD += ["mine+x", "a=b", "n" * 81]


@pytest.mark.parametrize("name", ODD)
def test_a_dataset_is_called_what_a_folder_can_be(name: str, nano_config: dict[str, Any]) -> None:
    datasets = {name: {"kind": "beir", "path": "x", "splits": {}}}
    with pytest.raises(EncoreError, match=r"datasets: '.*'…? cannot be the name of a dataset; begin with") as refused:
        checked(RunConfig, nano_config | {"datasets": datasets}, "run.yaml")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["Mine", "CORD-19", "n" * 80])
def test_a_dataset_of_ones_own_may_have_capitals(name: str, nano_config: dict[str, Any]) -> None:
    datasets = {name: {"kind": "beir", "path": "x", "splits": {}}}
    assert name in checked(RunConfig, nano_config | {"datasets": datasets}, "run.yaml").datasets
    with pytest.raises(EncoreError, match="cannot be the name of an entry"):
        refuse_odd_name("Mine", "an entry")


@pytest.mark.parametrize("name", ["../../escaped", "dev/small", "", "a\nb", "n" * 81])
def test_a_split_is_called_what_a_file_can_be(name: str) -> None:
    fields = {"kind": "beir", "path": "x", "splits": {name: {"role": "test"}}}
    with pytest.raises(ValueError, match="cannot be the name of a split, which files have"):
        read_dataset(fields)


def test_a_split_shares_the_queries_of_one_that_is_there() -> None:
    splits = {"test": {"role": "test"}, "graded": {"role": "test", "topics": "tset"}}
    with pytest.raises(ValueError, match=r"splits\.graded\.topics: no split 'tset'; did you mean test"):
        read_dataset({"kind": "beir", "path": "x", "splits": splits})


def test_an_entry_of_the_catalogue_is_called_so_too(tmp_path: Path) -> None:
    for name in ("a", "msmarco-passage", "bert_base.2", "1"):
        refuse_odd_name(name, "an entry")
    for wrong in (None, 5, True):
        with pytest.raises(EncoreError, match="cannot be the name of an entry"):
            refuse_odd_name(wrong, "an entry")


@pytest.mark.parametrize(
    ("wrong", "right"), [("ndcg@10", "nDCG@10"), ("mrr@10", "RR@10"), ("Map", "AP"), ("r@5", "R@5")]
)
def test_a_measure_in_other_letters_is_refused_with_the_right_ones(wrong: str, right: str) -> None:
    with pytest.raises(EncoreError, match=f"measure '{wrong}' is spelt '{right}' here"):
        parse_measure(wrong)


def test_a_measure_is_shown_by_a_name_of_its_cutoff() -> None:
    split = {"role": "test", "measures": {"RR@10": "RR@10", "Hits@5": "Success@5", "MRR at ten": "RR@10", "MAP": "AP"}}
    assert Split.model_validate(split)
    split["measures"] = {"RR@10": "R@5"}
    with pytest.raises(ValueError, match="'RR@10' would be shown for R@5, which counts to another rank; correct one"):
        Split.model_validate(split)


@pytest.mark.parametrize("measure", ["RRR@10", "", "__import__('os')", "RR@", "nDCG(rel=2)@10", "R"])
def test_an_unknown_measure_is_refused_before_any_training(measure: str) -> None:
    fields = {"kind": "beir", "path": "x", "splits": {"test": {"role": "test", "measures": {"RR@10": measure}}}}
    with pytest.raises(ValueError, match=r"splits\.test\.measures\n.*'RR@10': measure .* (is unknown|needs|has no)"):
        read_dataset(fields)
    with pytest.raises(EncoreError):
        parse_measure(measure)


def test_two_primary_columns_of_a_split_are_refused() -> None:
    columns = [
        {"id": name, "label": name, "dataset": "d", "split": "test", "measure": "RR@10", "primary": True}
        for name in "ab"
    ]
    rows = [{"id": "r", "label": "r", "system": "bm25"}]
    others = [columns[0], columns[1] | {"dataset": "e"}]
    checked(Table, {"title": "t", "rows": rows, "columns": others}, "tables.yaml: t")
    checked(Table, {"title": "t", "rows": rows, "columns": columns[:1]}, "tables.yaml: t")
    with pytest.raises(EncoreError, match=r"columns 'a' and 'b' are both primary for d, test; let one"):
        checked(Table, {"title": "t", "rows": rows, "columns": columns}, "tables.yaml: t")


def test_a_misspelt_key_within_a_list_is_answered_with_the_nearest_one() -> None:
    row = {"id": "r", "lable": "r", "system": "bm25"}
    with pytest.raises(EncoreError, match=r"x\.yaml: rows\.0\.lable: unknown key; did you mean label"):
        checked(Table, {"title": "t", "rows": [row], "columns": []}, "x.yaml")


@pytest.mark.parametrize("name", ["ict", "bfs", "wlp", "ict_bfs_wlp", "simcse", "costa"])
def test_a_batch_of_one_without_any_negative_is_refused(name: str) -> None:
    step = {"kind": "pretrain", "objective": name, "collection": "c", "batch": 2, "learning_rate": 0.1, "length": 64}
    step |= {"steps": 1}
    objectives.fields(step)
    with pytest.raises(EncoreError, match="one alone teaches nothing"):
        objectives.fields(step | {"batch": 1})
    with pytest.raises(EncoreError, match="100000000 examples are more than 1000000"):
        objectives.fields(step | {"batch": 100_000_000})
    objectives.fields(step | {"objective": "mlm", "batch": 1})


def test_a_text_has_room_for_a_word(make: Callable[..., Plan]) -> None:
    plan = make()
    for field in ("length", "query_length"):
        with pytest.raises(EncoreError, match=rf"{field}'?: input should be greater than or equal to 3"):
            plan.resolve.step(plan.resolve.lineage(f"bert-base+ict~{field}=2").steps[0])


RUN = Path("config/nano.yaml")
TOLD: list[tuple[str, Any, str]] = [  # a place in the run's file, what is there, and what is said of it
    ("seedz", [0], "seedz: unknown key; did you mean seeds"),
    ("execution/shrads", 1, "shrads: unknown key; did you mean shards"),
    ("seeds", ["zero"], r"seeds\.0: .*'zero'"),
    ("seeds", [], "seeds"),
    ("tables/tabel1", "all", "tables.tabel1: no such table in config/papers; did you mean table1"),
    ("tables/table1", ["bm52"], r"tables.table1: no row 'bm52'; did you mean bm25\?"),
    ("figures", ["bow/figur2"], "figures.bow/figur2: no such figure in config/papers; did you mean bow/figure2"),
    ("lineages", ["bert-base+itc"], "lineage 'bert-base[+]itc': unknown step 'itc'; did you mean"),
    ("lineages", ["bert-base+ict@hsnw"], "unknown index 'hsnw', not in config/indexes.yaml; did you mean hnsw"),
    ("datasets", {"own": {"kind": "bier"}}, "datasets.own: unknown kind of dataset 'bier'; did you mean beir"),
    ("datasets", {"pydocs": {"kind": "beir"}}, "choose another"),
    ("scale/datasets/msmarco-passage", "pydocs-stdlb", "'pydocs-stdlb'; did you mean pydocs-stdlib"),
    ("scale/datasets/wikipdia", "pydocs", "did you mean wikipedia"),
    ("scale/backbones/bert-base", "tinny", "unknown name 'tinny'; did you mean tiny"),
    ("scale/backbones/bert-bse", "tiny", "did you mean bert-base"),
    ("scale/steps/itc", {}, r"unknown name 'itc'; did you mean tct or ict\?"),
    ("scale/steps/ict", {"temprature": 1}, "'ict'.*temprature.*temperature"),
    ("scale/steps/ict", {"learning_rate": float("inf")}, "learning_rate.*finite"),
]


@pytest.mark.parametrize(("place", "content", "says"), TOLD)
def test_what_a_run_says_is_told_with_its_file(
    place: str, content: Any, says: str, nano_config: dict[str, Any], catalogue: Catalogue
) -> None:
    changed = fields = deepcopy(nano_config)
    *parents, last = place.split("/")
    for parent in parents:
        fields = fields[parent]
    fields[last] = content
    with pytest.raises(EncoreError, match=says) as refused:
        everything_declared(Plan(read_run(RUN, changed), catalogue))
    assert str(refused.value).startswith("config/nano.yaml: ")
    assert "\n" not in str(refused.value)


def test_the_catalogue_is_checked_with_file_and_place(bare: Path) -> None:
    systems = Path("config/systems.yaml")
    systems.write_text(systems.read_text().replace("k1: 0.9", "kl: 0.9"))
    with pytest.raises(EncoreError, match=r"config/systems\.yaml: bm25.*kl") as refused:
        load_plan(RUN)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("field", ["steps", "learning_rate", "length", "temperature"])
def test_true_is_no_number_of_a_step(make: Callable[..., Plan], field: str) -> None:
    with pytest.raises(EncoreError, match=f"{field}: must be a number, not true or false"):
        make(steps={"ict": {field: True}})
    with pytest.raises(EncoreError, match=f"{field}: must be a number, not true or false"):
        make().resolve.lineage(f"bert-base+ict~{field}=true")


def test_a_fine_tuning_without_any_negative_is_refused() -> None:
    step = {"kind": "finetune", "collection": "c", "batch": 1, "learning_rate": 0.1, "length": 64, "steps": 1}
    FinetuneStep.model_validate(step | {"negatives": "bm25"})
    FinetuneStep.model_validate(step | {"negatives": "none", "batch": 2})
    for wrong in ({"negatives": "none"}, {"negatives": "none", "batch": 4, "in_batch_group": 1}):
        with pytest.raises(ValueError, match="one query alone teaches nothing"):
            FinetuneStep.model_validate(step | wrong)
        with pytest.raises(ValueError, match="one query alone teaches nothing"):
            FinetuneStep.model_validate(step | {"loss": "kl-in-batch", "teachers": ["parent"]} | wrong)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"teacher_scores": "t", "clusters": 3}, "read line by line; leave `clusters`"),
        ({"teacher_scores": "t", "margin_bins": 3}, "read line by line; leave `clusters`"),
        ({"teacher_scores": "t"}, "are of their own triples, .* let `negatives` be none"),
        ({"teachers": ["a+b"], "batch_teachers": ["a+b"], "batch": 1}, "let it be 2 or more"),
        ({"teachers": ["a+b"], "batch_teachers": ["a+b", "a+b"]}, "a teacher is twice"),
        ({"teachers": ["a+b", "a+b"]}, "a teacher is twice"),
    ],
)
def test_teachers_that_a_step_cannot_use_are_refused(fields: dict[str, Any], message: str) -> None:
    step = {"kind": "finetune", "collection": "c", "batch": 4, "learning_rate": 0.1, "length": 64, "steps": 1}
    step |= {"negatives": "bm25", "loss": "margin-mse"}
    FinetuneStep.model_validate(step | {"teachers": ["a+b"], "batch_teachers": ["a+b"], "clusters": 3})
    FinetuneStep.model_validate(step | {"teacher_scores": "t", "batch_teachers": ["a+b"]})
    FinetuneStep.model_validate(step | {"teacher_scores": "t", "negatives": "none"})
    with pytest.raises(ValueError, match=message):
        FinetuneStep.model_validate(step | fields)


def test_a_grid_of_weights_is_within_reason() -> None:
    with pytest.raises(ValueError, match="more than 10000 weights"):
        WeightGrid.model_validate({"from": 0, "to": 1, "step": 1e-18})


def test_a_step_of_a_lineage_says_so(make: Callable[..., Plan]) -> None:
    plan = make()
    with pytest.raises(EncoreError, match="one alone teaches nothing") as refused:
        plan.resolve.step(plan.resolve.lineage("bert-base+ict~batch=1").steps[0])
    assert "\n" not in str(refused.value)


def test_every_kind_of_dataset_is_checked_for_its_measures() -> None:
    checked = {name for name in kinds.names() if "splits" in kinds.load_kind(name).fields.model_fields}
    assert checked == set(kinds.names()) >= {"prepared", "beir", "subset"}
