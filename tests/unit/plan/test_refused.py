"""What cannot be planned: one line before any job, whatever is wrong with a lineage, a step or a system."""

from typing import Any

import pytest

from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.products.targets import lineage_targets
from tests.support.shipped import plan_with

pytestmark = pytest.mark.usefixtures("at_the_root")

RECIPE, HN, TCT = "bert-base+marco-bm25", "bert-base+marco-bm25+marco-hn", "bert-base-tct+colbert+tct"
DENOISED = "bert-base-dpr+rocketqa-0+rocketqa-1"
LONG = "'micro-bert' has 160 positions; lower "
BELOW = "`negatives_below` is a probability, and .* gives none"
STATES = "take a step with `scorer: vector`, `projector: none` and no `pooling`"

NAMES = [  # of the embedded default
    ("bert-base+cossta", "did you mean costa"),
    ("bert-bse", "did you mean bert-base"),
    ("bert-base+costa~temprature=0.2", "did you mean temperature"),
    ("bert-base+costa~temperature=0.1", "its value already"),
    ("bert-base+costa~granularities=word", "is a list"),
    ("bert-base+itc+marco-bm25", "unknown step 'itc'; did you mean tct or ict?"),
    ("bert-base+ict~length=64~batch=8", "must be spelled 'bert-base[+]ict~batch=8~length=64'"),
    ("bert-base+ICT", "'ICT' is not `step` or `step~key=value`"),
    ("bert-base+ict~temperature=-1", "temperature"),
    ("bert-base+ict~learning_rate=inf", "finite"),
    ("bert-base+ict~epochs=3", "epochs changes nothing.*override `steps`"),
    ("bert-base" + "+costa~learning_rate=0.00025~temperature=0.123456" * 3, "120 are allowed"),
    ("bert-base+marco-bm25~length=600", "reads 600 tokens of a text, and 'micro-bert' has 160"),
    ("bert-base+mlm~length=600", f"{LONG}`length`,"),
    ("bert-base+ict~query_length=161", "reads 161 .* positions; lower `query_length`,"),
    ("bert-base+marco-bm25~query_length=161", "reads 161 .*; lower `query_length`,"),
    ("bert-base+marco-bm25~in_batch_group=5", "in_batch_group is 5, which does not divide the batch of 32 queries$"),
    ("bert-base+bow-ft-hn", "no fine-tuning comes before it"),
    ("bm25@hnsw", "'bm25' is a system, and only a lineage can be here"),
    ("bm26", "no system either; did you mean bm25"),
    ("bert-base+colbert@hnsw", "whose texts have no single vector to search"),
    ("bert-base-tct+colbert+adore", "whose texts have no single one each"),
    ("bert-base+ance-bm25+star+adore~per_query=3", "per_query changes nothing"),
    ("two-tower+reqa-1~train_split=train-2", "no split 'train-2' of role train; did you mean"),
    ("two-tower+reqa-1~train_split=test-1", "no split 'test-1' of role train"),
    ("two-tower+reqa-1~train_split=train-5", "train-5 and valid-1 are not of one draw"),
    ("bow-mlp+mlm-two-tower", "'micro-bow-mlp' is a bag of words and has no states of tokens, which mlm learns from"),
    ("bow-mlp+ict~mlm_weight=1", "which ict learns from"),
    ("bow-mlp+costa", "which costa learns from; take ict, bfs, wlp or ict-bfs-wlp"),
    ("bow-mlp+colbert", STATES),
    ("bow-mlp+marco-bm25~projector=linear", STATES),
]
IDLE = ["token_dimension=16", "normalised=both", "margin=5", "negatives=none~replacement=true", "validation_pool=7"]
IDLE += ["negatives=none~per_query=3", "exclude_relevant=false~loss=pairwise"]
IDLE += ["exclude_relevant=false~scorer=cross-encoder"]


def field_of(override: str) -> str:
    """The one that changes nothing."""
    named = override.split("~")
    return next(each for each in named if not each.startswith(("negatives", "loss", "scorer"))).partition("=")[0]


NAMES += [(f"{RECIPE}~{override}", f"{field_of(override)} changes nothing") for override in IDLE]

STEPS: list[tuple[str, dict[str, Any], str]] = [  # other fields of the last step of a lineage
    ("bert-base+cross-encoder", {"length": 129, "query_length": 32}, f"reads 161 .*{LONG}`length` or `query_length`,"),
    (RECIPE, {"epochs": None}, "step 'marco-bm25' says neither `steps` nor `epochs`; add one to its entry in steps.y"),
    ("bert-base+mlm", {"epochs": 3, "steps": 10}, "epochs changes nothing, since it trains for 10 steps; add `steps: "),
    (HN, {"mined_by": f"{HN}+marco-hn"}, "waits for a model that is made from it"),
    (HN, {"mined_by": "bert-base+icct"}, "did you mean ict"),
    (HN, {"mined_by": "hybird"}, "step 'marco-hn', mined_by: .*did you mean hybrid"),
    (RECIPE, {"negatives": "systems", "triples": None}, "name it in the step's `systems_file`"),
    (DENOISED, {"mined_by": "bert-base-dpr+rocketqa-0"}, BELOW),
    (DENOISED, {"mined_by": "bm25-cross-encoder", "depth": 10}, BELOW),
    (DENOISED, {"mined_by": None}, BELOW),
    (DENOISED, {"depth": 51}, BELOW),  # `rocketqa-scored` knows scores of 50 ranks
    (TCT, {"teachers": [TCT]}, "step 'tct', teachers: .*tct is made from .*tct, which it would teach"),
    (TCT, {"teachers": [f"{TCT}+hn"]}, "step 'tct', teachers: .*hn is made from .*tct, which it would teach"),
    (TCT, {"teachers": ["bert-base-tct+colbert+colbert-hn"]}, "tct waits for a model that is made from it"),
    (TCT, {"teachers": ["bert-base-tct+colbrt"]}, "step 'tct', teachers.*did you mean colbert"),
    (TCT, {"teachers": ["bert-base+cross-encoder"]}, "cross-encoder, which gives texts no vectors to score a batch w"),
    (TCT, {"teachers": ["bert-tiny+marco-bm25"]}, "another vocabulary"),
    (TCT, {"teachers": ["bm25-colbert"]}, "step 'tct', teachers: 'bm25-colbert' is a system"),
    (TCT, {"loss": "margin-mse", "negatives": "none"}, "step 'tct': loss margin-mse needs its own negatives"),
    (TCT, {"teachers": []}, "step 'tct': loss kl-in-batch learns from teachers, and it has none"),
    (TCT, {"loss": "contrastive"}, "contrastive asks no teacher"),
    (TCT, {"teacher_scores": "x"}, "two sources of one thing"),
    (TCT, {"teachers": [], "teacher_scores": "x"}, "not of batches"),
    (TCT, {"loss": "kl-pairwise", "in_batch_group": 2}, "leave `in_batch_group` out"),
    ("bert-base+clear", {"teachers": ["hybrid"]}, "a residual is of what a system without training leaves, and 'hyb"),
]
SYSTEMS: list[tuple[str, dict[str, dict[str, Any]], str]] = [  # other fields of some systems
    ("hybrid", {"hybrid": {"measure": "RR@11"}}, "best at 'RR@11', which dataset 'pydocs' lacks; did you mean RR@10"),
    ("bm25", {"hybird": {"depth": 1}}, r"scale\.systems: unknown name 'hybird'; did you mean hybrid"),
    ("bm25", {"hybrid": {"dpeth": 1}}, r"scale\.systems: hybrid.*dpeth"),
    ("hybrid", {"hybrid": {"sparse": "bm26"}}, "did you mean bm25"),
    ("hybrid", {"hybrid": {"dense": "bert-base-tct+colbert"}}, "'bert-base-tct[+]colbert' ends with a late-interact"),
    ("hybrid", {"hybrid": {"sparse": "hybrid-doct5"}, "hybrid-doct5": {"dense": "hybrid"}}, "'hybrid' contains itse"),
    ("me-bert", {"me-bert": {"ranker": "bert-base+cross-encoder"}}, "is a cross-encoder scorer.*name a `first` stage"),
    ("bm25-colbert", {"bm25-colbert": {"ranker": "bm25"}}, "system 'bm25-colbert': 'bm25' is a system"),
    ("bm25-doct5", {"bm25-doct5": {"expansion": "doct6"}}, r"expansion 'doct6' is not in doc2query\.yaml; did you m"),
]
CASES: list[tuple[str, dict[str, Any], str]] = [(name, {}, says) for name, says in NAMES]
CASES += [(name, {"steps": {name.rpartition("+")[2]: fields}}, says) for name, fields, says in STEPS]
CASES += [(name, {"systems": systems}, says) for name, systems, says in SYSTEMS]


@pytest.mark.parametrize(("name", "scale", "says"), CASES, ids=[f"{name} {scale}" for name, scale, _ in CASES])
def test_what_cannot_be_is_one_line(catalogue: Catalogue, name: str, scale: dict[str, Any], says: str) -> None:
    with pytest.raises(EncoreError, match=says) as refused:
        lineage_targets(plan_with(catalogue, "config", **scale), name)
    assert "\n" not in str(refused.value)
    assert "{" not in str(refused.value), "no dump of the whole entry"
