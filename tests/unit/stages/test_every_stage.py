"""Every stage reads from a planned folder what the planner wrote into it."""

import json
from pathlib import Path

import pytest

from encore import stages
from encore.plan.artifact import names
from encore.products.catalogue import load_plan
from encore.products.targets import everything_declared, needed_by

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("run", ["config/nano-papers.yaml", "config/config.yaml"])
def test_a_planned_folder_read_again_is_the_planned_one(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = load_plan(Path(run))
    needed_by(plan, everything_declared(plan))
    assert len({artifact.stage for artifact in plan.made.values()}) > 15
    for artifact in plan.made.values():
        folders = {role: parent.folder for role, parent in artifact.inputs.items()}
        spec, inputs = json.loads(json.dumps([artifact.spec, folders], sort_keys=True))  # as a job gets them
        stage = stages.load(artifact.stage).read(spec, inputs, artifact.folder)
        assert stage.planned(stage.spec.dumped(), names(artifact.inputs)) == (artifact.stage, spec), artifact.folder
        assert {*map(str, stage.inputs.folders())} == {*folders.values()}, artifact.folder
