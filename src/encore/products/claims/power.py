"""The minimum detectable difference of a number of queries, from the printed values alone.

It is (z_0.975 + z_0.8) times the standard error (Bloom, "Minimum detectable effects", Evaluation Review 19, 1995; for
retrieval: Webber, Moffat and Zobel, CIKM 2008). A measure with mean m between 0 and 1 has at most variance m (1 - m).

The spread of a paired difference on one query is ``config/papers/encore/spread.yaml``'s; chance between trainings is
not in it, which no paper prints, so real tests show less.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Literal

from pydantic import Field

from encore.config.strict import Strict
from encore.config.validation import checked, read_yaml
from encore.products.claims.contrasts import Address, Contrast, entries_of
from encore.products.claims.entries import DATASETS, SPREAD
from encore.products.tables.entries import Table, fill_vars
from encore.products.tables.sources.kinds import TESTED

LEVEL, POWER = 0.05, 0.8  # as in evaluation/significance.py
CUTOFF = 20  # measures of recall to this rank and from beyond it are families of their own
Family = Literal["RR", "nDCG", "R to 20", "R from 50", "R of many"]
GRADED = "graded"  # the split whose queries have many judged passages, so that recall is not yes or no
Run = tuple[str, str]
Share = Annotated[float, Field(gt=0, le=1)]
_MEASURE = re.compile(r"(RR|nDCG|R)(?:\(rel=\d\))?@(\d+)")
_DRAW = re.compile(r"test-(\d+)")


class Spread(Strict):
    """The entries of ``spread.yaml``: shares of paired variance by family of measures, seeds, and counts of queries."""

    source: str
    shares: dict[Family, Share]
    of_seeds: Share
    by_seed: Share
    seeds_source: str
    queries_source: str
    queries: dict[str, int]


class Power:
    """Minimum detectable differences on the papers' test sets."""

    def __init__(self, papers: Path, tables: Mapping[str, Table], values: Mapping[Address, float]) -> None:
        """``papers``: the folder of the papers, next to datasets.yaml; ``values``: the printed ones, by cell."""
        self.tables, self.values = tables, values
        self.spread = checked(Spread, read_yaml(papers / SPREAD), str(papers / SPREAD))
        entries = read_yaml(papers.parent / DATASETS)
        self._expected = {name: entry.get("expected", {}) for name, entry in entries.items()}
        self._without_titles = {name: entry["of"] for name, entry in entries.items() if entry["kind"] == "with-titles"}

    def queries(self, run: Run) -> int | None:
        """How many queries a split has; None where nobody counted them.

        Of ReQA's questions, ``test-5`` has the 95 % that do not train (Chang et al. 2020, section 4.1).
        """
        dataset, split = self._without_titles.get(run[0], run[0]), run[1]
        expected = self._expected.get(dataset, {})
        if f"queries.{split}" in expected:
            return int(expected[f"queries.{split}"])
        if (draw := _DRAW.fullmatch(split)) and "queries" in expected:
            return round(expected["queries"] * (100 - int(draw[1])) / 100)
        return self.spread.queries.get(f"{dataset}.{split}")

    def runs(self, contrast: Contrast) -> set[Run]:
        """The runs that a contrast is about."""
        return {run for address, weight in contrast.terms for _, run, _ in self._parts(address, weight)}

    def could_show(self, contrast: Contrast) -> float | None:
        """The smallest difference that a two-sided test at 5 % shows with 80 % power, in the measure's unit (0 to 1).

        None where a cell is not printed, or nobody counted its queries.
        """
        if contrast.printed:
            return None
        variance = self.variance(contrast)
        normal = NormalDist()
        return None if variance is None else (normal.inv_cdf(1 - LEVEL / 2) + normal.inv_cdf(POWER)) * variance**0.5

    def variance(self, contrast: Contrast) -> float | None:
        """The variance of the mean weighted sum over runs; a paired contrast keeps the spread that is not shared.

        None where a cell is not printed, or its queries are not counted.
        """
        weights: dict[Run, float] = {}
        own: list[tuple[Run, float, str]] = []
        for address, weight in contrast.terms:
            if address not in self.values:
                return None
            level = self.values[address]
            for part, run, measure in self._parts(address, weight):
                weights[run] = weights.get(run, 0.0) + part
                own.append((run, part**2 * level * (1 - level), measure))
        total = 0.0
        for run, variance, measure in own:
            family, count = family_of(measure, run[1]), self.queries(run)
            if family is None or count is None:
                return None
            paired = abs(weights[run]) < 1e-9  # otherwise what the systems have in common does not cancel
            total += variance * (self.spread.shares[family] if paired else 1.0) / count
        return total if own else None

    def _parts(self, address: Address, weight: float) -> list[tuple[float, Run, str]]:
        """The weights, runs and measures that a cell is a sum of; empty where its value is not of queries.

        Passages with and without titles are asked the same queries, so they count as one dataset.
        """
        row, column = entries_of(address, self.tables)
        if column.source == TESTED:
            dataset, split, measure = (
                fill_vars(text, row, column) for text in (column.dataset, column.split, column.measure)
            )
            return [(weight, (self._without_titles.get(dataset, dataset), split), measure)]
        share = weight / max(len(column.mean_of), 1)
        return [part for name in column.mean_of for part in self._parts(address._replace(column=name), share)]


def family_of(measure: str, split: str) -> Family | None:
    """The family of a measure of a split by its printed name; None for one of another kind."""
    found = _MEASURE.fullmatch(measure)
    if found is None:
        return None
    if found[1] == "R" and split == GRADED:
        return "R of many"
    if found[1] == "R":
        return "R to 20" if int(found[2]) <= CUTOFF else "R from 50"
    return "RR" if found[1] == "RR" else "nDCG"
