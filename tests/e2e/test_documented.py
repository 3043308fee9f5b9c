"""Commands of the documents that are about a finished run, on one: nano in the place of the default."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.clones import Clone
from tests.support.documented import documented, is_complete, needs_a_run

OWN = "docs/own-collection.md"  # which test_own_collection.py follows
COMMANDS = [each for each in documented() if needs_a_run(each) and is_complete(each) and each.page != OWN]
NOT_MADE = {  # what nano has not: the one line that says so
    "encore show real/squad": "real/squad",
    "encore claims": "snakemake results/claims.csv",
    "encore show mine/table1 --config config/mine.yaml": "config/mine.yaml",
    "encore show bert-base+halves+marco-bm25": "unknown step 'halves'",  # test_new_objective.py adds it
    "encore show bert-base+ict~temperature=0.1+marco-bm25": "encore targets",
    "encore flops objectives": "is missing",
    "encore flops tct_colbert/table3": "is missing",
}
SLOW = ("encore audit --config config/nano.yaml --deep",)  # tests/trust/test_deep_forgery.py runs it


@pytest.fixture(scope="module")
def default(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A finished run whose configuration is the default's; products name their run, so they are made again."""
    clone = finished.copy(tmp_path_factory.mktemp("documented") / "clone")
    shutil.copyfile(clone.root / "config/nano.yaml", clone.root / "config/config.yaml")
    shutil.copyfile(clone.root / "config/nano.yaml", clone.root / "config/seeds.yaml")
    clone.snakemake("--profile", "local").succeeded()
    return clone


def of_the_run(command: str) -> str:
    """An audit or a crate as it is without a configuration: here each that a page names is the same one."""
    return re.sub(r"^(encore (?:audit|crate .*?)) --config config/\S+\.yaml", r"\1", command)


@pytest.mark.parametrize("command", dict.fromkeys(of_the_run(each.text) for each in COMMANDS if each.text not in SLOW))
def test_the_command_runs(default: Clone, command: str) -> None:
    words = shlex.split(command)[1:]
    if words[0] == "compare":
        words = compared(default, words)
    if words[0] == "export":
        words = [each for word in words for each in placed(default, word)]
    if "--root" in words:
        words[-1] = json.loads((default.root / "results/root.json").read_text())["root"][:16]
    done = default.encore(*words)
    if expected := NOT_MADE.get(command):
        assert expected in done.error()
    else:
        assert len(done.succeeded().splitlines()) >= 1


def placed(clone: Clone, word: str) -> list[str]:
    """What a shell makes of a word."""
    return [str(path.relative_to(clone.root)) for path in clone.root.glob(word)] if "*" in word else [word]


def compared(clone: Clone, words: list[str]) -> list[str]:
    """The same with files: a model's run is compared with BM25's."""
    runs = clone.root / "results/runs"
    run, other = (next(iter(runs.glob(f"{name}-*/*/run.trec.gz"))) for name in ("tiny*", "bm25"))
    judgments = next(iter((clone.root / "results/collections").glob("*/qrels/test.tsv")))
    files = {"run.trec.gz": run, "theirs.trec.gz": other, "qrels.txt": judgments}
    return [str(files.get(word, word)) for word in words]


def test_the_root_can_be_signed_and_the_signature_checked(default: Clone) -> None:
    """The commands of docs/trust.md, with a key that is made here."""
    sign, verify = (each.text for each in documented() if each.tool == "ssh-keygen")
    key = default.root / "key"
    default.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)).succeeded()
    (default.root / "signers").write_text(f"me@example.org {key.with_suffix('.pub').read_text()}")
    default.run("bash", "-ec", sign.replace("~/.ssh/id_ed25519", str(key))).succeeded()
    assert "Good" in default.run("bash", "-ec", verify).succeeded()
    with (default.root / "results/root.json").open("a") as file:
        file.write(" ")
    assert default.run("bash", "-ec", verify).code != 0


def test_runs_and_judgments_are_read_by_other_tools(default: Clone) -> None:
    """The shell commands of docs/checkpoints.md, on nano's collection."""
    tools = ("awk", "ir_measures")
    lines = [each.text for each in documented() if each.page == "docs/checkpoints.md" and each.tool in tools]
    text = "\n".join(lines).replace("pydocs-[", "pydocs-stdlib-[").replace("pydocs.test", "pydocs-stdlib.test")
    done = default.run("bash", "-ec", text).succeeded()
    values = dict(line.split("\t") for line in done.splitlines())
    assert values.keys() == {"RR(rel=3)@10", "R(rel=3)@100"}
    assert all(0 < float(value) < 1 for value in values.values())
    assert Path(default.root / "test.qrels").stat().st_size > 0


def test_the_python_example_of_the_readme_runs(default: Clone) -> None:
    example = re.search(r"```python\n(.*?)```", (default.root / "README.md").read_text(), re.S)[1]
    done = default.run(sys.executable, "-c", example + "print(len(run), list(run.columns))\n").succeeded()
    assert "More fine-tuning (control)" in done
    length, columns = done.splitlines()[-1].split(" ", 1)
    assert int(length) > 1000
    assert columns == "['query', 'document', 'rank', 'score']"
