"""Nothing runs without a source, and what a ledger says is what runs."""

import dataclasses
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest
import yaml

from encore.errors import EncoreError
from encore.plan import ledger, project
from encore.plan.catalogue import read_step

ROOT = Path(__file__).parents[2]
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


STANDING = project.load_catalogue(CONFIG)


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


def entry(entries, field):
    (found,) = (each for each in entries if each["field"] == field)
    return found


def refusal(folder, standing=None):
    with pytest.raises(EncoreError) as refused:
        ledger.check(standing or catalogue(), folder)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_the_shipped_configuration_has_a_source_for_everything():
    ledger.check(catalogue(), CONFIG)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.field)
def test_the_ledger_says_what_stands_in_the_configuration(entry):
    """Read here without the code under test: the files as they are, and the defaults of the classes."""
    for name in entry.names:
        kind, owner, *keys = name.split(".")
        if kind == "config":
            value = yaml.safe_load((CONFIG / "config.yaml").read_text())[owner]
            for key in keys:
                value = value[key]
            assert value == entry.value
            continue
        stands = {"steps": step_says, "objectives": objective_says}.get(kind, file_says)
        owners = [owner] if owner != "*" else [each for each in steps() if keys[0] in fields(each)]
        assert owners
        assert {str(stands(kind, each, keys[0])) for each in owners} == {str(entry.value)}


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


def file_says(kind, owner, key):
    return yaml.safe_load((CONFIG / f"{kind}.yaml").read_text())[owner][key]


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
            "step 'costa' in config/steps.yaml: no ledger says where epochs=6.0 comes from",
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
    change(papers, paper, lambda entries: entries.remove(entry(entries, field)))
    said = refusal(papers)
    assert said.startswith(missing)
    assert "config/papers/<paper>/ledger.yaml" in said


@pytest.mark.parametrize(
    ("change_of", "says"),
    [
        ({"value": 0.2}, "objectives.costa.temperature is 0.2 there and 0.1 in the configuration"),
        ({"place": ""}, "objectives.costa.temperature: says `from: paper` and no place; add `place:`"),
        ({"why": " "}, "objectives.costa.temperature: has no reason; add `why:`"),
        (
            {"from": "hearsay"},
            "objectives.costa.temperature.from: input should be 'paper', 'code', 'inferred' or 'ours'",
        ),
        (
            {"field": "objectives.costa.temprature"},
            "objectives.costa.temprature is not in the configuration; did you mean",
        ),
        (
            {"field": "objectives.costa.spans"},
            "objectives.costa.spans has two entries, in the ledger of costa; keep one",
        ),
        ({"page": 7}, "objectives.costa.temperature.page: unknown key"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_ledger_and_field(papers, change_of, says):
    change(papers, "costa", lambda entries: entry(entries, "objectives.costa.temperature").update(change_of))
    said = refusal(papers)
    assert says in said
    assert said.startswith("config/papers/costa/ledger.yaml: ") or "field" in change_of


def test_a_changed_value_of_the_configuration_is_refused():
    changed = catalogue(costa={**STANDING.steps["costa"], "epochs": 7})
    assert "steps.costa.epochs is 6 there and 7.0 in the configuration" in refusal(CONFIG, changed)


@pytest.mark.parametrize(
    ("source", "fix"), [("", "begin the `source:` of it with `ours;`"), ("A paper", "add an entry")]
)
def test_a_new_step_needs_a_source(source, fix):
    assert fix in refusal(CONFIG, catalogue(halves={**HALVES, "source": source}))


def test_a_step_of_ones_own_vouches_for_itself():
    ledger.check(catalogue(halves={**HALVES, "source": "ours; to be tried"}), CONFIG)


@pytest.mark.parametrize(
    ("text", "says"),
    [("- field: [", "is not YAML"), ("field: x", "must hold a list"), ("- x", "must be a mapping of field, value")],
)
def test_a_broken_ledger_is_refused(papers, text, says):
    (papers / "papers/bow/ledger.yaml").write_text(text)
    said = refusal(papers)
    assert says in said
    assert said.startswith("config/papers/bow/ledger.yaml")


def test_braces_stand_for_each_of_their_names():
    shared = ledger.Entry(field="steps.{ae,ar}.{batch,steps}", value=1, why="A test.", paper="bow", **{"from": "ours"})
    assert shared.names == ["steps.ae.batch", "steps.ae.steps", "steps.ar.batch", "steps.ar.steps"]


def test_the_check_takes_no_time_worth_mention():
    times = []
    for _ in range(5):
        start = time.process_time()
        ledger.check(STANDING, CONFIG)
        times.append(time.process_time() - start)
    assert min(times) < 0.4  # 0.04 here


def test_the_command_prints_a_paper_s_ledger():
    command = [sys.executable, "-m", "encore.cli", "ledger", "--paper"]
    shown = subprocess.run([*command, "costa"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    header, *lines = shown.splitlines()
    assert header.split() == ["field", "value", "from", "place", "why"]
    assert len(lines) == sum(len(each.names) for each in ENTRIES if each.paper == "costa")
    assert any(line.split()[:3] == ["objectives.costa.temperature", "0.1", "paper"] for line in lines)
    refused = subprocess.run([*command, "csta"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "did you mean costa?" in refused.stderr + refused.stdout
