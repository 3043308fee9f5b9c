"""docs/notebooks.md: every example runs, one after another, and prints what is behind it."""

import re
from pathlib import Path

import pytest

import encore
from tests.support import own_folder

PAGE = (Path(__file__).parents[3] / "docs/notebooks.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def test_every_example_prints_what_is_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(EXAMPLES) == PAGE.count("```python") > 4
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for example, expected in EXAMPLES:
        exec(example, names)
        exec(example, names)  # a cell may run twice
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        assert printed == 2 * expected.splitlines(), example


def test_a_run_is_written_as_the_command_writes_it(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = own_folder.folder({"train": own_folder.judged(0, 200), "test": own_folder.judged(200, 400)})
    told = own_folder.new("mine", "--beir", str(folder), "--language", "en")
    written = Path("config/mine.yaml").read_text()
    Path("config/mine.yaml").unlink()  # or the next run goes on from its texts
    commands = encore.new_run("own", beir=encore.Collection(folder), language="en")
    assert capsys.readouterr().out == told.replace("mine", "own")
    assert commands[-1] == "snakemake --profile local --configfile config/own.yaml"
    assert f"`{commands[-1]}`" in PAGE
    assert Path("config/own.yaml").read_text() == written.replace("mine", "own")
    with pytest.raises(encore.EncoreError, match=r"^unrecognized arguments: --zero-shoot$"):
        encore.new_run("other", beir=folder, zero_shoot=True)
    with pytest.raises(encore.EncoreError, match=r"own.yaml is there already; choose another name"):
        encore.new_run("own", beir=folder)
