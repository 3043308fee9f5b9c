"""Every value that an experiment rests on has a source, and docs/values.md shows what is in the configuration."""

import dataclasses
import re
import shutil
from functools import cache

import pytest
import yaml

from encore.plan.catalogue import read_step
from encore.plan.groups import alternatives
from encore.products.catalogue import load_catalogue
from tools import values

CONFIG = values.ROOT / "config"
CATALOGUE = load_catalogue(CONFIG)
SHOWN = values.PAGE.read_text()


@pytest.mark.slow
def test_every_value_has_one_source_and_the_page_is_current():
    assert values.problems(CATALOGUE, CONFIG) == []
    assert values.page(CATALOGUE, CONFIG) == SHOWN, "write it again: python -m tools.values"


def test_the_values_are_those_of_the_files():
    """Read here without the code under test: the files as they are, and the defaults of the classes."""
    known, read = (
        values.values(CATALOGUE, CONFIG),
        {"steps": of_step, "objectives": of_objective, "measures": of_measure},
    )
    fields = re.findall(r"^\| `(.+?)` \|", SHOWN, re.M)
    names = [name for field in fields for name in alternatives(field) if "*" not in name]
    compared = {
        name: read.get(name.split(".")[0], of_file)(*name.split(".", 2)) for name in names if ".scale." not in name
    }
    assert len(compared) > 1500
    tables = {name for name in compared if name.startswith("tables.")}
    for name in compared.keys() - tables:
        assert known[name] == compared[name], name


@cache
def file(name):
    return yaml.safe_load((CONFIG / f"{name}.yaml").read_text())


@cache
def defaults(step):
    fields = type(read_step(file("steps")[step])).model_fields
    return {
        key: list(field.default) if isinstance(field.default, tuple) else field.default for key, field in fields.items()
    }


def of_step(kind, owner, key):
    written = file("steps")[owner]
    return written[key] if key in written else defaults(owner)[key]


def of_objective(kind, owner, key):
    return defaults(next(name for name, written in file("steps").items() if written.get("objective") == owner))[key]


def of_measure(kind, owner, key):
    split, measure = key.split(".", 1)
    return file("datasets")[owner]["splits"][split]["measures"][measure]


def of_file(kind, owner, key):
    return None if kind == "tables" else file(kind)[owner][key]


def changed(**steps):
    return dataclasses.replace(CATALOGUE, steps={**CATALOGUE.steps, **steps})


HALVES = {**CATALOGUE.steps["mlm"], "batch": 2}


WRONG = [
    (
        "costa",
        "objectives.costa.temperature:",
        "objectives.costa.temprature:",
        "temprature is not in the configuration",
    ),
    ("costa", "objectives.costa.min_tokens:", "objectives.costa.spans:", "objectives.costa.spans has two sources"),
    ("costa", "place: section 4.5.1\n", "place: ''\n", "costa: steps.costa.epochs is from paper; give its `place:`"),
    ("costa", "steps.costa.epochs: ", "steps.costa.epochs: '' #", "costa: steps.costa.epochs needs its reason"),
    ("costa", "objectives.costa.temperature:", "", "no ledger says where objectives.costa.temperature=0.1 comes from"),
    ("tct_colbert", "systems.bm25.k1:", "systems.bm25.b:", "no ledger says where systems.bm25.k1=0.9 comes from"),
    (
        "encore",
        "steps.*.max_grad_norm:",
        "steps.*.batch:",
        "no ledger says where steps.mlm.max_grad_norm=1.0 comes from",
    ),
    ("encore", "steps.*.max_grad_norm:", "", "encore: steps.*.batch is 32 and "),
]


def test_wrong_sources_are_named(tmp_path):
    shutil.copy(CONFIG / "config.yaml", tmp_path)
    for path in CONFIG.glob("papers/*/ledger.yaml"):
        copy = tmp_path / "papers" / path.parent.name / path.name
        copy.parent.mkdir(parents=True)
        text = path.read_text()
        for paper, old, new, _ in WRONG:
            if paper == path.parent.name and new:
                assert old in text
                text = text.replace(old, new)
        copy.write_text(text)
    said = "\n".join(values.problems(CATALOGUE, tmp_path))
    assert [says for _, _, _, says in WRONG if says not in said] == []


@pytest.mark.slow
def test_a_step_that_claims_a_paper_needs_a_source_and_one_of_ones_own_does_not():
    (problem,) = values.problems(changed(halves={**HALVES, "source": "A paper"}), CONFIG)[:1]
    assert re.match(r"no ledger says where steps\.halves\.batch=2 comes from", problem)
    assert values.problems(changed(halves={**HALVES, "source": "ours; to be tried"}), CONFIG) == []


def test_few_rows_are_printed_only_and_the_table_and_the_page_of_systems_say_why():
    copied = {
        f"tables.{name}.{row.id}": (row, table)
        for name, table in CATALOGUE.tables.items()
        for row in table.rows
        if row.reported_only
    }
    shown = [name for field in re.findall(r"^\| `(tables\..+?)` \|", SHOWN, re.M) for name in alternatives(field)]
    assert sorted(shown) == sorted(copied)
    assert 0 < len(copied) <= 12
    assert f"; {len(copied)} are shown with source" in (values.ROOT / "README.md").read_text()
    page = (values.ROOT / "docs/systems.md").read_text().split("## Printed only")[1].split("\n## ")[0]
    for row, table in copied.values():
        (note,) = (note for note in table.notes if note.startswith("Printed only: "))
        names = re.findall(r"\b[A-Z][\w+-]{3,}", row.label)
        assert any(name in note for name in names), note
        assert any(name in page for name in names), row.label


def test_recall_that_counts_queries_with_a_hit_is_said_where_a_paper_prints_it():
    """bowdpr's evaluation; 7,437 judgments of 6,980 queries make trec_eval's recall another number."""
    columns = [
        column
        for table in ("table1", "table3", "table5")
        for column in CATALOGUE.tables[f"bow/{table}"].columns
        if column.dataset == "msmarco-passage-titles" and column.label.startswith("R@")
    ]
    assert {column.measure for column in columns} == {"Success@1", "Success@50", "Success@1000"}
    cited = dict(re.findall(r"^\| `measures\.msmarco-passage-titles\.test\.(.+?)` \| [^|]* \| (\w+): ", SHOWN, re.M))
    named = {name: origin for field, origin in cited.items() for name in alternatives(field)}
    assert {named[column.measure] for column in columns} == {"code"}
