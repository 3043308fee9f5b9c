"""The sources of the values of columns, by their field in a column's entry: one line each."""

from encore.products.tables.grid import Column
from encore.products.tables.sources.base import CellSource
from encore.products.tables.sources.counts import PairCounts, Statistic, Tokens
from encore.products.tables.sources.efficiency import Efficiency
from encore.products.tables.sources.measures import GainSource, MeanSource, Measures, PrintedOnly
from encore.products.tables.sources.pretraining import HeldOutLoss, MaskedLoss, Vectors
from encore.products.tables.sources.recorded import Recorded

TESTED = "measure"  # the source whose values are queries', so that differences can be tested

SOURCES: dict[str, CellSource] = {
    TESTED: Measures(),
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
