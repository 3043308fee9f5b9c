"""A published retriever, from its hub to scores: fetched with one command, then without any network and any step."""

import json
from pathlib import Path

import pytest
import yaml

from tests.support.clones import Clone, jobs
from tests.support.small_checkpoints import bert
from tests.support.small_hub import COMMIT, Hub
from tests.support.small_models import tokenizer_folder

BACKBONE = {
    "start": "checkpoint",
    "checkpoint": "someone/retriever",
    "revision": COMMIT,
    **{"layers": 2, "hidden": 8, "heads": 2, "intermediate": 16, "max_length": 20},
    **{"pooling": "content", "query_marker": "[Q]", "passage_marker": "[D]", "separator": False, "augment": True},
    **{"length": 16, "query_length": 9, "source": "ours; a test"},
}


@pytest.fixture
def small(nano: Clone) -> Clone:
    """The finished run, where one small published retriever takes the place of all tables."""
    backbones = nano.root / "config/backbones.yaml"
    backbones.write_text(f"{backbones.read_text()}\n{yaml.safe_dump({'small-retriever': BACKBONE})}")
    run = yaml.safe_load((nano.root / "config/nano.yaml").read_text())
    run |= {"tables": {}, "lineages": ["small-retriever"]}
    (nano.root / "config/nano.yaml").write_text(yaml.safe_dump(run))
    return nano


def test_a_published_retriever_answers_as_it_is(small: Clone, tmp_path: Path) -> None:
    published = tmp_path / "published"
    bert(published, pieces=93)
    tokenizer_folder(published)
    hub = Hub(published)
    where = {"HF_ENDPOINT": hub.url}
    done = small.nano("fetch", env=where).succeeded()
    hub.close()
    assert "someone/retriever: licence: apache-2.0" in done
    rules = {job.split()[0] for job in jobs(small.nano(env=where).succeeded())}
    assert {"tokenizer", "start", "encode", "search", "evaluate"} <= rules
    assert not rules & {"finetune", "pretrain", "fetch_checkpoint"}
    (scores,) = (small.root / "results/scores").glob("small-retriever-s0-*/*/manifest.json")
    assert json.loads(scores.read_text())["results"]
    (model,) = (small.root / "results/models").glob("small-retriever-s0-*/encoder.json")
    said = json.loads(model.read_text())
    assert (said["length"], said["query_length"], said["shape"]["augment"]) == (16, 9, True)
