"""Negatives for fine-tuning, from runs, from files, and from what collections were published with."""

from encore.config.validation import Strict


class Ignored(Strict):
    """Which unjudged documents are no negatives of a query; the fields are those of its dataset."""

    ignore_identical_ids: bool = False
    ignore_copies: bool = False
