"""Where the values of a column come from, by the source that the table's plan names."""

from encore.plan.tables.layout import Column
from encore.reporting.sources.base import CellSource, CellValues
from encore.reporting.sources.counts import PairCounts, Statistic, Tokens
from encore.reporting.sources.derived import GainSource, MeanSource, PrintedOnly
from encore.reporting.sources.efficiency import Efficiency
from encore.reporting.sources.held_out_loss import HeldOutLoss
from encore.reporting.sources.masked_loss import MaskedLoss
from encore.reporting.sources.measured import Measures
from encore.reporting.sources.recorded import Recorded
from encore.reporting.sources.vectors import Vectors

__all__ = ["SOURCES", "CellSource", "CellValues", "source_of"]

SOURCES: dict[str, CellSource] = {
    "measure": Measures(),
    "efficiency": Efficiency(),
    "held_out": HeldOutLoss(),
    "masked_loss": MaskedLoss(),
    "pairs": PairCounts(),
    "recorded": Recorded(),
    "statistic": Statistic(),
    "tokens": Tokens(),
    "vectors": Vectors(),
    "mean_of": MeanSource(),
    "gain": GainSource(),
    "printed": PrintedOnly(),
}


def source_of(column: Column) -> CellSource:
    """The source that a column's values come from."""
    return SOURCES[column.source]
