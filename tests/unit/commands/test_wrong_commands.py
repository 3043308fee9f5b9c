"""Command lines that name nothing, and results that are damaged: one line that says so, and never a traceback."""

from pathlib import Path

import pytest

from tests.support import inside

ROOT = Path(__file__).parents[3]

WRONG = [
    (["whatif", "seeds=[0,"], "'seeds=[0,': the value is not YAML: "),
    (["whatif", "steps.ict.temperature=*a"], "the value is not YAML: found undefined alias 'a'"),
    (["whatif", "title=!!python/object/apply:os.system [id]"], "the value is not YAML: could not determine"),
    (["whatif", "scale.pretrain.steps=true"], "steps: must be a number, not true or false"),
    (["preflight", ""], "there is no table, figure or target ''"),
    (["preflight", "."], "there is no table, figure or target '.'"),
    (["show", "table9"], "there is no table 'table9'; did you mean table2"),
    (["show", "results/tables/table9.csv"], "there is no table 'table9'; did you mean table2"),
    (["targets", "bert-base@nope"], "unknown index 'nope', not in config/indexes.yaml"),
    (["compare", "R", "R", "pydocs"], "error: R is missing; name a file that is there"),
    (["claims", "--config", "nope.yaml"], "--config nope.yaml: the file is missing; name a run's file"),
]


def refused(*words: str) -> str:
    done = inside.encore(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize(("words", "says"), WRONG)
def test_what_a_command_cannot_answer_is_refused(words: list[str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert says in refused(*words)


def test_a_claim_that_there_is_not_is_refused_by_every_command(bare: Path) -> None:
    text = Path("config/nano.yaml").read_text().replace("\nclaims:", "\n# claims:")
    Path("config/wrong.yaml").write_text(f"{text}\nclaims: [C999]\n")
    for words in (["preflight"], ["preflight", "table1"], ["show"], ["targets", "bm25"]):
        assert "config/wrong.yaml: claims: there is no claim 'C999'" in refused(*words, "--config", "config/wrong.yaml")


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"artifacts": []}'])
def test_a_damaged_index_is_named_where_it_would_say_which_run_is_meant(bare: Path, damage: str) -> None:
    index = Path("results/plan/index.json")
    index.parent.mkdir(parents=True)
    index.write_text(damage)
    for words in (["show"], ["explain", "table1", "--row", "ict", "--column", "rr10"]):
        assert "results/plan/index.json is damaged" in refused(*words)
    assert "results/tables/table1.json is missing" in refused("show", "--config", "config/nano.yaml")


@pytest.mark.parametrize(("damage", "says"), [("{", " (Invalid JSON: "), ("{}", " (name: Field required")])
def test_a_damaged_table_names_the_command_that_repairs(bare: Path, damage: str, says: str) -> None:
    table = Path("results/tables/table1.json")
    table.parent.mkdir(parents=True)
    table.write_text(damage)
    message = refused("show", "results/tables/table1.csv")
    assert f"results/tables/table1.json is not a table{says}" in message
    assert "`encore audit --prune` removes it, and snakemake makes it again" in message


def test_a_table_is_shown_by_its_file_with_the_figures_that_there_are(bare: Path) -> None:
    for file in ("results/tables/table1.json", "results/figures/table1.png"):
        Path(file).parent.mkdir(parents=True)
        Path(file).write_bytes((ROOT / "tests/unit/golden/small_table.json").read_bytes())
    shown = inside.encore("show", "results/tables/table1.csv")
    assert shown.stdout == inside.encore("show").stdout
    assert shown.stdout.splitlines()[-2:] == ["results/tables/table1.html", "results/figures/table1.png"]


def test_a_run_cannot_be_exported_below_a_file(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("encore.storage.manifest.verify", lambda run, files: None)
    Path("file").write_text("")
    said = refused("export", "results/runs/a/b", "--output", "file")
    assert said == "error: file/a/b: Not a directory; fix that, then repeat\n"


@pytest.mark.parametrize("words", [["schema"], ["export", "run"], ["compare", "run", "run", "qrels"]])
def test_a_command_about_no_run_takes_no_config(words: list[str]) -> None:
    done = inside.encore(*words, "--config", "config/nano.yaml")
    assert done.returncode == 2
    assert "unrecognized arguments: --config config/nano.yaml" in done.stderr
