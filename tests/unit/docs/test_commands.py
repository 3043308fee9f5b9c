"""Every command in the documents is run here, or on a finished run (``tests/e2e/test_documented.py``), or checked.

Checked and not run is what takes long, a cluster, a network or data that are not here: its options are parsed by the
program's own parser, and its files, targets, rules and configurations have to exist.
"""

import argparse
import contextlib
import fnmatch
import re
import runpy
import shlex
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.kinds import PRODUCTS
from encore.products.targets import check_target, everything_declared, needed_by
from encore.storage import root
from tests.support import inside
from tests.support.documented import READERS, ROOT, Command, documented, is_complete, needs_a_run, of_page

DEFAULT = "config/config.yaml"
# Files that the pages have the reader make.
WRITTEN = {
    "config/faq.yaml",
    "config/mine.yaml",
    "config/own.yaml",
    "config/own-zero-shot.yaml",
    "config/own-minilm.yaml",
    "config/own-tuned.yaml",
    "config/help-en.yaml",
    "config/help-hi.yaml",
    "../study/mine.yaml",
}
SHOWN_ELSEWHERE = {  # what a page has its reader write first, and the test that does so
    "results/lengths/": "tests/workflow/test_new_stage.py",
    "bert-base+halves+marco-bm25": "tests/e2e/test_new_objective.py",
    "config/faq": "tests/e2e/test_new_dataset.py",
    "config/mine.yaml": "tests/e2e/test_new_paper.py",
    "benchmarks/real-data.yaml": "tests/unit/benchmarks/test_real_data_run.py",
    "data/own": "tests/e2e/test_own_collection.py",
    "config/own": "tests/e2e/test_own_collection.py",
    "data/help-": "tests/e2e/test_own_collection.py",
    "config/help-": "tests/e2e/test_own_collection.py",
}
COMMANDS = documented()


def of(*tools: str) -> list[Command]:
    """The commands that call one of these programs, each once."""
    return list({command.text: command for command in COMMANDS if command.tool in tools}.values())


@cache
def plan_of(config: str) -> Plan:
    with contextlib.chdir(ROOT):
        return load_plan(Path(config))


def elsewhere(command: Command) -> bool:
    """Whether another test does what the page says and then runs the command."""
    for written, test in SHOWN_ELSEWHERE.items():
        if written in command.text:
            assert (ROOT / test).is_file()
            return True
    return False


def test_every_tool_has_a_check():
    checked = {"encore", "snakemake", "make", "python", "pip", "pytest", "bash", "source", *READERS}
    assert {command.tool for command in COMMANDS} <= checked
    assert len(COMMANDS) > 80


def test_a_command_without_a_check_fails(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "Text, `encore show table2` in it.\n\n    $ encore \\\n        audit  # why\n\n```bash\nmake demo\n```\n"
    )
    assert [command.text for command in of_page(page, "page")] == ["encore audit", "make demo", "encore show table2"]
    for shown in ("```bash\nfrobnicate --all\n```\n", "    sort results/runs/x\n"):
        page.write_text(shown)
        with pytest.raises(AssertionError, match="say in tests how"):
            list(of_page(page, "page"))


def quick(command: Command) -> object:
    """A parameter, which is slow where all of a large run is planned, or a compiler is imported."""
    is_slow = re.search(r"^encore (whatif|preflight)|five-seeds|paper\.yaml|benchmarks/pretraining", command.text)
    return pytest.param(command, marks=pytest.mark.slow) if is_slow else command


@pytest.mark.parametrize("command", map(quick, of("encore")), ids=str)
def test_encore_commands_run(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    words = shlex.split(command.text)[1:]
    options = help_of(words[0])
    assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[\w-]+", options))
    if not is_complete(command) or needs_a_run(command) or elsewhere(command) or "--fetch-check" in words:  # a network
        return
    done = inside.encore(*words)
    assert done.returncode in ({0, 1} if words[0] == "preflight" else {0}), done.stderr  # 1: beyond this machine
    assert "error:" not in done.stderr
    assert done.stdout.strip()


@cache
def help_of(subcommand: str) -> str:
    done = inside.encore(subcommand, "--help")
    assert done.returncode == 0, done.stderr
    return done.stdout


PRINTED = "what-encore-prints"  # in place of $(encore targets …)


@cache
def rules() -> set[str]:
    """Those that are written out, and those of products of which a run has one."""
    files = ROOT.glob("workflow/rules/*.smk")
    written = {name for path in files for name in re.findall(r"^rule (\w+):", path.read_text(), re.M)}
    return written | {kind.rule for kind in PRODUCTS if not kind.wildcard}


@pytest.mark.parametrize("command", map(quick, of("snakemake")), ids=str)
def test_snakemake_commands_have_options_configurations_and_targets_that_there_are(command, monkeypatch):
    from snakemake.cli import get_argument_parser

    monkeypatch.chdir(ROOT)
    inner = re.findall(r"\$\((encore [^)]*)\)", command.text)
    words = shlex.split(re.sub(r"\$\([^)]*\)", PRINTED, command.text))[1:]
    parsed = get_argument_parser().parse_args(words)
    assert list(parsed.targets).count(PRINTED) == len(inner), "an option before them takes the targets for its own"
    profiles = [parsed.profile] if isinstance(parsed.profile, str) else parsed.profile or []
    assert all((ROOT / profile / "config.yaml").is_file() for profile in profiles)
    if not is_complete(command):
        return
    configs = [str(path) for path in parsed.configfile or []]
    assert all((ROOT / config).is_file() for config in set(configs) - WRITTEN)
    if elsewhere(command) or WRITTEN & set(configs):
        return
    plan = plan_of(configs[0] if configs else DEFAULT)
    for target in parsed.targets:
        if target != PRINTED:
            assert parsed.profile, "Snakemake stops without cores"
        if target not in {PRINTED, *rules()}:
            check_target(plan, target)
    for asked in inner:
        done = inside.encore(*shlex.split(asked)[1:])
        if done.returncode:  # the embedded default has no published data
            done = inside.encore(*shlex.split(asked)[1:], "--config", "config/paper.yaml")
        assert done.stdout.split(), done.stderr


@pytest.mark.parametrize("command", of("make"), ids=str)
def test_make_targets_are_there(command):
    makefile, words = (ROOT / "Makefile").read_text(), command.text.split()[1:]
    assert {word for word in words if "=" not in word} <= set(re.findall(r"^([\w-]+):", makefile, re.M))
    set_here = {word.partition("=")[0] for word in words if "=" in word}
    assert set_here <= set(re.findall(r"^(\w+) \?=", makefile, re.M))


@cache
def parser_of(program: str) -> argparse.ArgumentParser:
    """The parser of a program: what it asks, up to there, for its command line."""
    found = []

    def keep(self, *given):
        found.append(self)
        raise SystemExit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", keep)
        patch.syspath_prepend(str((ROOT / program).parent))
        done = inside.ended(program, (), ROOT, lambda: runpy.run_path(program, run_name="__main__"))
    assert found, done.stderr
    return found[0]


@pytest.mark.parametrize("command", map(quick, of("python")), ids=str)
def test_programs_take_their_options(command):
    words = shlex.split(command.text.partition("|")[0])[1:]
    if words[0] == "-m" and words[1].startswith("tools."):
        place = words[1].replace(".", "/")
        program = f"{place}.py" if (ROOT / f"{place}.py").is_file() else f"{place}/__main__.py"
        parser_of(program).parse_args(words[2:])
    elif words == ["-m", "encore"]:
        assert (ROOT / "src/encore/__main__.py").is_file()
    elif words[0] == "-m":
        assert made_of(words[2:])
    else:
        parser_of(words[0]).parse_args(words[1:])


@pytest.mark.parametrize("command", of(*READERS), ids=str)
def test_what_is_read_of_results_is_planned(command):
    made_of(shlex.split(command.text))


@cache
def folders() -> tuple[str, ...]:
    plan = plan_of(DEFAULT)
    with contextlib.chdir(ROOT):
        return tuple(artifact.folder for artifact in needed_by(plan, everything_declared(plan)))


def made_of(words: list[str]) -> bool:
    """Each word that names files of results names those of a folder that the embedded default makes, or its root."""
    patterns = [word for word in words if word.startswith("results/") and not word.startswith(str(root.ROOT))]
    for pattern in patterns:
        parts = [str(parent) for parent in Path(pattern).parents if len(parent.parts) > 2]
        assert any(fnmatch.fnmatch(folder, part) for folder in folders() for part in parts), pattern
    return bool(patterns)


@pytest.mark.parametrize("command", of("pip", "bash", "source"), ids=str)
def test_files_of_other_commands_are_there(command):
    if extras := re.findall(r"(?:\.|encore-ir)\[(\w+)\]", command.text):
        declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert set(extras) <= declared.keys()
        return
    if "snakemake-executor-plugin-cluster-generic" in command.text:
        return  # as the profile of that name needs it
    if command.text.startswith("pip download ") or "--index-url https://download.pytorch.org/" in command.text:
        return  # it makes its folder, or is PyTorch's
    named = [word for word in shlex.split(command.text)[1:] if "/" in word]
    assert named
    for name in named:
        installed = Path(name).is_relative_to(".venv")
        assert (Path(sys.prefix) / Path(name).relative_to(".venv") if installed else ROOT / name).exists(), name


@pytest.mark.parametrize("command", of("pytest"), ids=str)
def test_pytest_commands_select_tests(command, request):
    words = shlex.split(command.text)[1:]
    marks = {line.partition(":")[0] for line in request.config.getini("markers")}
    tests = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    while words:
        match words.pop(0):
            case "-m":
                assert words.pop(0) in marks
            case "-k":
                asked = words.pop(0)
                assert asked == "halves" or any(asked in name for name in tests)  # the reader's own objective
            case "--cpu-seconds":
                assert float(words.pop(0)) > 0
            case "--record-trials":
                assert 'addoption("--record-trials"' in (ROOT / "tests/trust/conftest.py").read_text()
                assert (ROOT / words.pop(0)).is_file()
            case name:
                assert any(test.startswith(name) for test in tests), name
