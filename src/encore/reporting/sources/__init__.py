"""Where the values of a column come from, by the source that the table's plan names."""

from encore.plan.tables.layout import Column
from encore.reporting.sources.base import Source, Values
from encore.reporting.sources.efficiency import Efficiency
from encore.reporting.sources.gain import Gain
from encore.reporting.sources.held_out import HeldOut
from encore.reporting.sources.masked_loss import MaskedLoss
from encore.reporting.sources.mean import Mean
from encore.reporting.sources.measured import Measures
from encore.reporting.sources.pairs import Pairs
from encore.reporting.sources.printed import PrintedOnly
from encore.reporting.sources.recorded import Recorded
from encore.reporting.sources.statistic import Statistic
from encore.reporting.sources.tokens import Tokens

__all__ = ["SOURCES", "Source", "Values", "source_of"]

SOURCES: dict[str, Source] = {
    "measure": Measures(),
    "efficiency": Efficiency(),
    "held_out": HeldOut(),
    "masked_loss": MaskedLoss(),
    "pairs": Pairs(),
    "recorded": Recorded(),
    "statistic": Statistic(),
    "tokens": Tokens(),
    "mean_of": Mean(),
    "gain": Gain(),
    "printed": PrintedOnly(),
}


def source_of(column: Column) -> Source:
    return SOURCES[column.source]
