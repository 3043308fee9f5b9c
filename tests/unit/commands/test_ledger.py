"""Nothing runs without a source, and what a ledger says is what runs."""

import dataclasses
import re
import shutil
from functools import cache
from pathlib import Path

import pytest
import yaml

from encore.commands import ledger
from encore.errors import EncoreError
from encore.plan.catalogue import read_step
from encore.products.catalogue import load_catalogue
from tests.support import inside

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "config"
ENTRIES = ledger.read(CONFIG)
HALVES = {
    "kind": "pretrain",
    "objective": "mlm",
    "collection": "wikipedia",
    "steps": 7,
    "batch": 2,
    "learning_rate": 1.0,
    "length": 9,
}


STANDING = load_catalogue(CONFIG)


def catalogue(**added):
    """The shipped catalogue, with steps changed or added."""
    return dataclasses.replace(STANDING, steps={**STANDING.steps, **added})


@pytest.fixture
def papers(tmp_path):
    """A copy of the ledgers, to be changed."""
    for path in CONFIG.glob("papers/*/ledger.yaml"):
        target = tmp_path / path.relative_to(CONFIG)
        target.parent.mkdir(parents=True)
        shutil.copy(path, target)
    return tmp_path


def change(folder, paper, edit):
    """Edit the entries of one ledger."""
    path = folder / f"papers/{paper}/ledger.yaml"
    entries = yaml.safe_load(path.read_text())
    edit(entries)
    path.write_text(yaml.safe_dump(entries))


def source(sources, field):
    """The source of a field, with its fields."""
    (found,) = (each for each in sources if field in each["fields"])
    return found


def without(sources, field):
    """Take a field away, and its source where it is the last one of it."""
    found = source(sources, field)
    del found["fields"][field]
    if not found["fields"]:
        sources.remove(found)


def alone(sources, field):
    """Give a field a source of its own, which can be changed without that of others."""
    found = source(sources, field)
    own = {**found, "fields": {field: found["fields"].pop(field)}}
    sources[:] = [each for each in sources if each["fields"]] + [own]
    return own


def refusal(folder, standing=None):
    with pytest.raises(EncoreError) as refused:
        ledger.check(standing or catalogue(), folder)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_the_shipped_configuration_has_a_source_for_everything():
    ledger.check(catalogue(), CONFIG)


@cache
def shown():
    """What the ledgers print as the value of each field."""
    header, *lines = ledger.table(ENTRIES, STANDING, CONFIG).splitlines()
    start, end = header.index("value"), header.index("from")
    return {line.split()[0]: line[start:end].strip() for line in lines}


@pytest.mark.parametrize("name", [entry.field for entry in ENTRIES])
def test_the_ledger_shows_what_stands_in_the_configuration(name):
    """Read here without the code under test: the files as they are, and the defaults of the classes."""
    kind, owner, *keys = name.split(".")
    if kind == "config":
        assert shown()[name] != "not set"
        return  # what stands there in groups is tested below
    if kind == "measures":
        split, measure = keys
        assert datasets()[owner]["splits"][split]["measures"][measure] == shown()[name]
        return
    stands = {"steps": step_says, "objectives": objective_says, "tables": table_says}.get(kind, file_says)
    owners = [owner] if owner != "*" else [each for each in steps() if keys[0] in fields(each)]
    assert owners
    assert {str(stands(kind, each, keys[0])).replace("'", "") for each in owners} == {shown()[name].replace("'", "")}


def test_the_values_of_the_default_run_are_shown_with_the_groups_that_they_stand_in():
    expected = {"finetune.queries": "1000", "finetune.per_query": "1", "pretrain.length": "64"}
    expected |= {"steps.ict.temperature": "0.05", "steps.wlp.titles": "False", "steps.bprop.skip_below": "25"}
    assert {name: shown()[f"config.scale.{name}"] for name in expected} == expected
    gone = ledger.Entry("config.scale.steps.wlp.nothing", "ours", "", "A test.", "encore")
    assert "not set" in ledger.table([gone], STANDING, CONFIG)


@cache
def steps():
    return yaml.safe_load((CONFIG / "steps.yaml").read_text())


@cache
def fields(step):
    return type(read_step(steps()[step])).model_fields


def step_says(kind, owner, key):
    written = steps()[owner]
    return written[key] if key in written else plain(fields(owner)[key].default)


def objective_says(kind, owner, key):
    step = next(name for name, written in steps().items() if written.get("objective") == owner)
    return plain(fields(step)[key].default)


def table_says(kind, owner, key):
    paper, table = owner.split("/")
    rows = yaml.safe_load((CONFIG / f"papers/{paper}/tables.yaml").read_text())[table]["rows"]
    (who,) = {row["reported_only"] for row in rows if row["id"] == key}
    return who


def file_says(kind, owner, key):
    return yaml.safe_load((CONFIG / f"{kind}.yaml").read_text())[owner][key]


@cache
def datasets():
    return yaml.safe_load((CONFIG / "datasets.yaml").read_text())


def plain(value):
    return list(value) if isinstance(value, tuple) else value


def test_every_paper_has_a_ledger_and_its_reasons_are_sentences():
    assert {entry.paper for entry in ENTRIES} == {"bow", "costa", "cpdae", "encore", "tct_colbert", "two_tower"}
    assert [entry.field for entry in ENTRIES if not entry.why.endswith(".")] == []
    assert {entry.origin for entry in ENTRIES} == {"paper", "code", "inferred", "ours"}


@pytest.mark.parametrize(
    ("paper", "field", "missing"),
    [
        (
            "costa",
            "steps.costa.epochs",
            "step 'costa' in config/steps.yaml: no ledger says where epochs=6 comes from",
        ),
        ("costa", "objectives.costa.temperature", "objective 'costa': no ledger says where temperature=0.1 comes from"),
        (
            "tct_colbert",
            "systems.bm25.k1",
            "system 'bm25' in config/systems.yaml: no ledger says where k1=0.9 comes from",
        ),
        (
            "encore",
            "steps.*.max_grad_norm",
            "step 'mlm' in config/steps.yaml: no ledger says where max_grad_norm=1.0 comes from",
        ),
    ],
)
def test_a_removed_entry_is_missed(papers, paper, field, missing):
    change(papers, paper, lambda sources: without(sources, field))
    said = refusal(papers)
    assert said.startswith(missing)
    assert "config/papers/<paper>/ledger.yaml" in said


T = "objectives.costa.temperature"


@pytest.mark.parametrize(
    ("change_of", "says"),
    [
        ({"place": ""}, f"{T}: says `from: paper` and no place; add `place:`"),
        ({"fields": {T: " "}}, f"{T}: has no reason; write behind it why"),
        ({"fields": {T: 7}}, f"{T}.fields.{T}: input should be a valid string"),
        ({"fields": {}}, "a source.fields: dictionary should have at least 1 item"),
        ({"from": "hearsay"}, f"{T}.from: input should be 'paper', 'code', 'inferred' or 'ours'"),
        (
            {"fields": {"objectives.costa.temprature": "Stated."}},
            "objectives.costa.temprature is not in the configuration; did you mean",
        ),
        ({"fields": {"objectives.costa.spans": "Stated."}}, "objectives.costa.spans has two entries, in the ledger of"),
        ({"page": 7}, f"{T}.page: unknown key"),
        ({"field": T}, f"{T}.field: unknown key; did you mean fields"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_ledger_and_field(papers, change_of, says):
    change(papers, "costa", lambda sources: alone(sources, T).update(change_of))
    said = refusal(papers)
    assert says in said
    assert said.startswith("config/papers/costa/ledger.yaml: ") or "two entries" in said


def test_the_source_of_a_changed_value_is_told():
    changed = catalogue(costa={**STANDING.steps["costa"], "epochs": 7})
    assert ledger.changed_source(STANDING, changed, CONFIG) == (
        "config/papers/costa/ledger.yaml says where steps.costa.epochs=6 comes from; write there where 7 does"
    )
    assert ledger.changed_source(STANDING, catalogue(), CONFIG) == ""


def test_a_star_is_about_one_value():
    entry = ledger.Entry("steps.*.batch", "ours", "", "A test.", "costa")
    with pytest.raises(EncoreError, match=r"config/papers/costa/ledger.yaml: steps\.\*\.batch is .* and .*one value"):
        ledger.table([entry], STANDING, CONFIG)


def test_a_measure_of_a_split_may_have_a_source():
    entry = ledger.Entry("measures.msmarco-document.graded.R@100", "code", "evaluate.py", "A test.", "costa")
    cited = ledger.sources([entry], set(ledger.values(STANDING)))
    assert list(cited) == [entry.field]
    assert ledger.table([entry], STANDING, CONFIG).splitlines()[1].split()[1] == "R@100"


@pytest.mark.parametrize(
    ("source", "fix"), [("", "begin the `source:` of it with `ours;`"), ("A paper", "with its reason under")]
)
def test_a_new_step_needs_a_source(source, fix):
    assert fix in refusal(CONFIG, catalogue(halves={**HALVES, "source": source}))


def test_a_step_of_ones_own_vouches_for_itself():
    ledger.check(catalogue(halves={**HALVES, "source": "ours; to be tried"}), CONFIG)


@pytest.mark.parametrize(
    ("text", "says"),
    [("- from: [", "is not YAML"), ("from: x", "must hold a list"), ("- x", "must be a mapping of from, place")],
)
def test_a_broken_ledger_is_refused(papers, text, says):
    (papers / "papers/bow/ledger.yaml").write_text(text)
    said = refusal(papers)
    assert says in said
    assert said.startswith("config/papers/bow/ledger.yaml")


def test_braces_stand_for_each_of_their_names(papers):
    shared = [{"from": "ours", "fields": {"steps.{ae,ar}.{batch,steps}": "A test."}}]
    (papers / "papers/bow/ledger.yaml").write_text(yaml.safe_dump(shared))
    names = [entry.field for entry in ledger.read(papers) if entry.paper == "bow"]
    assert names == ["steps.ae.batch", "steps.ae.steps", "steps.ar.batch", "steps.ar.steps"]


def test_the_command_prints_a_paper_s_ledger():
    shown = inside.encore("ledger", "--paper", "costa", cwd=ROOT)
    assert shown.returncode == 0, shown.stderr
    header, *lines = shown.stdout.splitlines()
    assert header.split() == ["field", "value", "from", "place", "why"]
    assert len(lines) == sum(each.paper == "costa" for each in ENTRIES)
    assert any(line.split()[:3] == ["objectives.costa.temperature", "0.1", "paper"] for line in lines)
    refused = inside.encore("ledger", "--paper", "csta", cwd=ROOT)
    assert refused.returncode == 1
    assert "did you mean costa?" in refused.stderr + refused.stdout


def test_few_rows_are_printed_only_and_the_ledger_the_table_and_the_page_of_systems_say_why():
    shown = inside.encore("ledger", cwd=ROOT)
    listed = [line.split()[0] for line in shown.stdout.splitlines() if line.startswith("tables.")]
    copied = {
        f"tables.{name}.{row.id}": (row, table)
        for name, table in STANDING.tables.items()
        for row in table.rows
        if row.reported_only
    }
    assert sorted(listed) == sorted(copied)
    assert 0 < len(copied) <= 12
    assert f"; {len(copied)} are shown with their source" in (ROOT / "README.md").read_text()
    page = (ROOT / "docs/systems.md").read_text().split("## Printed only")[1].split("\n## ")[0]
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
        for column in STANDING.tables[f"bow/{table}"].columns
        if column.dataset == "msmarco-passage-titles" and column.label.startswith("R@")
    ]
    assert {column.measure for column in columns} == {"Success@1", "Success@50", "Success@1000"}
    cited = ledger.sources(ENTRIES, set(ledger.values(STANDING)))
    for column in columns:
        assert cited[f"measures.msmarco-passage-titles.test.{column.measure}"].origin == "code"
