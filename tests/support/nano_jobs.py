"""Jobs of the nano run, without the digests of their folders: ``finetune tiny+marco-bm25-s0``."""

from tests.support.clones import Clone

CONFIG = ("--config", "config/nano.yaml")
NONE, CONTROL, ICT = "tiny+marco-bm25-s0", "tiny+control-s0", "tiny+ict+marco-bm25-s0"
NONE_MINED, ICT_MINED = "tiny+marco-bm25+marco-hn-s0", "tiny+ict+marco-bm25+marco-hn-s0"
PRODUCTS = {"table table1", "figure table1", "report"}
CURVES = {"curves"}


def judged(model: str) -> set[str]:
    """From a model's weights to its scores."""
    return {
        f"encode {model} pydocs-stdlib 000-of-001",
        f"search {model} pydocs-stdlib.test",
        f"evaluate {model} pydocs-stdlib.test",
    }


def mined(model: str) -> set[str]:
    """From a model's vectors to negatives for its child."""
    return {f"search {model} pydocs-stdlib.train.200", f"negatives {model} pydocs-stdlib.train.200"}


def tuned(*models: str) -> set[str]:
    return {f"finetune {model}" for model in models}.union(*map(judged, models))


def temperature_of_ict(clone: Clone) -> None:
    clone.replace("config/nano.yaml", "ict: {temperature: 0.05", "ict: {temperature: 0.1")
