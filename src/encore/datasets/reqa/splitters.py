"""Which rules part a passage into sentences: ours, or those that were published with the ReQA evaluation.

Counts of candidates depend on it. The published rules are a Python file (google/retrieval-qa-eval, sb_sed.py) that is
fetched by its digest and run as it is; its ``infer_sentence_breaks(text)`` gives the places of sentences.
"""

import runpy
from collections.abc import Callable
from pathlib import Path

from encore.data import sentences
from encore.errors import EncoreError

Spans = Callable[[str], list[tuple[int, int]]]  # where each sentence of a text begins and ends
OWN = "encore"
_FUNCTION = "infer_sentence_breaks"


def splitter(rules: Path | None) -> Spans:
    """The sentences of a text by rules that were published as a file; by our own without one.

    Raises:
        EncoreError: the file has no such function.
    """
    if rules is None:
        return sentences.spans
    try:
        breaks = runpy.run_path(str(rules))[_FUNCTION]
    except Exception as error:
        raise EncoreError(f"{rules} has no {_FUNCTION} ({error!r}); name the published rules, or `{OWN}`") from error
    return lambda text: list(breaks(text))
