"""Specs leave defaults out, so a default is part of every digest without standing there: to change one is to change
models under their old names. Objectives' own are watched with their code; these are not.
"""

import pytest

from encore.config import Backbone, Step, Strict
from encore.recipe import FinetuneStep

STEP = {"epochs": None, "steps_per_epoch": None, "steps": None, "warmup": 0.1, "schedule": "linear"}
STEP |= {"weight_decay": 0.0, "clip": 1.0, "query_length": 64}
FINETUNE = STEP | {"loss": "contrastive", "temperature": 1.0, "queries": None, "sample": 0, "depth": 200, "keep": 30}
FINETUNE |= {"mined_by": None, "first_rank": 1, "replacement": False, "pool": None, "correction": "none"}
FINETUNE |= {"triples": None, "systems_file": None, "margin": 3.0, "per_system": 5}
FINETUNE |= {"published_negatives": False}
FINETUNE |= {"exclude_answers": False, "positives": "judged", "least_negatives": 0}
FINETUNE |= {"per_query": 7, "exclude_judged": True, "start": "parent", "projector": "none"}
FINETUNE |= {"scorer": "vector", "token_dimension": 128, "normalised": "passages"}
FINETUNE |= {"validate_every": None, "validation_queries": 400, "validation_pool": 2000}
FINETUNE |= {"teachers": (), "teacher_scores": None, "teacher_temperature": 1.0}
FINETUNE |= {"validation_measure": "RR@10", "train_split": "train", "valid_split": "valid"}
BACKBONE = {"checkpoint": None, "collection": None, "vocabulary": None, "layers": 12, "hidden": 768, "heads": 12}
BACKBONE |= {"intermediate": 3072, "max_length": 512, "dropout": 0.1, "pooling": "cls", "similarity": "dot"}
BACKBONE |= {"head": None, "towers": "tied", "query_marker": "", "passage_marker": "", "separator": True}
BACKBONE |= {"augment": False, "architecture": "bert", "revision": None, "length": None, "query_length": None}


@pytest.mark.parametrize(("model", "recorded"), [(Step, STEP), (FinetuneStep, FINETUNE), (Backbone, BACKBONE)])
def test_defaults_stay_what_old_digests_mean(model: type[Strict], recorded: dict[str, object]) -> None:
    fields = {name: field for name, field in model.model_fields.items() if not field.exclude}
    now = {name: field.default for name, field in fields.items() if not field.is_required()}
    assert now == recorded, "a new field belongs here; where an old default changes, bump `impl` of its stages as well"
