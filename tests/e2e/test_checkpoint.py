"""A published retriever, from its hub to scores: fetched with one command, then without any network and any step."""

import json
import sys
from pathlib import Path

import pytest
import yaml
from clones import REPOSITORY, Clone, jobs

sys.path.append(str(REPOSITORY / "tests" / "unit"))
from small_checkpoints import bert  # beside the unit tests
from small_hub import COMMIT, Hub
from small_models import tokenizer_folder

BACKBONE = {
    "start": "checkpoint",
    "checkpoint": "someone/retriever",
    "revision": COMMIT,
    **{"layers": 2, "hidden": 8, "heads": 2, "intermediate": 16, "max_length": 20},
    **{"pooling": "content", "query_marker": "[Q]", "passage_marker": "[D]", "separator": False, "augment": True},
    **{"length": 16, "query_length": 9, "source": "ours; a test"},
}


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A clone whose run is one small published retriever and nothing else."""
    made = Clone.fresh(tmp_path / "a clone")
    backbones = made.root / "config/backbones.yaml"
    backbones.write_text(f"{backbones.read_text()}\n{yaml.safe_dump({'small-retriever': BACKBONE})}")
    run = yaml.safe_load((made.root / "config/nano.yaml").read_text())
    run |= {"tables": {}, "lineages": ["small-retriever"]}
    run.pop("corpus_size", None)
    (made.root / "config/nano.yaml").write_text(yaml.safe_dump(run))
    return made


def test_a_published_retriever_answers_as_it_is(clone: Clone, tmp_path: Path) -> None:
    published = tmp_path / "published"
    bert(published, pieces=93)
    tokenizer_folder(published)
    hub = Hub(published)
    where = {"HF_ENDPOINT": hub.url}
    done = clone.nano("fetch", env=where).succeeded()
    hub.close()
    assert "someone/retriever: licence: apache-2.0" in done
    rules = {job.split()[0] for job in jobs(clone.nano(env=where).succeeded())}
    assert {"tokenizer", "start", "encode", "search", "evaluate"} <= rules
    assert not rules & {"finetune", "pretrain", "fetch_checkpoint"}
    (scores,) = (clone.root / "results/scores").glob("small-retriever-s0-*/*/manifest.json")
    assert json.loads(scores.read_text())["results"]
    (model,) = (clone.root / "results/models").glob("small-retriever-s0-*/encoder.json")
    said = json.loads(model.read_text())
    assert (said["length"], said["query_length"], said["shape"]["augment"]) == (16, 9, True)
