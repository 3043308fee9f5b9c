"""A key of an older version is refused in one line that has the new name."""

from typing import Any

import pytest
from small_objective import STEP

from encore import objectives
from encore.config.entries import Backbone
from encore.config.finetuning import FinetuneStep
from encore.config.validation import checked
from encore.errors import EncoreError

FINETUNE = {"kind": "finetune", "collection": "a", "batch": 4, "learning_rate": 1.0, "length": 8, "negatives": "bm25"}
FIELDS = {name: objectives.load(name).Fields for name in objectives.names()}
RENAMED = [
    *((Backbone, {"start": "random"}, *names) for names in Backbone.renamed.items()),
    *((FinetuneStep, FINETUNE, *names) for names in FinetuneStep.renamed.items()),
    *(
        (model, {**STEP, "objective": name}, *names)
        for name, model in FIELDS.items()
        for names in model.renamed.items()
    ),
]


@pytest.mark.parametrize(("model", "entry", "old", "new"), RENAMED)
def test_an_old_key_is_refused_with_the_new_name(model: Any, entry: dict[str, Any], old: str, new: str) -> None:
    assert new in model.model_fields
    with pytest.raises(EncoreError) as refused:
        checked(model, {**entry, old: 1}, "config/steps.yaml")
    assert str(refused.value) == f"config/steps.yaml: {old}: is now called `{new}`; rename it"


def test_the_renamed_keys_are_those_of_backbones_steps_and_objectives() -> None:
    assert {(old, new) for _, _, old, new in RENAMED} == {
        ("towers", "encoders"),
        ("head", "projection_dim"),
        ("clip", "max_grad_norm"),
        ("keep", "negatives_kept"),
        ("keep", "save_heads"),
        ("pool", "in_batch_group"),
        ("correction", "logq_correction"),
        ("shortest", "min_tokens"),
        ("most_masked", "max_masked"),
        ("reading", "variant"),
    }


def test_an_override_in_a_lineage_is_refused_with_the_new_name() -> None:
    with pytest.raises(EncoreError, match="reading: is now called `variant`; rename it"):
        checked(FIELDS["bow"], {**STEP, "objective": "bow", "reading": "paper"}, "bert-base+bow~reading=paper")
