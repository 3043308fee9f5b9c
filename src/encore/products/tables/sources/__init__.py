"""Where the values of a column come from, by the source that the table's plan names."""

from encore.products.tables.layout import Column
from encore.products.tables.sources.base import CellSource, CellValues
from encore.products.tables.sources.counts import PairCounts, Statistic, Tokens
from encore.products.tables.sources.derived import GainSource, MeanSource, PrintedOnly
from encore.products.tables.sources.efficiency import Efficiency
from encore.products.tables.sources.held_out import HeldOutLoss
from encore.products.tables.sources.masked_loss import MaskedLoss
from encore.products.tables.sources.measure import Measures
from encore.products.tables.sources.recorded import Recorded
from encore.products.tables.sources.vectors import Vectors

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
