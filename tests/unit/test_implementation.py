"""Code is no trigger for Snakemake, so a change of behaviour is declared: this asks for the declaration."""

import ast
import re

import pytest
import yaml

from encore import objectives
from encore.errors import EncoreError
from encore.provenance import implementation

RECORDED = yaml.safe_load((implementation.PACKAGE / "digests.yaml").read_text())
STAGES = sorted({*implementation.stages(), *(f"pretrain.{name}" for name in objectives.names())})


@pytest.mark.parametrize("stage", sorted({*implementation.stages(), *RECORDED}))
def test_the_code_of_a_stage_is_the_recorded_one(stage):
    recorded = RECORDED.get(stage)
    now = implementation.code_digest(stage)
    assert recorded == now, (
        f"the code of stage {stage} has changed. If its results can change, bump `impl` (stages.yaml, or the "
        f"objective's class); in any case record the new digest in src/encore/digests.yaml: `{stage}: {now}`"
    )


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_sources(stage):
    assert implementation.sources(stage)
    patterns = implementation.stages().get(stage, {}).get("sources", [])
    assert all(list(implementation.PACKAGE.glob(pattern)) for pattern in patterns)


def test_an_objectives_own_file_is_watched():
    mlm, costa = (set(implementation.sources(f"pretrain.{name}")) for name in ("mlm", "costa"))
    assert {path.name for path in mlm - costa} == {"mlm.py"}
    assert {path.name for path in costa - mlm} == {"costa.py", "stop_words.py"}


@pytest.mark.parametrize("name", objectives.names())
def test_all_that_an_objective_is_made_of_is_watched(name):
    watched = set(implementation.sources(f"pretrain.{name}"))
    assert imported(implementation.PACKAGE / "objectives" / f"{name}.py") - watched == set()


def imported(path):
    """A file of the objectives and those that it imports, and so on."""
    found, new = set(), {path}
    while new:
        found |= new
        text = "".join(one.read_text() for one in new)
        names = re.findall(r"^\s*from encore\.objectives\.(\w+) import", text, re.M)
        names += re.findall(r"^\s*from encore\.objectives import (\w+)", text, re.M)
        new = {path.with_name(f"{other}.py") for other in names} - found
    return found


def test_comments_docstrings_and_layout_are_not_behaviour():
    one = 'def f(x):\n    """Says."""\n    return x + 1  # why\n'
    other = "def f(x):\n    return (x\n        + 1)\n"
    changed = "def f(x):\n    return x + 2\n"
    trees = [ast.dump(implementation._without_docstrings(ast.parse(text))) for text in (one, other, changed)]
    assert trees[0] == trees[1] != trees[2]


def test_an_unknown_stage_is_refused():
    with pytest.raises(EncoreError, match=r"stages\.yaml"):
        implementation.impl("reduce")
