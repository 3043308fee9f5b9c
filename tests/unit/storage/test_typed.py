"""Commands that are printed can be typed as they stand, and what removes files asks first."""

import io
import shlex
from pathlib import Path

import pytest

from encore.commands import show
from encore.commands.audit.audit import agree_and_prune
from encore.plan import index
from encore.products.catalogue import load_plan
from encore.products.targets import summary
from encore.storage import typed
from encore.storage.files import write_json, write_text
from tests.support import inside

ROOT = Path(__file__).parents[3]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_command_names_the_run_unless_it_is_the_default(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert typed.called(Path("config/config.yaml")) == typed.called(ROOT / "config/config.yaml") == ""
    assert typed.called(ROOT / "config/own.yaml") == "config/own.yaml"
    assert typed.called(Path("/elsewhere/my run.yaml")) == "my run.yaml"
    assert typed.encore("audit", run="") == "encore audit"
    assert shlex.split(typed.encore("show", "t", run="a b.yaml")) == ["encore", "show", "t", "--config", "a b.yaml"]
    assert typed.snakemake(run="config/own.yaml") == "snakemake --profile local --configfile config/own.yaml"


def test_a_job_knows_its_run(monkeypatch):
    monkeypatch.setenv("ENCORE_RUN", "config/own.yaml")
    assert typed.encore("audit", "--prune") == "encore audit --prune --config config/own.yaml"
    monkeypatch.delenv("ENCORE_RUN")
    assert typed.encore("audit", "--prune") == "encore audit --prune"


def test_a_finished_run_prints_complete_commands(monkeypatch):
    monkeypatch.chdir(ROOT)
    *_, root, last = summary(load_plan(Path("config/nano.yaml")), "f4ca", "config/nano.yaml").splitlines()
    assert root.startswith("root f4ca: one digest of all results; keep it, and `encore audit --root` with it tells")
    assert last == "Verify all with `encore audit --config config/nano.yaml`.", "no table was made"


def test_what_was_requested_is_shown_declared_or_not(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    plan, table, scores = (
        load_plan(Path("config/nano.yaml")),
        "results/tables/costa/table1.csv",
        "results/scores/x.json",
    )
    monkeypatch.chdir(tmp_path)
    for made in (table, scores):
        Path(made).parent.mkdir(parents=True)
        Path(made).write_text("")
    for asked, said in ((table, "tables and figures made: 1"), (scores, "what was requested is made")):
        first, second, last = summary(plan, None, "", [asked]).splitlines()
        assert (first, second) == (f"{plan.config.title}: {said}", f"  {asked}")
        assert ("show a table with `encore show costa/table1`" in last.lower()) == (asked == table)


def test_what_other_runs_made_is_not_among_what_a_finished_run_made(monkeypatch, tmp_path):
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    plan, own = load_plan(Path("config/nano.yaml")), "results/tables/costa/table1.csv"
    pages = ("results/report/index.html", "results/report/manifest.json")
    for made in (own, "results/tables/table1.csv", *pages):
        write_text(Path(made), "")
    write_json(Path("results/tables/table1.manifest.json"), {"spec": {"rows": []}})
    for run, shown in (("config/own.yaml", [own]), ("config/nano.yaml", [own, pages[0]])):
        write_json(Path(pages[1]), {"spec": {"run": run}})
        _, *files, last = summary(plan, None, "", [own]).splitlines()
        assert [file.strip() for file in files] == shown
        assert "`encore show costa/table1`" in last


@pytest.mark.parametrize(
    ("stdin", "yes", "removes"),
    [
        (io.StringIO(""), False, False),
        (Terminal("\n"), False, False),
        (Terminal("y\n"), False, True),
        (io.StringIO(""), True, True),
    ],
)
def test_pruning_says_what_it_would_remove_and_asks(tmp_path, monkeypatch, capsys, stdin, yes, removes):
    (tmp_path / "folder").mkdir()
    (tmp_path / "table.csv").touch()
    places = [str(tmp_path / "folder"), str(tmp_path / "table.csv")]
    monkeypatch.setattr("sys.stdin", stdin)
    assert agree_and_prune(places, "config/own.yaml", yes=yes) == (0 if removes else 1)
    said = capsys.readouterr().out
    assert all(place in said for place in places)
    assert any(tmp_path.iterdir()) is not removes
    after = "snakemake --profile local --configfile" if removes else "encore audit --prune --yes --config"
    assert f"`{after} config/own.yaml`" in said


def test_questions_about_a_table_are_answered_for_the_run_that_made_it(tmp_path, monkeypatch):
    """Without `--config` the default was taken, whose table of that name is another one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    run = Path("config/own.yaml")
    for path in (run, Path("config/other.yaml"), Path("config/config.yaml")):
        path.touch()
    found = index.Index(
        {}, products={"results/tables/table1.manifest.json": str(run), "results/tables/two.manifest.json": ""}
    )
    assert [found.run_of(name) for name in ("table1", "results/tables/table1.csv", "two", "three")] == [
        run,
        run,
        None,
        None,
    ]
    runs = []
    monkeypatch.setattr(index, "read", lambda: found)
    monkeypatch.setattr(show, "answer", lambda arguments: runs.append(arguments.config) or 0)
    for words in (["show", "table1"], ["show", "two"], ["show", "table1", "--config", "config/other.yaml"]):
        assert inside.encore(*words).returncode == 0
    assert runs == [run, Path("config/config.yaml"), Path("config/other.yaml")]
