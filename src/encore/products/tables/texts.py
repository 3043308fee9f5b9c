"""What a table's reader should know of the texts that were searched: copies among them, cut ones, unknown tokens.

Those of Encore's own collections are told in docs/pydocs.md.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from encore.config.datasets import parse_measure
from encore.config.languages import SPOKEN, UNKNOWN_SHARE
from encore.plan.plan import Plan
from encore.products.slices import SlicePart
from encore.products.tables.grid import CellRequest
from encore.products.tables.sources.base import lineage_of
from encore.products.tables.sources.counts import Tokens
from encore.storage.manifest import read_results

FRAME = 2  # [CLS] and [SEP]
NEGATIVES = (  # without and with `ignore_copies`
    "copies of what is relevant may be negatives, unless the dataset has `ignore_copies: true`",
    "copies of what is relevant are no negatives",
)


class SearchedTexts(SlicePart):
    """A dataset's collection, and its texts in tokens with how many of a passage are read, for each kind of model."""

    dataset: str
    collection: str
    ignore_copies: bool | None  # none where nothing has negatives
    tokens: list[tuple[str, int]] = []
    least_grades: dict[str, int] = {}  # that count as relevant, by the measures that say so

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """The files that the notes are made from, besides manifests, by folder."""
        return {Path(self.collection): ()} | {Path(folder): Tokens.files for folder, _ in self.tokens}

    def notes(self) -> Iterator[str]:
        """Sentences on what was counted, where there is any."""
        counts = read_results(self.collection)
        asked = {kind: f"repeated_{kind}" for kind in ("passages", "queries")}
        if found := [f"{counts[key]:,} of {counts[kind]:,} {kind}" for kind, key in asked.items() if key in counts]:
            repeated = f"{' and '.join(found)} repeat the text of an earlier one"
            negatives = "" if self.ignore_copies is None else f"; {NEGATIVES[self.ignore_copies]}"
            yield f"{self.dataset}: {repeated}{negatives}."
        for kind in (each for each in SPOKEN if SPOKEN[each] in counts):
            yield f"{self.dataset}: its {kind} are in {counts[SPOKEN[kind]]}, and BM25 reads them as another language."
        of_tokens = (self._of_tokens(Path(folder), length) for folder, length in self.tokens)
        yield from dict.fromkeys(note for notes in of_tokens for note in notes)

    def _of_tokens(self, folder: Path, length: int) -> Iterator[str]:
        import numpy as np

        lengths = np.diff(np.load(folder / Tokens.files[0], mmap_mode="r"))
        if longer := int(np.count_nonzero(lengths + FRAME > length)):
            about = f"models read {length} tokens of a passage"
            yield f"{self.dataset}: {about}, and {longer:,} of {len(lengths):,} are longer."
        shares = {name: share for name, share in read_results(str(folder)).items() if name.startswith(UNKNOWN_SHARE)}
        for name, share in shares.items():
            texts = name.removeprefix(UNKNOWN_SHARE)
            yield f"{self.dataset}: {share:.1%} of the tokens of {texts} are unknown to the vocabulary."


def searched_texts(plan: Plan, requests: Iterable[CellRequest]) -> list[SearchedTexts]:
    """The searched texts of each dataset that cells measure, in their order, without those shipped with Encore."""
    found: dict[str, dict[str, Any]] = {}
    for request in (each for each in requests if each.reads and each.expression):
        fields, name = plan.resolve.dataset(request.dataset).fields, plan.resolve.dataset(request.dataset).name
        if fields.embedded:
            continue
        copies = None if fields.zero_shot and plan.config.proxy_data == "own" else fields.ignore_copies
        own = found.setdefault(name, {"dataset": name, "ignore_copies": copies, "tokens": []})
        own["collection"] = plan.collection(request.dataset).folder
        if lineage := lineage_of(plan, request):
            tokens = plan.tokens(request.dataset, plan.resolve.backbone(lineage))
            read = (tokens.folder, plan.resolve.passage_length(lineage, request.dataset))
            own["tokens"] += [read] if read not in own["tokens"] else []
        if "(rel=" in request.expression:
            own.setdefault("least_grades", {})[request.expression] = parse_measure(request.expression).rel
    return [SearchedTexts(**own) for own in found.values()]
