"""Numbers that others published for a system on a collection, which a run has to reach."""

from pydantic import Field

from encore.config.strict import Strict


class KnownNumber(Strict):
    """A published score. Of a run's ``checks``."""

    system: str = Field(description="a system (`bm25`), or a lineage, such as a published model as it is")
    dataset: str
    split: str = "test"
    measure: str = Field(description="by the name that the split gives it")
    published: float = Field(description="the score, as a share of 1")
    within: float = Field(gt=0, description="how far ours may be from it, above or below")
    source: str = Field(description="where it is published")
