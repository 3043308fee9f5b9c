"""A run that extends another one: which keys it takes over, that nothing shows it afterwards, and every wrong use."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from encore.commands.whatif import changed
from encore.config.run_file import read_run, run_content
from encore.config.validation import read_yaml
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.products.targets import everything_declared, reads_of

ROOT = Path(__file__).parents[3]
LINES = len((ROOT / "config/nano.yaml").read_text().splitlines())
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a run's file, `config/mine.yaml` unless named, where config/nano.yaml is next to it."""
    (tmp_path / "config").mkdir()
    shutil.copy(ROOT / "config/nano.yaml", tmp_path / "config/nano.yaml")
    monkeypatch.chdir(tmp_path)

    def written(text: str, name: str = "config/mine.yaml") -> Path:
        Path(name).write_text(text)
        return Path(name)

    return written


def test_keys_replace_those_of_the_other_run_whole_and_those_of_scale_one_by_one(write: Write) -> None:
    base = read_yaml(Path("config/nano.yaml"))
    path = write("extends: config/nano.yaml\nseeds: [3]\nlatency: {queries: 7}\nscale: {pretrain: {steps: 4}}\n")
    content = run_content(path)
    assert content == base | {
        "seeds": [3],
        "latency": {"queries": 7},
        "scale": base["scale"] | {"pretrain": {"steps": 4}},
    }
    assert read_run(path) == read_run(path, read_yaml(path)), "as Snakemake reads it"
    assert read_run(path).scale.finetune == base["scale"]["finetune"]


def test_an_extended_run_without_a_scale_and_one_over_it(write: Write) -> None:
    bare = {key: value for key, value in read_yaml(Path("config/nano.yaml")).items() if key != "scale"}
    write(yaml.safe_dump(bare), "config/bare.yaml")
    assert read_run(write("extends: config/bare.yaml\nscale: {finetune: {batch: 4}}\n")).scale.finetune == {"batch": 4}
    assert run_content(write("extends: config/nano.yaml\nscale: {}\n")) == read_yaml(Path("config/nano.yaml"))


def test_a_run_with_tables_of_its_own_makes_nothing_that_it_does_not_name(write: Write) -> None:
    """A run that only evaluates was refused for the figure of another run's systems."""
    base = read_yaml(Path("config/nano.yaml")) | {
        "figures": ["bow/figure2"],
        "lineages": ["bert-base+ict"],
    }
    write(yaml.safe_dump(base), "config/all.yaml")
    own = read_run(write("extends: config/all.yaml\ntables: {table1: [bm25]}\n"))
    assert (own.figures, own.lineages) == ([], [])
    named = read_run(write("extends: config/all.yaml\ntables: {table1: [bm25]}\nfigures: [bow/figure3]\n"))
    assert named.figures == ["bow/figure3"]
    more = read_run(write("extends: config/all.yaml\nseeds: [1]\n"))
    assert more.figures == ["bow/figure2"]


@pytest.mark.slow
def test_ten_seeds_make_the_folders_that_their_complete_file_makes(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing of a spec says whether a value was taken over: config/seeds.yaml as it was, all keys in one file."""
    monkeypatch.chdir(ROOT)
    complete = read_yaml(Path("config/config.yaml")) | {
        "title": "Embedded default (pydocs, ten seeds)",
        "seeds": list(range(10)),
    }
    (tmp_path / "seeds.yaml").write_text(yaml.safe_dump(complete, sort_keys=False))
    assert len([line for line in Path("config/seeds.yaml").read_text().splitlines() if line[0] != "#"]) == 3
    made = []
    for path in (Path("config/seeds.yaml"), tmp_path / "seeds.yaml"):
        plan = Plan(read_run(path), catalogue)
        reads = {target: [read.folder for read in reads_of(plan, target)] for target in everything_declared(plan)}
        made.append((reads, {folder: artifact.spec for folder, artifact in plan.made.items()}))
    assert made[0] == made[1]
    assert len(made[0][1]) > 2000


def test_a_change_may_be_of_what_is_taken_over(write: Write, tmp_path: Path) -> None:
    (tmp_path / "changed").mkdir()
    path = write("extends: config/nano.yaml\nseeds: [3]\n")
    _, own = changed(Path("config"), path, ["scale.finetune.batch=9", "depth=5"], tmp_path / "changed")
    expected = read_run(Path("config/nano.yaml")).scale.finetune | {"batch": 9}
    assert (read_run(own).scale.finetune, read_run(own).depth, read_run(own).seeds) == (expected, 5, [3])


def refusal(path: Path, given: dict[str, Any] | None = None) -> str:
    with pytest.raises(EncoreError) as refused:
        read_run(path, given)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("extends: config/naon.yaml\n", "there is no config/naon.yaml, which is read from the repository's root; did "),
        ("extends: nano.yaml\n", "there is no nano.yaml, which is read .*did you mean config/nano.yaml"),
        ("extends: config\n", "there is no config, which is read from the repository's root"),
        ("extends: config/mine.yaml\n", "a run cannot extend itself; name another one"),
        ("extends: config/two.yaml\n", "config/two.yaml extends config/nano.yaml itself, and one level is all"),
        ("extends: [config/nano.yaml]\n", r"must be one run's file, .*found \"\['config/nano.yaml'\]\""),
        ("extends: {path: config/nano.yaml}\n", "must be one run's file"),
        ("extends:\n", "must be one run's file, such as config/config.yaml .found 'None'"),
        ("extends: ''\n", "must be one run's file"),
    ],
)
def test_what_cannot_be_extended_is_refused_in_one_line(text: str, says: str, write: Write) -> None:
    write("extends: config/nano.yaml\nseeds: [1]\n", "config/two.yaml")
    path = write(text)
    for given in (None, yaml.safe_load(text)):
        said = refusal(path, given)
        assert said.startswith("config/mine.yaml: extends: ")
        with pytest.raises(EncoreError, match=says):
            read_run(path)


@pytest.mark.parametrize(
    ("base", "own", "says"),
    [
        ("depht: 5\n", "seeds: [1]\n", "config/base.yaml: depht: unknown key; did you mean depth"),
        ("", "seedz: [1]\n", "config/mine.yaml: seedz: unknown key; did you mean seeds"),
        ("", "scale: {pretrian: {}}\n", "config/mine.yaml: scale.pretrian: unknown key; did you mean pretrain"),
        ("", "scale: 3\n", "config/mine.yaml: scale: "),
        ("", "seeds: [true]\n", "config/mine.yaml: seeds: must be a number, not true or false"),
        (
            "depth: 5\n",
            "seeds: [1]\n",
            f"config/base.yaml, line {LINES + 1}: the key `depth` is there twice; keep one of them",
        ),
        ("", "depth: 5\ndepth: 6\n", "config/mine.yaml, line 3: the key `depth` is there twice; keep one of them"),
        ("a: [\n", "seeds: [1]\n", "config/base.yaml is not YAML: "),
        ("", "a: [\n", "config/mine.yaml is not YAML: "),
        (None, "seeds: [1]\n", "config/base.yaml must hold a mapping of names"),
    ],
)
def test_a_wrong_value_is_told_with_the_file_that_it_stands_in(
    base: str | None, own: str, says: str, write: Write
) -> None:
    nano = Path("config/nano.yaml").read_text()
    write("- a\n" if base is None else nano + base, "config/base.yaml")
    assert refusal(write(f"extends: config/base.yaml\n{own}")).startswith(says)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("seeds: [0\ntables: {}\n", "is not YAML: .*line 2"),
        ("seeds:\n\t- 0\n", "is not YAML: .*line 2"),
        ("title: a\0\n", "is not YAML: .*#x0000"),
        ("seeds: *all\n", "is not YAML: .*undefined alias.*line 1"),
        ("seeds: !!python/object/apply:os.system ['true']\n", "is not YAML: .*line 1"),
        ("", "must hold a mapping of names"),
        ("- seeds\n", "must hold a mapping of names"),
        ("title: é\n".encode("latin-1"), "is not YAML: .*utf-8"),
        ("title: a\n".encode("utf-16"), "is not YAML: .*utf-8"),
        (None, "is missing|cannot be read"),
    ],
)
def test_a_file_that_is_none_is_told_in_one_line(content: str | bytes | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = refusal(path)
    assert said.startswith(str(path))
    with pytest.raises(EncoreError, match=says):
        read_run(path)


def test_a_table_without_rows_is_refused(write: Write) -> None:
    said = refusal(write("extends: config/nano.yaml\ntables: {table1: []}\n"))
    assert said == "config/mine.yaml: tables: table1 has no rows; name some, write `all`, or leave the table out"
